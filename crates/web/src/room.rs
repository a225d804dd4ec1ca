//! Bodies that are read with a limit, each and all together.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How much of all bodies together may be held.
#[derive(Clone)]
pub struct Room(Arc<Semaphore>);

/// A body that was read, with its share of the room.
pub struct Held {
    /// What it says.
    pub bytes: Vec<u8>,
    /// Its share of the room: kept as long as the bytes are.
    pub share: Share,
}

/// A part of the room that somebody has taken.
#[derive(Default)]
pub struct Share(Vec<OwnedSemaphorePermit>);

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It has more bytes than it may.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// How many it may have.
        limit: usize,
        /// The first of them.
        beginning: Vec<u8>,
    },
    /// Others have taken all the room.
    #[error("too much is on its way; try again")]
    NoRoom,
    /// It was not all there in time.
    #[error("the body did not come in time")]
    TooSlow,
    /// It ended too early.
    #[error("the body broke off")]
    Broken,
}

impl Room {
    /// Room for so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / UNIT)))
    }

    /// Reads a whole body, or none of it.
    pub async fn read<B>(&self, body: B, limit: usize, time: Duration) -> Result<Held, ReadError>
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
            share: Share::default(),
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
                held.share.0.push(share.map_err(|_| ReadError::NoRoom)?);
                room += more as usize * UNIT;
            }
            held.bytes.extend_from_slice(&data);
        }
        Ok(held)
    }
}

const UNIT: usize = 1024;
const BEGINNING: usize = 4096;
