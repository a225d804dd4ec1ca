//! The snapshot: the fold, and the questions it answers.

use countersign_canon::{Hash, Json, Limits, Numbers};
use countersign_event::MAX_EXACT;

use crate::calls::{OpenCalls, RecentCalls};
use crate::form::{Malformed, Members, ObjectText};
use crate::labels::Labels;
use crate::progress::Progress;
use crate::sanitized::SanitizedKeys;
use crate::{
    Call, Counters, Fact, FactError, Handoff, LastOutcomes, LoopRules, LoopViolation, Name, Next,
    SnapshotError, Taint, Terms, Trust, View, loops,
};

mod apply;

/// The state of a session after some of its events.
///
/// `Snapshot::default()` is the state before the first event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    closed: bool,
    counters: Counters,
    handoff: Option<Handoff>,
    labels: Labels,
    last: LastOutcomes,
    open_calls: OpenCalls,
    progress: Progress,
    recent_calls: RecentCalls,
    sanitized_keys: SanitizedKeys,
    taint: Taint,
    trust: Trust,
}

impl Snapshot {
    /// No snapshot has more bytes, however long its session is.
    pub const MAX_BYTES: usize = 448 << 10;

    /// What was used up.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The untrusted content that was taken in. Empty again once the session has ended.
    pub fn taint(&self) -> &Taint {
        &self.taint
    }

    /// Whether any untrusted content was taken in, no tool being trusted.
    pub fn is_tainted(&self) -> bool {
        self.taint.is_tainted()
    }

    /// Whether untrusted content was taken in, other than the output of these tools.
    pub fn is_tainted_for(&self, trusted_tools: &dyn Fn(Option<&str>, &str) -> bool) -> bool {
        self.taint.untrusted(trusted_tools).next().is_some()
    }

    /// Whether text was made safe under this key.
    pub fn is_sanitized(&self, key: &str) -> bool {
        self.sanitized_keys.contains(key)
    }

    /// The information labels of everything that tools gave, in code point order.
    pub fn labels(&self) -> impl Iterator<Item = &Name> {
        self.labels.iter()
    }

    /// How far the acting agent is trusted, no tool being trusted.
    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// How far the acting agent is trusted if the output of these tools is.
    pub fn trust_for(&self, trusted_tools: &dyn Fn(Option<&str>, &str) -> bool) -> Trust {
        let Some(handoff) = self.handoff.as_ref().filter(|_| !self.closed) else {
            return self.trust;
        };
        let mut untrusted = self.taint.untrusted(trusted_tools);
        match untrusted.any(|source| source.first_seq < handoff.seq) {
            true => self.trust,
            false => Trust::Full,
        }
    }

    /// The latest hand-off.
    pub fn handoff(&self) -> Option<&Handoff> {
        self.handoff.as_ref()
    }

    /// The latest outcomes.
    pub fn last(&self) -> &LastOutcomes {
        &self.last
    }

    /// The newest calls that named their tool, 32 at most, oldest first.
    pub fn recent_calls(&self) -> &[Call] {
        self.recent_calls.as_slice()
    }

    /// Calls that were neither answered nor denied, with their ids.
    pub fn open_calls(&self) -> impl Iterator<Item = (&Name, &Call)> {
        self.open_calls.iter()
    }

    /// Whether the session has ended.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The loop that the newest call makes, if it makes one.
    pub fn loop_violation(&self, rules: &LoopRules) -> Option<LoopViolation> {
        loops::find(None, &self.recent_calls, &self.progress, rules)
    }

    /// The loop that this call would make if it were proposed next: what
    /// [`Snapshot::loop_violation`] says once it has been.
    pub fn loop_violation_with(&self, next: &Call, rules: &LoopRules) -> Option<LoopViolation> {
        loops::find(Some(next), &self.recent_calls, &self.progress, rules)
    }

    /// What policies see; with `next`, at the moment before that call is counted.
    pub fn view(&self, next: Option<&Next<'_>>, terms: &Terms<'_>) -> View {
        let call = next.map(|next| next.call);
        let keys = self.sanitized_keys.iter().filter_map(Name::verbatim);
        View {
            steps_consumed: self.counters.steps_consumed(),
            tool_calls_consumed: self.counters.tool_calls_consumed,
            model_calls_consumed: self.counters.model_calls_consumed,
            wall_time_ms: next.map_or(self.counters.wall_time_ms, |next| {
                self.counters.wall_time_ms_at(next.ts_unix_ms)
            }),
            loop_violation: loops::find(call, &self.recent_calls, &self.progress, terms.loops),
            is_tainted: self.is_tainted_for(terms.trusted_tools),
            labels: self
                .labels()
                .map(|label| label.as_str().to_owned())
                .collect(),
            sanitized_keys: keys.map(str::to_owned).collect(),
        }
    }

    /// The hash of [`Snapshot::to_bytes`]: what a decision names as the state it was made from.
    pub fn hash(&self) -> Hash {
        Hash::of(&self.to_bytes())
    }

    /// The durable form: canonical text (RFC 8785).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(USUAL_BYTES);
        ObjectText::begin(&mut text)
            .member("closed", &self.closed)
            .member("counters", &self.counters)
            .member("handoff", &self.handoff)
            .member("labels", &self.labels)
            .member("last", &self.last)
            .member("open_calls", &self.open_calls)
            .member("progress", &self.progress)
            .member("recent_calls", &self.recent_calls)
            .member("sanitized_keys", &self.sanitized_keys)
            .member("taint", &self.taint)
            .member("trust", &self.trust)
            .member("version", &VERSION)
            .end();
        text
    }

    /// Reads back exactly what [`Snapshot::to_bytes`] wrote.
    ///
    /// That the text has the form of a snapshot does not make it the right one: compare
    /// [`Snapshot::hash`] with the hash in the log.
    pub fn from_bytes(text: &[u8]) -> Result<Self, SnapshotError> {
        let snapshot = Self::read(&Json::admit(text, &LIMITS)?)?;
        match snapshot.to_bytes() == text {
            true => Ok(snapshot),
            false => Err(SnapshotError::NotExact),
        }
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        let members = Members::of(json)?;
        Ok(Self {
            closed: members.read("closed")?,
            counters: members.read("counters")?,
            handoff: members.read("handoff")?,
            labels: members.read("labels")?,
            last: members.read("last")?,
            open_calls: members.read("open_calls")?,
            progress: members.read("progress")?,
            recent_calls: members.read("recent_calls")?,
            sanitized_keys: members.read("sanitized_keys")?,
            taint: members.read("taint")?,
            trust: members.read("trust")?,
        })
    }

    fn expects(&self, fact: &Fact<'_>) -> Result<(), FactError> {
        let expected = self.counters.events;
        if self.closed {
            return Err(FactError::Closed(fact.event_type));
        }
        if fact.seq != expected {
            return Err(FactError::NotNext {
                expected,
                found: fact.seq,
            });
        }
        if fact.seq >= MAX_EXACT || fact.ts_unix_ms > MAX_EXACT {
            return Err(FactError::OutOfRange { seq: fact.seq });
        }
        Ok(())
    }
}

/// Changes whenever the same events give other bytes.
const VERSION: u64 = 3;

/// What a busy session needs.
const USUAL_BYTES: usize = 8 << 10;

const LIMITS: Limits = Limits {
    max_bytes: Snapshot::MAX_BYTES,
    max_depth: 8,
    numbers: Numbers::Double,
};
