//! Bodies that are read with a limit, each and all together.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How much of all bodies together may be held.
///
/// Small bodies have a part of it for themselves: whoever fills the rest, and takes their time, keeps nobody from
/// sending a few words.
#[derive(Clone)]
pub struct Room {
    all: Arc<Semaphore>,
    small: Arc<Semaphore>,
}

/// A body that was read, with its share of the room.
pub struct Held {
    /// What it says.
    pub bytes: Vec<u8>,
    /// Its share of the room: kept as long as the bytes are.
    pub share: Share,
}

/// A part of the room that somebody has taken.
pub struct Share {
    room: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

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
        let room = |bytes: usize| Arc::new(Semaphore::new(bytes / UNIT));
        Self {
            all: room(bytes),
            small: room(bytes / SMALL_PART),
        }
    }

    /// A share that is empty.
    pub fn share(&self) -> Share {
        Share::of(&self.all)
    }

    /// A share for a body of which this is known.
    fn share_for(&self, most: Option<u64>) -> Share {
        match most {
            Some(0..=SMALL) => Share::of(&self.small),
            Some(_) | None => self.share(),
        }
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
            share: self.share_for(body.size_hint().upper()),
        };
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
            if !held.share.cover(length) {
                return Err(ReadError::NoRoom);
            }
            held.bytes.extend_from_slice(&data);
        }
        Ok(held)
    }
}

impl Share {
    fn of(room: &Arc<Semaphore>) -> Self {
        Self {
            room: Arc::clone(room),
            taken: None,
        }
    }

    /// Whether it is as large as this. It grows, if there is room.
    pub fn cover(&mut self, bytes: usize) -> bool {
        let has = self.units();
        let Some(missing) = bytes.div_ceil(UNIT).checked_sub(has).filter(|one| *one > 0) else {
            return true;
        };
        // Twice as much each time, so that somebody who needs much asks rarely.
        self.grow(missing.max(has)) || self.grow(missing)
    }

    /// Gives back what is over this.
    pub fn shrink(&mut self, bytes: usize) {
        let over = self.units().saturating_sub(bytes.div_ceil(UNIT));
        drop(self.taken.as_mut().and_then(|taken| taken.split(over)));
    }

    fn units(&self) -> usize {
        let taken = self.taken.as_ref();
        taken.map_or(0, OwnedSemaphorePermit::num_permits)
    }

    fn grow(&mut self, units: usize) -> bool {
        let Ok(units) = u32::try_from(units) else {
            return false;
        };
        let Ok(more) = Arc::clone(&self.room).try_acquire_many_owned(units) else {
            return false;
        };
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            None => self.taken = Some(more),
        }
        true
    }
}

const UNIT: usize = 1024;
/// Most messages are smaller.
const SMALL: u64 = 16 << 10;
/// The part of a room that is for small bodies alone.
const SMALL_PART: usize = 8;
const BEGINNING: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn small_bodies_have_room_where_large_ones_have_taken_theirs() {
        let room = Room::new(80 * UNIT);
        let mut large = room.share();
        assert!(large.cover(80 * UNIT));
        let body = |bytes: usize| http_body_util::Full::new(Bytes::from(vec![0; bytes]));
        let time = Duration::from_secs(10);
        let read = async |bytes| room.read(body(bytes), 1 << 20, time).await;
        let small = read(10 * UNIT).await.unwrap();
        // Their own part has an end, too.
        assert!(matches!(read(1).await, Err(ReadError::NoRoom)));
        drop(small);
        assert!(read(1).await.is_ok());
        assert!(matches!(read(17 * UNIT).await, Err(ReadError::NoRoom)));
    }

    #[test]
    fn shares_take_what_there_is_and_give_back_what_they_do_not_need() {
        let room = Room::new(10 * UNIT);
        let [mut one, mut other] = [room.share(), room.share()];
        assert!(one.cover(6 * UNIT) && other.cover(3 * UNIT));
        // Not twice as much, but as much as it needs.
        assert!(other.cover(3 * UNIT + 1) && !other.cover(4 * UNIT + 1));
        one.shrink(2 * UNIT - 1);
        assert_eq!((one.units(), other.units()), (2, 4));
        assert!(other.cover(8 * UNIT) && !one.cover(2 * UNIT + 1));
        drop(other);
        one.shrink(0);
        assert!(room.share().cover(10 * UNIT));
    }
}
