//! Bodies: read with a limit, written as they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// A body that we send.
pub(super) enum Sent {
    /// All of it is there.
    Whole(Option<Bytes>),
    /// It comes piece by piece.
    Stream(mpsc::Receiver<Bytes>),
}

/// How much of all bodies together may be held.
#[derive(Clone)]
pub(super) struct Room(Arc<Semaphore>);

/// A body that was read, with its share of the room.
pub(super) struct Held {
    pub(super) bytes: Vec<u8>,
    _share: Vec<OwnedSemaphorePermit>,
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("larger than {limit} bytes")]
    TooLarge { limit: usize, beginning: Vec<u8> },
    #[error("too much is on its way; try again")]
    NoRoom,
    #[error("the body did not come in time")]
    TooSlow,
    #[error("the body broke off")]
    Broken,
}

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / UNIT)))
    }

    /// Reads a whole body, or none of it.
    pub(super) async fn read<B>(
        &self,
        body: B,
        limit: usize,
        time: Duration,
    ) -> Result<Held, ReadError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if expected > limit {
            let beginning = Vec::new();
            return Err(ReadError::TooLarge { limit, beginning });
        }
        let reading = self.read_slowly(body, limit);
        let read = tokio::time::timeout(time, reading).await;
        read.map_err(|_| ReadError::TooSlow)?
    }

    async fn read_slowly<B>(&self, mut body: B, limit: usize) -> Result<Held, ReadError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let mut held = Held {
            bytes: Vec::new(),
            _share: Vec::new(),
        };
        let mut room = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| ReadError::Broken)?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let length = held.bytes.len() + data.len();
            if length > limit {
                held.bytes.extend_from_slice(&data);
                held.bytes.truncate(BEGINNING);
                let beginning = held.bytes;
                return Err(ReadError::TooLarge { limit, beginning });
            }
            if length > room {
                // Twice as much each time, so that a large body asks rarely.
                let more = (length - room).max(room).div_ceil(UNIT);
                let more = u32::try_from(more).map_err(|_| ReadError::NoRoom)?;
                let share = Arc::clone(&self.0).try_acquire_many_owned(more);
                held._share.push(share.map_err(|_| ReadError::NoRoom)?);
                room += more as usize * UNIT;
            }
            held.bytes.extend_from_slice(&data);
        }
        Ok(held)
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(pieces) => pieces
                .poll_recv(context)
                .map(|piece| piece.map(|piece| Ok(Frame::data(piece)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

impl From<Vec<u8>> for Sent {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Whole((!bytes.is_empty()).then(|| bytes.into()))
    }
}

const UNIT: usize = 1024;
const BEGINNING: usize = 4096;
