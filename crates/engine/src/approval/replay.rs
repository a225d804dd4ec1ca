//! What came of an approval that was used already.

use countersign_store::Filter;

use super::redeem::Redeemed;
use super::*;
use crate::Engine;

/// What came of an approval that was used already.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// Where it is in its life.
    pub state: State,
    /// What the tool said, if it said something and the session was not erased.
    pub result: Option<RecordedResult>,
}

/// What a tool said.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedResult {
    /// Its words.
    pub content: Json,
    /// Whether it says that it failed.
    pub is_error: bool,
}

impl Engine {
    pub(crate) fn replayed(&self, id: ApprovalId, state: State) -> Redeemed {
        match self.replay(id, state) {
            Ok(replay) => Redeemed::Replayed(Box::new(replay)),
            Err(fault) => Redeemed::Failed(fault.into()),
        }
    }

    fn replay(&self, id: ApprovalId, state: State) -> Result<Replay, Fault> {
        let reader = self.store().reader();
        let row = reader.approval(id)?;
        let row = row.ok_or_else(|| history("the approval is gone"))?;
        let state = match row.state {
            // The row was read before the use was durable, or somebody changed it back.
            State::Pending | State::Approved => state,
            state => state,
        };
        let result = match state {
            State::Executed | State::Failed | State::Unknown => self.result(&row)?,
            _ => None,
        };
        Ok(Replay { state, result })
    }

    fn result(&self, row: &Approval) -> Result<Option<RecordedResult>, Fault> {
        let reader = self.store().reader();
        let Some(asked) = reader.event(&row.scope, row.seq)? else {
            return Ok(None);
        };
        let line = Line::read(&asked.line).map_err(|error| history(&error.to_string()))?;
        let filter = Filter {
            event_type: Some(EventType::ToolResult),
            ..Filter::session(&row.scope)
        };
        let mut result = None;
        reader.each(&filter, asked.id, |event| {
            let about = Line::read(&event.line).map_err(|error| history(&error.to_string()))?;
            if result.is_none() && about.refs.call_id == line.refs.call_id {
                result = reader.open_payload(&event).ok().and_then(recorded);
            }
            Ok::<_, Fault>(())
        })?;
        Ok(result)
    }
}

fn recorded(payload: Json) -> Option<RecordedResult> {
    Some(RecordedResult {
        content: payload.get("content")?.clone(),
        is_error: payload
            .get("is_error")
            .and_then(Json::as_bool)
            .unwrap_or_default(),
    })
}
