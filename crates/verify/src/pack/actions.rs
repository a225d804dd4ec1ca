//! The three questions, answered for every action from what was recorded.

use std::collections::BTreeMap;

use countersign_canon::{Hash, Json, Limits};
use countersign_event::payload::OTHER;
use countersign_event::{EventType, Line};

use super::account::AllTold;
use super::approvals::Approvals;
use super::events::{Events, Opened};
use super::policies::Manifests;

/// One action of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The tenant.
    pub tenant_id: String,
    /// The session.
    pub session_id: String,
    /// The call.
    pub call_id: String,
    /// The tool, if it was proposed in this pack.
    pub tool: Option<String>,
    /// When it was first seen.
    pub ts_unix_ms: u64,
    /// What authority was available?
    pub available: Answer,
    /// What authority was exercised?
    pub exercised: Answer,
    /// What changed between approval and execution?
    pub changed: Answer,
    /// What the answers are made from, under `available`, `exercised` and `changed`.
    pub facts: Json,
    /// The hash of its record, if the pack has one.
    pub record: Option<Hash>,
    /// Its decision envelope, if the pack has one.
    pub envelope: Option<Json>,
}

/// An answer from the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The record says so.
    Known(String),
    /// The record of this pack does not say.
    Unknown(String),
    /// The record shows that something is wrong.
    Wrong(String),
}

impl Answer {
    /// The words.
    pub fn text(&self) -> &str {
        match self {
            Self::Known(text) | Self::Unknown(text) | Self::Wrong(text) => text,
        }
    }

    /// One word for scripts.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Known(_) => "known",
            Self::Unknown(_) => "unknown",
            Self::Wrong(_) => "wrong",
        }
    }
}

/// What the events of one call say.
#[derive(Default)]
struct Story {
    tool: Option<String>,
    ts_unix_ms: u64,
    verdict: Option<String>,
    policy: Option<String>,
    rule: Option<String>,
    /// What was said about its result.
    reviewed: Option<String>,
    approval: Option<String>,
    asked: Option<String>,
    decided: Vec<(bool, String)>,
    decided_plan: Option<String>,
    denied: Option<String>,
    allowed: Option<String>,
    executed: Option<String>,
    ran: bool,
    answered: Option<bool>,
    drifts: Vec<Drift>,
    /// What the call changed, if somebody observed it and it is disclosed.
    state: Option<Json>,
    leases: Vec<String>,
}

/// A call that was refused because its arguments were not those that had been approved.
struct Drift {
    /// The digests of both, if they are disclosed.
    digests: Option<(String, String)>,
}

pub(super) fn answers(
    events: &Events<'_>,
    opened: &Opened,
    approvals: &Approvals,
    manifests: &Manifests,
    mut told: AllTold,
) -> Vec<Action> {
    let mut stories: BTreeMap<(String, String, String), (usize, Story)> = BTreeMap::new();
    for (at, line) in events.lines.iter().enumerate() {
        let Some(call) = line.refs.call_id.as_deref() else {
            continue;
        };
        if matches!(
            line.event_type,
            EventType::ModelCallStarted | EventType::ModelCallFinished
        ) {
            continue;
        }
        let name = (
            line.tenant_id.to_string(),
            line.session_id.to_string(),
            call.to_owned(),
        );
        let story = stories
            .entry(name)
            .or_insert_with(|| (at, Story::default()));
        story.1.take(line, opened);
    }
    let mut stories: Vec<_> = stories.into_iter().collect();
    stories.sort_by_key(|(_, (at, _))| *at);
    stories
        .into_iter()
        .map(|(name, (_, mut story))| {
            let told = told.remove(&name);
            let (tenant_id, session_id, call_id) = name;
            let (record, envelope, leases) = match told {
                None => (None, None, Vec::new()),
                Some(told) => (Some(told.record), Some(told.envelope), told.leases),
            };
            story.leases = leases;
            Action {
                available: story.available(approvals, manifests),
                exercised: story.exercised(),
                changed: story.changed(&call_id, approvals),
                facts: story.facts(approvals, manifests),
                tenant_id,
                session_id,
                call_id,
                tool: story.tool,
                ts_unix_ms: story.ts_unix_ms,
                record,
                envelope,
            }
        })
        .collect()
}

impl Story {
    fn take(&mut self, line: &Line<'_>, opened: &Opened) {
        let limits = Limits {
            max_bytes: usize::MAX,
            ..Limits::event()
        };
        // A line that was admitted has a payload that is.
        let payload = Json::admit(line.payload, &limits).unwrap_or(Json::Null);
        let text = |name| payload.get(name).and_then(Json::as_str).map(str::to_owned);
        if self.ts_unix_ms == 0 {
            self.ts_unix_ms = line.ts_unix_ms;
        }
        match line.event_type {
            EventType::ToolCallProposed => self.tool = text("tool_name"),
            // Whether the agent may see a result says nothing about whether the call was allowed.
            EventType::PolicyDecision
                if text("intervention_point").as_deref() == Some("post_tool_call") =>
            {
                self.reviewed = text("verdict").or_else(|| text("outcome"));
            }
            EventType::PolicyDecision => {
                self.verdict = text("verdict").or_else(|| text("outcome"));
                self.policy = text("policy_digest");
                self.rule = text("policy_ref");
            }
            EventType::ApprovalRequested => {
                self.approval = text("approval_id");
                self.asked = text("plan_hash");
            }
            EventType::ApprovalDecided => {
                let approved = payload.get("approved").and_then(Json::as_bool);
                let by = text("decided_by").unwrap_or_else(|| "somebody".to_owned());
                if let Some(approved) = approved {
                    self.decided.push((approved, by));
                }
                self.decided_plan = text("plan_hash").or_else(|| self.decided_plan.take());
            }
            EventType::ToolCallDenied => {
                self.denied = Some(text("reason_code").unwrap_or_else(|| "denied".to_owned()));
            }
            EventType::ToolCallAllowed => {
                self.approval = text("approval_id").or_else(|| self.approval.take());
                self.allowed = Some(text("action_digest").unwrap_or_default());
            }
            EventType::ToolCallExecuted => {
                self.ran = true;
                self.executed = text("action_digest");
            }
            EventType::ToolResult => {
                self.answered = payload
                    .get("is_error")
                    .and_then(Json::as_bool)
                    .or(Some(false));
                self.state = state(line, opened);
            }
            EventType::ErrorRaised if text("code").as_deref() == Some(ARGUMENT_DRIFT) => {
                let message = opened.get(&(line.hash, "/message".to_owned()));
                let digest = |name| Some(message?.get(name)?.as_str()?.to_owned());
                let approved = digest("approved_args_digest");
                let digests = approved.zip(digest("observed_args_digest"));
                self.drifts.push(Drift { digests });
            }
            EventType::ErrorRaised => self.state = state(line, opened).or(self.state.take()),
            _ => {}
        }
    }

    fn available(&self, approvals: &Approvals, manifests: &Manifests) -> Answer {
        let Some(verdict) = &self.verdict else {
            return Answer::Unknown("no policy decision about it is in the pack".to_owned());
        };
        let mut text = format!("policy said {verdict}");
        if let Some(rule) = &self.rule {
            text.push_str(&format!(" by {rule}"));
        }
        if let Some(policy) = &self.policy {
            match manifests.get(policy) {
                Some((name, version)) => {
                    text.push_str(&format!(" ({policy}, manifest `{name}` {version})"));
                }
                None => text.push_str(&format!(" ({policy})")),
            }
        }
        if let Some(verdict) = &self.reviewed {
            text.push_str(&format!("; about its result: {verdict}"));
        }
        if !self.leases.is_empty() {
            text.push_str(&format!("; leases in force: {}", self.leases.join(", ")));
        }
        if let Some(id) = &self.approval {
            text.push_str(&format!("; approval {id}"));
            for (approved, by) in &self.decided {
                let word = if *approved { "approved" } else { "denied" };
                text.push_str(&format!(", {word} by {by}"));
            }
            if let Some(approval) = approvals.get(id) {
                let signed = approval.votes.join(" and ");
                if !signed.is_empty() {
                    text.push_str(&format!(", signed by {signed}"));
                }
            }
        }
        Answer::Known(text)
    }

    fn exercised(&self) -> Answer {
        if let Some(reason) = &self.denied {
            return Answer::Known(format!("none: the call was denied ({reason})"));
        }
        match (&self.allowed, self.ran) {
            (Some(_), true) => {
                let outcome = match self.answered {
                    Some(true) => "and reported an error",
                    Some(false) => "and answered",
                    None => "and nothing is recorded about its answer",
                };
                let bytes = self.executed.as_deref().unwrap_or("unknown bytes");
                Answer::Known(format!("the call ran with {bytes} {outcome}"))
            }
            (Some(_), false) => Answer::Known("none: it was allowed and did not run".to_owned()),
            (None, true) => Answer::Wrong("the call ran without having been allowed".to_owned()),
            (None, false) => Answer::Known("none: it was neither allowed nor run".to_owned()),
        }
    }

    fn changed(&self, call_id: &str, approvals: &Approvals) -> Answer {
        let answer = self.changed_bytes(call_id, approvals);
        let mut more = self.changed_state();
        let drifts = self.drifts.iter().map(|drift| match &drift.digests {
            Some((approved, observed)) => format!(
                "arguments {observed} came where {approved} had been approved, and were refused"
            ),
            None => "other arguments than the approved ones came, and were refused".to_owned(),
        });
        more.extend(drifts);
        if more.is_empty() {
            return answer;
        }
        let text = format!("{}; also, {}", answer.text(), more.join(", and "));
        match answer {
            Answer::Known(_) => Answer::Known(text),
            Answer::Unknown(_) => Answer::Unknown(text),
            Answer::Wrong(_) => Answer::Wrong(text),
        }
    }

    /// The state that was observed around the call.
    fn changed_state(&self) -> Vec<String> {
        let text = |name: &str| self.state.as_ref()?.get(name)?.as_str();
        let Some(kind) = text("state_digest_kind") else {
            return Vec::new();
        };
        let said = match (text("pre_state_digest"), text("post_state_digest")) {
            (Some(before), Some(after)) if before == after => {
                format!("the observed state ({kind}) stayed {before}")
            }
            (Some(before), Some(after)) => {
                format!("the observed state ({kind}) was {before} before and {after} after")
            }
            _ => format!("the state ({kind}) was observed on one side only"),
        };
        vec![said]
    }

    fn changed_bytes(&self, call_id: &str, approvals: &Approvals) -> Answer {
        if !self.ran {
            return Answer::Known("nothing ran".to_owned());
        }
        if let (Some(asked), Some(decided)) = (&self.asked, &self.decided_plan)
            && asked != decided
        {
            return Answer::Wrong(format!("asked about plan {asked}, decided about {decided}"));
        }
        let (Some(allowed), Some(executed)) = (&self.allowed, &self.executed) else {
            return Answer::Unknown("the digests of the bytes are not recorded".to_owned());
        };
        if allowed != executed {
            return Answer::Wrong(format!("{allowed} was allowed, {executed} ran"));
        }
        let plan = self.approval.as_ref().and_then(|id| approvals.get(id));
        let Some(approval) = plan else {
            return match &self.approval {
                None => Answer::Known(format!("nothing: {allowed} was allowed and ran")),
                Some(id) => Answer::Unknown(format!(
                    "{allowed} was allowed and ran; whether that was approved is sealed in {id}"
                )),
            };
        };
        let mut calls = approval.envelope.plan().calls().iter();
        match calls.find(|call| call.id.as_str() == call_id) {
            None => Answer::Wrong("the approved plan does not hold this call".to_owned()),
            // Some doors send the arguments inside a message of their own.
            Some(call) if call.args.digest().to_string() != *executed => Answer::Unknown(format!(
                "{executed} was allowed for the approved plan {} and ran; that these bytes hold \
                 the approved arguments is the word of the door",
                approval.envelope.plan().hash()
            )),
            Some(_) => Answer::Known(format!("nothing: {executed} was approved, allowed and ran")),
        }
    }

    /// The same for programs. What is not recorded or not disclosed is null.
    fn facts(&self, approvals: &Approvals, manifests: &Manifests) -> Json {
        let text = |text: &Option<String>| Json::from(text.clone());
        let manifest = self.policy.as_ref().and_then(|it| manifests.get(it));
        let manifest = manifest.map_or(Json::Null, |(name, version)| {
            Json::object([
                ("name", Json::from(name.as_str())),
                ("version", Json::from(version.as_str())),
            ])
        });
        let votes = self.decided.iter().map(|(approved, by)| {
            Json::object([
                ("approved", Json::Bool(*approved)),
                ("by", Json::from(by.as_str())),
            ])
        });
        let approval = self.approval.as_ref().and_then(|id| approvals.get(id));
        let signed = approval.map_or(&[][..], |approval| &approval.votes);
        let available = Json::object([
            ("verdict", text(&self.verdict)),
            ("about_result", text(&self.reviewed)),
            ("policy_ref", text(&self.rule)),
            ("policy_digest", text(&self.policy)),
            ("manifest", manifest),
            ("approval_id", text(&self.approval)),
            ("decisions", Json::Array(votes.collect())),
            ("signed_by", texts(signed)),
            ("leases", texts(&self.leases)),
        ]);
        let exercised = Json::object([
            ("allowed", Json::Bool(self.allowed.is_some())),
            ("denied", text(&self.denied)),
            ("ran", Json::Bool(self.ran)),
            ("action_digest", text(&self.executed)),
            ("is_error", self.answered.map_or(Json::Null, Json::from)),
        ]);
        let drifts = self.drifts.iter().map(|drift| {
            let (approved, observed) = drift.digests.clone().unzip();
            Json::object([
                ("approved_args_digest", text(&approved)),
                ("observed_args_digest", text(&observed)),
            ])
        });
        let changed = Json::object([
            ("allowed_digest", text(&self.allowed)),
            ("executed_digest", text(&self.executed)),
            ("asked_plan", text(&self.asked)),
            ("decided_plan", text(&self.decided_plan)),
            ("refused_drifts", Json::Array(drifts.collect())),
            ("state", self.state.clone().unwrap_or(Json::Null)),
        ]);
        Json::object([
            ("available", available),
            ("exercised", exercised),
            ("changed", changed),
        ])
    }
}

/// What an event tells of a state, which is sealed with the members that no table names.
fn state(line: &Line<'_>, opened: &Opened) -> Option<Json> {
    let members = opened.get(&(line.hash, OTHER.to_owned()))?;
    members.get("state").cloned()
}

fn texts(texts: &[String]) -> Json {
    Json::Array(texts.iter().cloned().map(Json::from).collect())
}

const ARGUMENT_DRIFT: &str = "approval:argument_drift";
