//! What stands in for parts of a question that cannot be read.
//!
//! FAIL-CLOSED: such a part grants nothing and has used up everything. So the rule that looks at it speaks,
//! in its turn; and where none does, whoever asks is refused all the same.

use countersign_canon::{Json, Object};

use crate::manifest::Problem;

/// The manifest without what cannot be read; `None` if that belongs to no rule.
pub(super) fn granting_nothing(manifest: &Json, problems: &[Problem]) -> Option<Json> {
    let mut rest = manifest.clone();
    let mut places = problems.iter().map(Problem::pointer);
    places.all(|place| take(place, &mut rest)).then_some(rest)
}

/// Each part with the rule that looks at it.
fn take(place: &str, manifest: &mut Json) -> bool {
    let mut names = place.split('/').skip(1);
    let names = [names.next(), names.next(), names.next(), names.next()];
    match names {
        // Undeclared: nothing is.
        [None, ..] => *manifest = Json::Object(Object::new()),
        [Some("permissions"), None, ..] => drop(without("permissions", Some(manifest))),
        [Some("permissions"), Some(part @ "tools"), _, None] => {
            drop(without_permission(part, manifest))
        }
        // Egress, exec: nowhere, and no program.
        [Some("permissions"), Some(part @ ("net" | "exec")), ..] => {
            drop(without_permission(part, manifest));
        }
        // Budget: no step is left.
        [Some("permissions"), Some(part @ "budgets"), limit, _] if limit.is_none_or(is_limit) => {
            let none = Json::object([("max_steps", Json::from(0_u64))]);
            let permissions = permissions(manifest).and_then(Json::as_object_mut);
            permissions.map(|all| all.insert(part.to_owned(), none));
        }
        _ => return false,
    }
    true
}

/// Of what a session may use; the others are what an allowed call must keep to.
fn is_limit(name: &str) -> bool {
    matches!(
        name,
        "max_steps" | "max_tool_calls" | "max_model_calls" | "max_wall_time_ms"
    )
}

fn permissions(manifest: &mut Json) -> Option<&mut Json> {
    manifest.as_object_mut()?.get_mut("permissions")
}

fn without_permission(part: &str, manifest: &mut Json) -> Option<Json> {
    without(part, permissions(manifest))
}

fn without(part: &str, of: Option<&mut Json>) -> Option<Json> {
    of?.as_object_mut()?.remove(part)
}
