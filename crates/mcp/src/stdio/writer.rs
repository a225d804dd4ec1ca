//! Writing lines to a stream, without anybody waiting for it.

use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use super::gauge::Gauge;

/// A stream that is written by a thread of its own.
pub(crate) struct Writer {
    queue: Option<Sender<Vec<u8>>>,
    gauge: Gauge,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(
        name: &str,
        stream: impl Write + Send + 'static,
        gauge: Gauge,
    ) -> io::Result<Self> {
        let (queue, lines) = channel();
        let written = gauge.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || write(stream, &lines, &written))?;
        Ok(Self {
            queue: Some(queue),
            gauge,
            thread: Some(thread),
        })
    }

    /// Puts a line on its way. A stream that is closed takes nothing.
    pub(crate) fn send(&self, line: Vec<u8>) {
        if let Some(queue) = &self.queue {
            self.gauge.add(line.len());
            // The thread ends only when the queue is closed.
            let _ = queue.send(line);
        }
    }

    /// Closes the stream once everything is written.
    pub(crate) fn close(&mut self) {
        self.queue = None;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.queue.is_none()
    }

    /// Closes the stream and waits until everything is written.
    pub(crate) fn finish(mut self) {
        self.close();
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

fn write(stream: impl Write, lines: &Receiver<Vec<u8>>, gauge: &Gauge) {
    let mut stream = BufWriter::with_capacity(BUFFER, stream);
    let mut broken = false;
    while let Some(line) = next(lines, &mut stream, &mut broken) {
        if !broken {
            let written = stream
                .write_all(&line)
                .and_then(|()| stream.write_all(b"\n"));
            // Nobody reads any more: the rest is let go, so that nobody waits for it.
            broken = written.is_err();
        }
        gauge.sub(line.len());
    }
}

/// The next line. What was written before is flushed before anybody waits.
fn next(lines: &Receiver<Vec<u8>>, stream: &mut impl Write, broken: &mut bool) -> Option<Vec<u8>> {
    match lines.try_recv() {
        Ok(line) => return Some(line),
        Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
    }
    if !*broken {
        *broken = stream.flush().is_err();
    }
    lines.recv().ok()
}

const BUFFER: usize = 64 << 10;
