//! What a permit advises beside allowing.

use cedar_policy::{Effect, Policy, PolicySet};
use countersign_canon::{Json, Limits};
use countersign_policy::{Decision, Verdict};

use super::object;

/// Advice is read when the policies are made ready: what is wrong with it must not wait for a request.
pub(super) fn check(policies: &PolicySet) -> Result<(), String> {
    for policy in policies.policies() {
        let Some(text) = policy.annotation(ADVICE) else {
            continue;
        };
        if policy.effect() == Effect::Forbid {
            return Err(format!(
                "`{}`: a forbid denies, and gives no advice",
                super::name(policy)
            ));
        }
        let advised = read(text);
        if let Err(problem) = advised {
            return Err(format!("`{}`: @advice: {problem}", super::name(policy)));
        }
    }
    Ok(())
}

/// The answer of permits: the strictest of what they advise.
pub(super) fn verdict(permits: &[&Policy]) -> Result<Json, String> {
    let mut strictest: Option<(Decision, Json)> = None;
    for policy in permits {
        let Some(text) = policy.annotation(ADVICE) else {
            continue;
        };
        let (decision, advised) = read(text)?;
        match &strictest {
            Some((before, other))
                if *before == Decision::Transform
                    && decision == Decision::Transform
                    && other.get("transform") != advised.get("transform") =>
            {
                return Err("two policies change the action, and differently".to_owned());
            }
            Some((before, _)) if *before >= decision => {}
            _ => strictest = Some((decision, advised)),
        }
    }
    let allow = || Json::object([("decision", "allow".into())]);
    Ok(strictest.map_or_else(allow, |(_, advised)| advised))
}

/// Reads `{verdict, reason, message, transform}` as an answer of a policy.
fn read(text: &str) -> Result<(Decision, Json), String> {
    let advice =
        Json::admit(text.as_bytes(), &Limits::plan()).map_err(|error| error.to_string())?;
    let members = advice.as_object().ok_or("it must be an object")?;
    let unknown = members
        .iter()
        .find(|(name, _)| !["verdict", "reason", "message", "transform"].contains(name));
    if let Some((name, _)) = unknown {
        return Err(format!("unknown field `{name}`"));
    }
    let verdict = members.get("verdict").and_then(Json::as_str);
    let decision = match verdict {
        Some("warn") => Decision::Warn,
        Some("escalate") => Decision::Escalate,
        Some("transform") => Decision::Transform,
        _ => return Err("`verdict` must be warn, escalate or transform".to_owned()),
    };
    let field = |name: &str| members.get(name).cloned();
    let answer = Json::Object(object([
        ("decision", Some(decision.as_str().into())),
        ("reason", field("reason")),
        ("message", field("message")),
        ("transform", field("transform")),
    ]));
    match Verdict::from_policy(&answer) {
        Ok(_) => Ok((decision, answer)),
        Err(error) => Err(error.to_string()),
    }
}

const ADVICE: &str = "advice";
