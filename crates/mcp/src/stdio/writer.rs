//! Writing lines to a stream, without anybody waiting for it.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PIPE_BUF;

use super::gauge::Gauge;
use super::mailbox::wait_for;

/// A stream that takes lines. What it cannot take at once is written by a thread of its own.
pub(crate) struct Writer {
    open: Option<Open>,
    is_done: Arc<AtomicBool>,
}

struct Open {
    stream: Arc<File>,
    queue: Sender<Vec<u8>>,
    /// What the thread has not written yet.
    left: Gauge,
    /// Nobody reads any more: what would follow is let go.
    is_broken: Arc<AtomicBool>,
}

impl Writer {
    /// `news` is called when the stream was behind and has caught up, and when everything is written after it
    /// was closed.
    pub(crate) fn start(
        name: &str,
        stream: OwnedFd,
        left: Gauge,
        news: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, lines) = channel();
        let stream = Arc::new(File::from(stream));
        let [is_broken, is_done] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let open = Open {
            stream: Arc::clone(&stream),
            queue,
            left: left.clone(),
            is_broken: Arc::clone(&is_broken),
        };
        let done = Arc::clone(&is_done);
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                write(stream, &lines, &left, (&is_broken, &news));
                done.store(true, Ordering::Release);
                news();
            })?;
        Ok(Self {
            open: Some(open),
            is_done,
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

    /// Whether it was closed and everything is written.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
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
        // Nothing follows a line that was cut.
        if self.is_broken.load(Ordering::Acquire) {
            return bytes.len();
        }
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

/// Writes what comes until the queue is closed, and closes the stream.
fn write(
    stream: Arc<File>,
    lines: &Receiver<Vec<u8>>,
    left: &Gauge,
    (is_broken, news): (&AtomicBool, &impl Fn()),
) {
    while let Ok(mut bytes) = lines.recv() {
        while bytes.len() < BUFFER
            && let Ok(more) = lines.try_recv()
        {
            bytes.extend(more);
        }
        // Nobody reads any more: the rest is let go, so that nobody waits for it.
        if !is_broken.load(Ordering::Acquire) && write_whole(&stream, &bytes).is_err() {
            is_broken.store(true, Ordering::Release);
        }
        if left.sub(bytes.len()) {
            news();
        }
    }
}

/// Writes everything, also to a stream that somebody has set not to wait.
fn write_whole(mut stream: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_for(&mut [PollFd::new(&stream, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

const BUFFER: usize = 64 << 10;
