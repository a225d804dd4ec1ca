//! One verdict for each call, in order.

use crate::call::ToolCall;
use crate::decision::CallDecision;
use countersign_canon::Quoted;

/// Checks that the verdicts are one for each call, in the order of the calls.
pub(crate) fn check(calls: &[ToolCall], decisions: &[CallDecision]) -> Result<(), BijectionError> {
    if calls.len() != decisions.len() {
        return Err(BijectionError::Count {
            calls: calls.len(),
            decisions: decisions.len(),
        });
    }
    let mut pairs = calls.iter().zip(decisions).enumerate();
    match pairs.find(|(_, (call, decision))| call.id != decision.call) {
        None => Ok(()),
        Some((place, (call, decision))) => Err(BijectionError::Place {
            place,
            expected: call.id.as_str().to_owned(),
            found: decision.call.as_str().to_owned(),
        }),
    }
}

/// The verdicts are not one for each call, in order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BijectionError {
    /// There are more or fewer of them.
    #[error("{decisions} decisions for {calls} calls")]
    Count {
        /// How many calls.
        calls: usize,
        /// How many verdicts.
        decisions: usize,
    },
    /// One is for another call than the one at its place.
    #[error(
        "decision {place} is for call {} instead of {}",
        Quoted(found),
        Quoted(expected)
    )]
    Place {
        /// Where, from 0.
        place: usize,
        /// The call at this place.
        expected: String,
        /// The call that the verdict names.
        found: String,
    },
}
