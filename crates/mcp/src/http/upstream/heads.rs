//! How much a server may say before it answers.
//!
//! A response may be preceded by any number of heads that say that it will come. They are read one after the other
//! without a pause, on a thread that carries others as well, so there has to be an end to them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};

/// What may still come on a connection before the response whose head is waited for.
#[derive(Clone, Default)]
pub(super) struct Heads(Arc<AtomicUsize>);

/// A stream whose heads are counted.
pub(super) struct Counted<S> {
    stream: S,
    heads: Heads,
}

impl Heads {
    /// A request is about to be sent.
    pub(super) fn expected(&self) {
        self.0.store(MOST, Ordering::Relaxed);
    }

    /// The head of the response is there: its body has limits of its own.
    pub(super) fn came(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub(super) fn counted<S>(&self, stream: S) -> Counted<S> {
        Counted {
            stream,
            heads: self.clone(),
        }
    }

    /// Whether a head is waited for.
    fn are_expected(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// So much of it has come.
    fn take(&self, count: usize) -> io::Result<()> {
        let less = |left: usize| (left > 0).then(|| left.saturating_sub(count).max(1));
        match self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
        {
            Ok(left) if left <= count => {
                Err(io::Error::other("the server does not come to its answer"))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl<S: Read + Unpin> Read for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.heads.are_expected() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let mut piece = [0; PIECE];
        let room = buffer.remaining().min(PIECE);
        let (piece, _) = piece.split_at_mut(room);
        let mut piece = ReadBuf::new(piece);
        ready!(Pin::new(&mut self.stream).poll_read(context, piece.unfilled()))?;
        let came = piece.filled();
        self.heads.take(came.len())?;
        buffer.put_slice(came);
        Poll::Ready(Ok(()))
    }
}

impl<S: Write + Unpin> Write for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }
}

/// Far more than a head has, and what comes of a body before somebody takes it.
const MOST: usize = 1 << 20;
/// Most answers are smaller, with their heads.
const PIECE: usize = 4096;
