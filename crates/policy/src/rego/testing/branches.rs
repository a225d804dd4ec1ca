//! Branches that coverage would not see.
//!
//! The engine counts the lines of conditions and of values in heads, but not the values behind `else`. A
//! last branch without a condition would never be missed, so for the tests it gets one that always holds:
//! its line counts as reached if and only if the branch was. Defaults are worked out whether they speak or
//! not: one counts as reached if a test comes out differently without it.

use countersign_canon::{Json, Limits, Numbers};
use regorus::Engine;

use crate::rego::bundle::Source;
use crate::rego::text;

/// The same policy, with a condition behind each `else` that has none. Lines stay where they are.
pub(super) fn with_conditions(policy: &Source) -> Source {
    let text = rewritten(policy).unwrap_or_else(|| policy.text.clone());
    Source {
        name: policy.name.clone(),
        text,
    }
}

/// Each default of a policy: its line, and the policy without it. Lines stay where they are.
pub(super) fn without_defaults(policy: &Source) -> Vec<(u64, Source)> {
    let rules = rules(policy).unwrap_or_default();
    let without = |rule: &Json| {
        let span = rule.get("Default")?.get("span")?;
        let at = |name: &str| usize::try_from(span.get(name)?.as_u64()?).ok();
        let (start, end) = (at("start")?, closed(at("end")?, &policy.text)?);
        let (before, rest) = policy.text.split_at_checked(start)?;
        let (gone, after) = rest.split_at_checked(end.checked_sub(start)?)?;
        let breaks: String = gone.chars().filter(|c| *c == '\n').collect();
        let source = Source {
            name: policy.name.clone(),
            text: format!("{before}{breaks}{after}"),
        };
        Some((span.get("line")?.as_u64()?, source))
    };
    rules.iter().filter_map(without).collect()
}

fn rewritten(policy: &Source) -> Option<String> {
    let rules = rules(policy)?;
    let mut ends: Vec<usize> = rules.iter().flat_map(open_ends).collect();
    ends.sort_unstable();
    let mut text = policy.text.clone();
    for end in ends.iter().rev() {
        let (before, after) = text.split_at_checked(closed(*end, &text)?)?;
        text = format!("{before} if true{after}");
    }
    Some(text)
}

/// The engine leaves the closing quote out of a text.
fn closed(end: usize, text: &str) -> Option<usize> {
    let quoted = text.get(end..)?.starts_with(['"', '`']);
    Some(end + usize::from(quoted))
}

fn rules(policy: &Source) -> Option<Vec<Json>> {
    let mut engine = Engine::new();
    engine.set_rego_v0(false);
    text::add(policy, &mut engine).ok()?;
    let limits = Limits {
        max_bytes: usize::MAX,
        max_depth: 512,
        numbers: Numbers::Exact,
    };
    let tree = Json::admit(engine.get_ast_as_json().ok()?.as_bytes(), &limits).ok()?;
    let rules = tree.as_array()?.first()?.get("ast")?.get("rules")?;
    Some(rules.as_array()?.to_vec())
}

/// Where the branches of a rule end that have no condition.
fn open_ends(rule: &Json) -> Vec<usize> {
    let bodies = rule.get("Spec").and_then(|spec| spec.get("bodies"));
    let bodies = bodies.and_then(Json::as_array).unwrap_or_default();
    let end = |body: &Json| {
        let is_else = body.get("is_else")?.as_bool()?;
        let conditions = body.get("query")?.get("stmts")?.as_array()?;
        let end = body.get("span")?.get("end")?.as_u64()?;
        (is_else && conditions.is_empty()).then_some(usize::try_from(end).ok()?)
    };
    bodies.iter().filter_map(end).collect()
}
