//! Requests that may come twice and count once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::http::header::HeaderName;
use bytes::Bytes;
use countersign_canon::Hash;

use crate::api::lock;
use crate::call::Call;
use crate::problem::{Kind, Problem};
use crate::reply::{Content, Reply};

/// What was answered to requests that had a key. It lasts as long as the process, and a day at most.
#[derive(Default)]
pub(crate) struct Memory(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_key: HashMap<Name, Entry>,
    /// By their numbers: oldest first.
    order: BTreeMap<u64, (Instant, Name)>,
    last: u64,
    bytes: usize,
}

/// Who asked, and what they call the request.
type Name = (String, String);

struct Entry {
    number: u64,
    request: Hash,
    answer: Option<(StatusCode, Bytes)>,
}

/// What to do with a request.
pub(crate) enum First {
    /// It was answered before, like this.
    No(Reply),
    /// It is the first, and nobody will ask for its answer.
    Nameless,
    /// It is the first; its answer is to be kept.
    Named(Place),
}

/// The place of an answer. Without one it is given up, and the request may be tried again.
pub(crate) struct Place {
    memory: Arc<Memory>,
    name: Name,
    number: u64,
}

impl Memory {
    /// Whether the request is the first with its key.
    pub(crate) fn begin(self: &Arc<Self>, call: &Call, path: &str) -> Result<First, Problem> {
        // What anybody may ask has nobody whose key it could be.
        let key = call.headers.get(IDEMPOTENCY_KEY);
        let Some(key) = key.filter(|_| !call.route.permission.is_open()) else {
            return Ok(First::Nameless);
        };
        let key = key
            .to_str()
            .ok()
            .filter(|key| (1..=255).contains(&key.len()));
        let key = key.ok_or_else(|| {
            Problem::new(
                Kind::Parameter,
                "an `Idempotency-Key` has 1 to 255 plain characters",
            )
        })?;
        let name = (call.caller.id.clone(), key.to_owned());
        let method = call.route.method.as_str();
        let request =
            Hash::of_parts(&[method.as_bytes(), b" ", path.as_bytes(), b"\n", &call.body]);
        let mut kept = lock(&self.0);
        kept.forget(Instant::now());
        match kept.by_key.get(&name) {
            None => {}
            Some(entry) if entry.request != request => {
                let text = "the same key came with another request";
                return Err(Problem::new(Kind::Idempotency, text));
            }
            Some(Entry {
                answer: Some((status, bytes)),
                ..
            }) => {
                let mut reply = Reply::bytes(*status, "application/json", bytes.clone());
                let replayed = axum::http::HeaderValue::from_static("true");
                reply.headers.insert(REPLAYED, replayed);
                return Ok(First::No(reply));
            }
            Some(Entry { answer: None, .. }) => {
                let text = "the first request with this key is not answered yet";
                let problem = Problem::new(Kind::InProgress, text);
                return Err(problem.retry_after(Duration::from_secs(1)));
            }
        }
        let number = kept.insert(name.clone(), request, Instant::now())?;
        Ok(First::Named(Place {
            memory: Arc::clone(self),
            name,
            number,
        }))
    }
}

impl Place {
    /// Keeps what was answered. What failed by our own fault may be tried again.
    pub(crate) fn keep(self, answer: &Result<Reply, Problem>) {
        let Ok(reply) = answer else { return };
        if let Content::Whole(bytes) = &reply.content
            && bytes.len() <= MAX_ANSWER
        {
            lock(&self.memory.0).answer(&self.name, self.number, reply.status, bytes);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.memory.0).give_up(&self.name, self.number);
    }
}

impl Kept {
    fn insert(&mut self, name: Name, request: Hash, now: Instant) -> Result<u64, Problem> {
        if self.by_key.len() >= MAX_KEYS {
            let text = "too many idempotency keys are in use";
            return Err(Problem::new(Kind::Overloaded, text));
        }
        self.last += 1;
        let entry = Entry {
            number: self.last,
            request,
            answer: None,
        };
        self.order.insert(self.last, (now, name.clone()));
        self.by_key.insert(name, entry);
        Ok(self.last)
    }

    fn answer(&mut self, name: &Name, number: u64, status: StatusCode, bytes: &Bytes) {
        let entry = self.by_key.get_mut(name);
        if let Some(entry) = entry.filter(|entry| entry.number == number) {
            self.bytes += bytes.len();
            entry.answer = Some((status, bytes.clone()));
        }
    }

    fn give_up(&mut self, name: &Name, number: u64) {
        let entry = self.by_key.get(name);
        if entry.is_some_and(|entry| entry.number == number && entry.answer.is_none()) {
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u64) {
        let Some((_, name)) = self.order.remove(&number) else {
            return;
        };
        let answer = self.by_key.remove(&name).and_then(|entry| entry.answer);
        let freed = answer.map_or(0, |(_, bytes)| bytes.len());
        self.bytes = self.bytes.saturating_sub(freed);
    }

    /// Lets go of what is old and, where there is no room, of what was answered first.
    fn forget(&mut self, now: Instant) {
        while let Some(number) = self.first_to_go(now) {
            self.remove(number);
        }
    }

    fn first_to_go(&self, now: Instant) -> Option<u64> {
        let is_full = self.by_key.len() >= MAX_KEYS || self.bytes > MAX_BYTES;
        let is_answered = |name: &Name| {
            let entry = self.by_key.get(name);
            entry.is_none_or(|entry| entry.answer.is_some())
        };
        let mut order = self.order.iter();
        let answered = order.find(|(_, (_, name))| is_answered(name));
        answered
            .filter(|(_, (at, _))| is_full || now.saturating_duration_since(*at) > DAY)
            .map(|(number, _)| *number)
    }
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const DAY: Duration = Duration::from_secs(24 * 3600);
const MAX_KEYS: usize = 10_000;
const MAX_BYTES: usize = 16 << 20;
const MAX_ANSWER: usize = 64 << 10;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at once")]

    use super::*;

    fn name(key: usize) -> Name {
        ("somebody".to_owned(), key.to_string())
    }

    #[test]
    fn what_is_given_up_leaves_nothing_behind() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        for _ in 0..3 * MAX_KEYS {
            let number = kept.insert(name(1), Hash::of(b""), now).unwrap();
            kept.give_up(&name(1), number);
        }
        assert_eq!((kept.order.len(), kept.by_key.len()), (0, 0));
    }

    #[test]
    fn the_answers_that_came_first_make_room_and_those_under_way_stay() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        let under_way = kept.insert(name(0), Hash::of(b""), now).unwrap();
        for key in 1..2 * MAX_KEYS {
            kept.forget(now);
            let number = kept.insert(name(key), Hash::of(b""), now).unwrap();
            kept.answer(
                &name(key),
                number,
                StatusCode::OK,
                &Bytes::from_static(b"1"),
            );
        }
        assert_eq!(kept.by_key.len(), MAX_KEYS);
        assert_eq!(kept.bytes, MAX_KEYS - 1);
        assert_eq!(kept.by_key.get(&name(0)).unwrap().number, under_way);
        assert!(!kept.by_key.contains_key(&name(1)));
        kept.forget(now + DAY + Duration::from_secs(1));
        assert_eq!((kept.by_key.len(), kept.bytes), (1, 0));
    }

    #[test]
    fn who_comes_late_touches_nobody_who_has_the_name_now() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        let old = kept.insert(name(1), Hash::of(b""), now).unwrap();
        kept.remove(old);
        let new = kept.insert(name(1), Hash::of(b""), now).unwrap();
        kept.answer(&name(1), old, StatusCode::OK, &Bytes::from_static(b"1"));
        kept.give_up(&name(1), old);
        let entry = kept.by_key.get(&name(1)).unwrap();
        assert!(entry.number == new && entry.answer.is_none());
    }
}
