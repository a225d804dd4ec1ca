//! Reading lines from a stream.

use std::io::{ErrorKind, Read};

use crate::{Line, Lines};

use super::gauge::Gauge;

/// Reads lines until the stream ends. Waits while the lines that were read are not taken.
pub(super) fn read_lines(
    mut source: impl Read,
    max_bytes: usize,
    inbox: &Gauge,
    outbox: &Gauge,
    mut each: impl FnMut(Line),
) {
    let mut lines = Lines::new(max_bytes);
    let mut buffer = vec![0; BUFFER];
    loop {
        inbox.wait_for_room();
        outbox.wait_for_room();
        let count = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // A stream that fails has ended.
            Err(_) => break,
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        lines.feed(bytes, |line| take(line, inbox, &mut each));
    }
    if let Some(line) = lines.finish() {
        take(line, inbox, &mut each);
    }
}

fn take(line: Line, inbox: &Gauge, each: &mut impl FnMut(Line)) {
    if !line.is_blank() {
        inbox.add(line.len());
        each(line);
    }
}

const BUFFER: usize = 64 << 10;
