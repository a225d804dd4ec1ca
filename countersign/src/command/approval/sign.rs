//! A decision, signed and handed in.

use countersign_approval::{BallotPaper, CallDecision, Cast, Decision, State, UnixMs};
use countersign_canon::Json;
use countersign_engine::{Desk, Standing, Voted};

use super::card::verb;
use crate::clock::now_unix_ms;
use crate::command::approver::key::ApproverKey;
use crate::errors::{Code, Failure};
use crate::output::{self, Format, visible};

/// Signs one decision about every call of a request, and hands it in. It counts once this returns.
pub(super) fn decide(
    decision: &Decision,
    standing: &Standing,
    key: &ApproverKey,
    desk: &Desk,
) -> Result<Voted, Failure> {
    let calls = standing.envelope.plan().calls().iter();
    let paper = BallotPaper {
        decisions: calls
            .map(|call| CallDecision {
                call: call.id.clone(),
                decision: decision.clone(),
            })
            .collect(),
        approver: key.person.clone(),
        display: standing.rendering.display_sha256(),
        signed_at: UnixMs::new(now_unix_ms()?),
    };
    let submission = paper.sign(&standing.envelope, &key.secret);
    let voted = desk.vote(&submission.to_text())?;
    match voted.cast {
        Cast::Counted | Cast::Repeated => Ok(voted),
        Cast::Late | Cast::AlreadyDecided => Err(Failure::new(
            Code::Approval,
            format!(
                "`{}` was decided already: it is `{}`",
                voted.id, voted.state
            ),
        )),
    }
}

/// What became of it, in a line.
pub(super) fn summary(decision: &Decision, voted: &Voted, key: &ApproverKey) -> String {
    let Voted {
        id, state, counted, ..
    } = voted;
    let (said, who) = (verb(decision), &key.person);
    let (so_far, required) = counted;
    match (state, voted.cast) {
        (State::Approved, _) => format!("APPROVED ✓  {id}, {said} by {who}"),
        (State::Denied, _) => format!("DENIED ✗  {id}, {said} by {who}"),
        (_, Cast::Repeated) => {
            format!("HOLD ⏸  {id}, {said} by {who} before; {required} must approve")
        }
        _ => format!("HOLD ⏸  {id}, {said} by {who}; {so_far} of {required} have voted"),
    }
}

pub(super) fn print(
    decision: &Decision,
    voted: &Voted,
    key: &ApproverKey,
    format: Format,
) -> Result<(), Failure> {
    let printed = match format {
        Format::Text => output::text(&visible(&summary(decision, voted, key))),
        Format::Json => output::json(&Json::object([
            ("approval_id", Json::from(voted.id.to_string())),
            ("decision", Json::from(decision.as_str())),
            ("effect", Json::from(voted.cast.as_str())),
            ("state", Json::from(voted.state.as_str())),
            ("approver", Json::from(key.person.to_string())),
            ("key_id", Json::from(key.id.to_string())),
            ("votes", Json::from(voted.counted.0 as u64)),
            ("required", Json::from(voted.counted.1 as u64)),
        ])),
    };
    // It counts, whether anybody reads so or not.
    Ok(printed?)
}
