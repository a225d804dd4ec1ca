//! Reading lines from a stream that has something.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, read};

use crate::{Line, Lines};

/// A stream of lines, until it ends.
pub(super) struct Source {
    open: Option<(OwnedFd, Lines)>,
    buffer: Vec<u8>,
}

impl Source {
    pub(super) fn new(stream: OwnedFd, max_bytes: usize) -> Self {
        Self {
            open: Some((stream, Lines::new(max_bytes))),
            buffer: vec![0; BUFFER],
        }
    }

    /// The stream, unless it has ended.
    pub(super) fn stream(&self) -> Option<BorrowedFd<'_>> {
        self.open.as_ref().map(|(stream, _)| stream.as_fd())
    }

    /// Reads once, which waits if nothing is there; gives the lines that ended.
    pub(super) fn read(&mut self) -> Vec<Line> {
        let mut found = Vec::new();
        let Some((stream, lines)) = &mut self.open else {
            return found;
        };
        match read(&*stream, &mut self.buffer) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            // A stream that fails has ended.
            Ok(0) | Err(_) => found.extend(self.close()),
            Ok(count) => {
                let bytes = self.buffer.get(..count).unwrap_or_default();
                lines.feed(bytes, |line| found.push(line));
            }
        }
        found.retain(|line| !line.is_blank());
        found
    }

    pub(super) fn is_closed(&self) -> bool {
        self.open.is_none()
    }

    /// Reads no more; gives a last line without an end.
    pub(super) fn close(&mut self) -> Option<Line> {
        let (_, lines) = self.open.take()?;
        lines.finish()
    }
}

const BUFFER: usize = 64 << 10;
