//! The one place where requests and events are seen: whoever measures or traces looks here.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use countersign_canon::{Json, Limits};
use countersign_event::{EventType, Line};
use countersign_store::Stored;

use crate::Role;

/// Something that happened at the door.
#[non_exhaustive]
pub enum Observed<'a> {
    /// A request was answered.
    Request(&'a Answered<'a>),
    /// An event was recorded, by whomever.
    Event(&'a Stored),
}

/// A policy in the shadow that would have decided otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowDifference {
    /// The policy.
    pub policy: String,
    /// What was decided: `allow`, `warn`, `transform`, `escalate` or `deny`.
    pub decided: String,
    /// What the policy would have decided.
    pub would: String,
}

impl Observed<'_> {
    /// Which policies in the shadow would have decided otherwise. The decision in the log names what
    /// each of them said, so whoever counts reads nothing else.
    pub fn shadow_differences(&self) -> Vec<ShadowDifference> {
        let Self::Event(event) = self else {
            return Vec::new();
        };
        let Ok(line) = Line::read(&event.line) else {
            return Vec::new();
        };
        if line.event_type != EventType::PolicyDecision {
            return Vec::new();
        }
        let payload = Json::admit(line.payload, &Limits::event()).unwrap_or(Json::Null);
        let decided = payload.get("verdict").and_then(Json::as_str);
        let said = payload.get("reason_codes").and_then(Json::as_array);
        let one = |said: &Json| {
            let (policy, would) = said.as_str()?.rsplit_once('=')?;
            let decided = decided.filter(|decided| *decided != would)?;
            Some(ShadowDifference {
                policy: policy.to_owned(),
                decided: decided.to_owned(),
                would: would.to_owned(),
            })
        };
        said.unwrap_or_default().iter().filter_map(one).collect()
    }
}

/// A request that was answered. It has no content.
#[derive(Debug)]
pub struct Answered<'a> {
    /// Its name.
    pub id: &'a str,
    /// The method.
    pub method: &'a str,
    /// The path of the route, not the path that was asked for; `None` if there is no such route.
    pub route: Option<&'static str>,
    /// The status of the answer.
    pub status: u16,
    /// How long the answer took.
    pub time: Duration,
    /// Who asked: the id of the token and its role.
    pub caller: Option<(&'a str, Role)>,
    /// What the caller said, with its trace.
    pub headers: &'a HeaderMap,
}

/// Is told of everything, on the thread that does it: it must be quick and must not block.
pub type Observer = Arc<dyn Fn(&Observed<'_>) + Send + Sync>;

/// Tells what was counted, in the text format of Prometheus.
pub type Metrics = Arc<dyn Fn() -> String + Send + Sync>;
