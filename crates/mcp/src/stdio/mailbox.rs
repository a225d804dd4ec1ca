//! News from other threads for one that waits for streams.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Wake;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Where news comes to.
pub(super) struct Mailbox<T> {
    news: Receiver<T>,
    bell: Arc<Bell>,
    rings: UnixStream,
}

/// The way there.
pub(super) struct Post<T> {
    news: Sender<T>,
    bell: Arc<Bell>,
}

/// Makes a stream readable while there may be news.
pub(super) struct Bell {
    has_rung: AtomicBool,
    stream: UnixStream,
}

impl<T> Mailbox<T> {
    pub(super) fn new() -> io::Result<(Self, Post<T>)> {
        let (stream, rings) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        rings.set_nonblocking(true)?;
        let bell = Arc::new(Bell {
            has_rung: AtomicBool::new(false),
            stream,
        });
        let (sender, news) = channel();
        let post = Post {
            news: sender,
            bell: Arc::clone(&bell),
        };
        Ok((Self { news, bell, rings }, post))
    }

    /// Can be read while there may be news.
    pub(super) fn stream(&self) -> BorrowedFd<'_> {
        self.rings.as_fd()
    }

    /// Waits until there may be news.
    pub(super) fn wait(&self) -> io::Result<()> {
        wait_for(&mut [PollFd::new(&self.rings, PollFlags::IN)], None)
    }

    /// Whatever has come, without waiting.
    pub(super) fn take(&self) -> impl Iterator<Item = T> {
        // Whoever rings after this is heard the next time.
        let _ = (&self.rings).read(&mut [0; 16]);
        self.bell.has_rung.swap(false, Ordering::AcqRel);
        self.news.try_iter()
    }
}

/// Waits until one of these streams has something, or for so long.
pub(super) fn wait_for(streams: &mut [PollFd<'_>], time: Option<&Timespec>) -> io::Result<()> {
    match poll(streams, time) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl<T> Post<T> {
    /// When nobody waits any more, nobody needs to hear.
    pub(super) fn send(&self, news: T) {
        let _ = self.news.send(news);
        self.bell.ring();
    }

    pub(super) fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.bell)
    }
}

impl<T> Clone for Post<T> {
    fn clone(&self) -> Self {
        Self {
            news: self.news.clone(),
            bell: Arc::clone(&self.bell),
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

impl Bell {
    pub(super) fn ring(&self) {
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            let _ = (&self.stream).write(&[1]);
        }
    }
}
