//! What others said on the way to a verdict.
//!
//! Annotators and policy engines elsewhere do not always say the same. What they said is kept with the
//! decision, word by word and in order; when the decision is taken again, it is read from there, and
//! nobody is asked.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_canon::{Json, Limits};

/// Listens once, or reads back what was heard.
#[derive(Debug, Default)]
pub struct Hearing {
    /// What was heard the first time; `None` the first time.
    given: Option<Mutex<VecDeque<Json>>>,
    said: Mutex<Vec<Json>>,
}

/// Why somebody said nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unheard {
    /// They failed.
    Failed(String),
    /// They took too long.
    TimedOut(String),
}

impl Hearing {
    /// Reads back what was heard. Without a record nobody had said anything.
    pub fn again(record: Option<&Json>) -> Self {
        let entries = record.and_then(Json::as_array).unwrap_or_default();
        Self {
            given: Some(Mutex::new(entries.iter().cloned().collect())),
            said: Mutex::default(),
        }
    }

    /// What `who` says: asked now, or as it was heard.
    ///
    /// FAIL-CLOSED: whoever is not next in the record has said nothing.
    pub fn hear(
        &self,
        who: &str,
        ask: impl FnOnce() -> Result<Json, Unheard>,
    ) -> Result<Json, Unheard> {
        let Some(given) = &self.given else {
            let said = ask();
            lock(&self.said).push(entry(who, &said));
            return said;
        };
        let next = lock(given).pop_front();
        let next = next.filter(|entry| entry.get("who").and_then(Json::as_str) == Some(who));
        match next {
            None => Err(Unheard::Failed(format!("no answer of {who} is recorded"))),
            Some(entry) => {
                let said = read(&entry);
                lock(&self.said).push(entry);
                said
            }
        }
    }

    /// What was heard, for the log; `None` if nobody was asked.
    pub fn into_record(self) -> Option<Json> {
        let said = self
            .said
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        (!said.is_empty()).then_some(Json::Array(said))
    }
}

/// Answers are kept as text: an event cannot hold every number.
fn entry(who: &str, said: &Result<Json, Unheard>) -> Json {
    let (member, text) = match said {
        Ok(said) => (
            SAID,
            String::from_utf8_lossy(&said.to_sorted()).into_owned(),
        ),
        Err(Unheard::Failed(problem)) => (FAILED, problem.clone()),
        Err(Unheard::TimedOut(problem)) => (TIMED_OUT, problem.clone()),
    };
    Json::object([("who", Json::from(who)), (member, Json::from(text))])
}

fn read(entry: &Json) -> Result<Json, Unheard> {
    let text = |member: &str| entry.get(member).and_then(Json::as_str);
    if let Some(said) = text(SAID) {
        return Json::admit(said.as_bytes(), &ANSWER)
            .map_err(|error| Unheard::Failed(format!("the record is not readable: {error}")));
    }
    match text(TIMED_OUT) {
        Some(problem) => Err(Unheard::TimedOut(problem.to_owned())),
        None => Err(Unheard::Failed(text(FAILED).unwrap_or_default().to_owned())),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const SAID: &str = "said";
const FAILED: &str = "failed";
const TIMED_OUT: &str = "timed_out";
/// Larger and deeper than any answer that was let through.
const ANSWER: Limits = Limits {
    max_bytes: 4 << 20,
    max_depth: 128,
    ..Limits::plan()
};

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::admit(text.as_bytes(), &Limits::plan()).unwrap()
    }

    #[test]
    fn what_was_heard_is_read_back_in_order_and_nobody_is_asked() {
        let first = Hearing::default();
        let big = json(r#"{"score":184467440737095516150,"half":0.5}"#);
        assert_eq!(first.hear("a", || Ok(big.clone())), Ok(big.clone()));
        let late = Unheard::TimedOut("late".to_owned());
        assert_eq!(first.hear("b", || Err(late.clone())), Err(late.clone()));
        let record = first.into_record().unwrap();

        let again = Hearing::again(Some(&record));
        let nobody = || -> Result<Json, Unheard> { panic!("somebody was asked") };
        assert_eq!(again.hear("a", nobody), Ok(big));
        assert_eq!(again.hear("b", nobody), Err(late));
        assert!(matches!(again.hear("c", nobody), Err(Unheard::Failed(_))));
        assert_eq!(again.into_record(), Some(record.clone()));

        let other = Hearing::again(Some(&record));
        assert!(matches!(other.hear("b", nobody), Err(Unheard::Failed(_))));
        assert_eq!(Hearing::default().into_record(), None);
    }
}
