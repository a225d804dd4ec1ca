//! What a session has used up.

use countersign_canon::Json;

use crate::form::{Form, Malformed, Members, ObjectText};

/// What a session has used up so far, for budgets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// How many events there are; also the next sequence number.
    pub events: u64,
    /// How many model calls were started.
    pub model_calls_consumed: u64,
    /// How many tool calls were proposed, whatever became of them.
    pub tool_calls_consumed: u64,
    /// The timestamp of the first event.
    pub session_start_ms: Option<u64>,
    /// From the first event to the latest one, by their timestamps. It never gets smaller: a clock
    /// that goes back gives no budget back.
    pub wall_time_ms: u64,
}

impl Counters {
    /// Model calls and tool calls; other events are no steps.
    pub fn steps_consumed(&self) -> u64 {
        self.model_calls_consumed + self.tool_calls_consumed
    }

    /// What the wall time would be after an event at this moment.
    pub fn wall_time_ms_at(&self, ts_unix_ms: u64) -> u64 {
        let start = self.session_start_ms.unwrap_or(ts_unix_ms);
        self.wall_time_ms.max(ts_unix_ms.saturating_sub(start))
    }

    pub(crate) fn count_event(&mut self, ts_unix_ms: u64) {
        self.wall_time_ms = self.wall_time_ms_at(ts_unix_ms);
        self.session_start_ms.get_or_insert(ts_unix_ms);
        self.events += 1;
    }
}

impl Form for Counters {
    fn write(&self, out: &mut Vec<u8>) {
        ObjectText::begin(out)
            .member("events", &self.events)
            .member("model_calls_consumed", &self.model_calls_consumed)
            .member("session_start_ms", &self.session_start_ms)
            .member("steps_consumed", &self.steps_consumed())
            .member("tool_calls_consumed", &self.tool_calls_consumed)
            .member("wall_time_ms", &self.wall_time_ms)
            .end();
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        let members = Members::of(json)?;
        Ok(Self {
            events: members.read("events")?,
            model_calls_consumed: members.read("model_calls_consumed")?,
            tool_calls_consumed: members.read("tool_calls_consumed")?,
            session_start_ms: members.read("session_start_ms")?,
            wall_time_ms: members.read("wall_time_ms")?,
        })
    }
}
