//! Requests that may come twice and count once.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
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
    /// Oldest first.
    order: VecDeque<(Instant, Name)>,
    bytes: usize,
}

/// Who asked, and what they call the request.
type Name = (String, String);

struct Entry {
    request: Hash,
    answer: Option<(StatusCode, Bytes)>,
}

/// What to do with a request.
pub(crate) enum First {
    /// It was answered before, like this.
    No(Reply),
    /// It is the first; its answer is to be kept under this name.
    Yes(Option<Name>),
}

impl Memory {
    /// Whether the request is the first with its key.
    pub(crate) fn begin(&self, call: &Call, path: &str) -> Result<First, Problem> {
        let Some(key) = call.headers.get(IDEMPOTENCY_KEY) else {
            return Ok(First::Yes(None));
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
        kept.forget();
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
        if kept.by_key.len() >= MAX_KEYS {
            return Err(Problem::new(
                Kind::Overloaded,
                "too many idempotency keys are in use",
            ));
        }
        kept.order.push_back((Instant::now(), name.clone()));
        kept.by_key.insert(
            name.clone(),
            Entry {
                request,
                answer: None,
            },
        );
        Ok(First::Yes(Some(name)))
    }

    /// Keeps what was answered. What failed by our own fault may be tried again.
    pub(crate) fn end(&self, name: Name, answer: &Result<Reply, Problem>) {
        let mut kept = lock(&self.0);
        let content = match answer {
            Ok(reply) => match &reply.content {
                Content::Whole(bytes) if bytes.len() <= MAX_ANSWER => {
                    Some((reply.status, bytes.clone()))
                }
                _ => None,
            },
            Err(_) => None,
        };
        match content {
            None => drop(kept.by_key.remove(&name)),
            Some(content) => {
                kept.bytes += content.1.len();
                if let Some(entry) = kept.by_key.get_mut(&name) {
                    entry.answer = Some(content);
                }
            }
        }
    }
}

impl Kept {
    fn forget(&mut self) {
        while let Some((at, name)) = self.order.front() {
            let is_old = at.elapsed() > DAY;
            let is_full = self.by_key.len() >= MAX_KEYS || self.bytes > MAX_BYTES;
            let entry = self.by_key.get(name);
            let is_answered = entry.is_none_or(|entry| entry.answer.is_some());
            if !(is_old || is_full && is_answered) {
                return;
            }
            let answer = self.by_key.remove(name).and_then(|entry| entry.answer);
            self.bytes = self
                .bytes
                .saturating_sub(answer.map_or(0, |(_, bytes)| bytes.len()));
            self.order.pop_front();
        }
    }
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const DAY: Duration = Duration::from_secs(24 * 3600);
const MAX_KEYS: usize = 10_000;
const MAX_BYTES: usize = 16 << 20;
const MAX_ANSWER: usize = 64 << 10;
