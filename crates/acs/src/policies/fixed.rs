//! Policies of the type `test`: the same answer every time, or one for each point.

use countersign_canon::Json;

use super::{DispatchError, PolicyCall};
use crate::TestPolicy;

/// The point's own answer (`verdicts`), the policy's (`verdict`), or the fields themselves if they
/// hold a `decision`. What a point says goes before what the policy says.
pub(super) fn answer(policy: &TestPolicy, call: &PolicyCall<'_>) -> Result<Json, DispatchError> {
    let point = call.input.point().as_str();
    [&call.binding.fields, &policy.fields]
        .into_iter()
        .find_map(|fields| {
            let of_point = fields.get("verdicts").and_then(|all| all.get(point));
            let own = || {
                let is_verdict = fields.contains_key("decision");
                is_verdict.then(|| Json::Object(fields.clone()))
            };
            of_point.or(fields.get("verdict")).cloned().or_else(own)
        })
        .ok_or_else(|| DispatchError::Failed("it has no verdict for this point".to_owned()))
}
