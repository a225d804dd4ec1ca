//! Writing lines to a stream, without anybody waiting for it.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PIPE_BUF;

use super::gauge::Gauge;

/// A stream that takes lines. What it cannot take at once is written by a thread of its own.
pub(crate) struct Writer {
    open: Option<Open>,
    thread: Option<JoinHandle<()>>,
}

struct Open {
    stream: Arc<File>,
    queue: Sender<Vec<u8>>,
    /// What the thread has not written yet.
    left: Gauge,
}

impl Writer {
    /// `has_room` is called when the stream was behind and has caught up.
    pub(crate) fn start(
        name: &str,
        stream: OwnedFd,
        left: Gauge,
        has_room: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, lines) = channel();
        let stream = Arc::new(File::from(stream));
        let open = Open {
            stream: Arc::clone(&stream),
            queue,
            left: left.clone(),
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || write(&stream, &lines, &left, &has_room))?;
        Ok(Self {
            open: Some(open),
            thread: Some(thread),
        })
    }

    /// Puts a line on its way. A stream that is closed takes nothing.
    pub(crate) fn send(&self, mut line: Vec<u8>) {
        if let Some(open) = &self.open {
            line.push(b'\n');
            open.send(line);
        }
    }

    /// Closes the stream once everything is written.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.open.is_none()
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

impl Open {
    fn send(&self, mut bytes: Vec<u8>) {
        let written = self.written_at_once(&bytes);
        if written < bytes.len() {
            let rest = bytes.split_off(written);
            self.left.add(rest.len());
            // The thread ends only when the queue is closed.
            let _ = self.queue.send(rest);
        }
    }

    /// How much the stream took without making anybody wait. It takes as much as a pipe promises to,
    /// and only if nothing is before it.
    fn written_at_once(&self, bytes: &[u8]) -> usize {
        if bytes.len() > PIPE_BUF || !self.left.is_empty() || !self.is_ready() {
            return 0;
        }
        // What is wrong with the stream, the thread finds out.
        (&*self.stream).write(bytes).unwrap_or(0)
    }

    fn is_ready(&self) -> bool {
        let mut stream = [PollFd::new(&self.stream, PollFlags::OUT)];
        poll(&mut stream, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

fn write(mut stream: &File, lines: &Receiver<Vec<u8>>, left: &Gauge, has_room: &impl Fn()) {
    let mut broken = false;
    while let Ok(mut bytes) = lines.recv() {
        while bytes.len() < BUFFER
            && let Ok(more) = lines.try_recv()
        {
            bytes.extend(more);
        }
        // Nobody reads any more: the rest is let go, so that nobody waits for it.
        broken = broken || stream.write_all(&bytes).is_err();
        if left.sub(bytes.len()) {
            has_room();
        }
    }
}

const BUFFER: usize = 64 << 10;
