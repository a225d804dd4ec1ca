//! From the events of a session to CloudEvents.

use std::collections::BTreeMap;

use countersign_canon::{Error, Hash, Json};
use countersign_event::{EventType, Scope};
use countersign_redact::Redactor;

use super::data;
use super::event::{CloudEvent, Parts, Producer};
use crate::Event;

/// Converts the events of one session, in their order. The same events give the same bytes.
pub struct Converter {
    run: String,
    producer: Producer,
    redactor: Redactor,
    /// The tools of calls: a decision names its call only.
    tools: BTreeMap<String, String>,
}

impl Converter {
    /// A converter for a session.
    pub fn new(scope: &Scope, producer: Producer, redactor: Redactor) -> Self {
        Self {
            run: run_id(scope, &redactor),
            producer,
            redactor,
            tools: BTreeMap::new(),
        }
    }

    /// The id of the run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The events that an event of the log becomes: itself, and before the first one the start of the run.
    pub fn convert(&mut self, event: &Event) -> Result<Vec<CloudEvent>, Error> {
        let mut events = Vec::with_capacity(2);
        if event.seq == 0 {
            events.push(self.started(event.at_unix_ms)?);
        }
        events.push(self.event(event)?);
        Ok(events)
    }

    fn started(&self, at_unix_ms: u64) -> Result<CloudEvent, Error> {
        let record = data::started(&self.run, &self.redactor);
        let parts = Parts {
            kind: "assay.profile.started".to_owned(),
            run: &self.run,
            seq: 0,
            at_unix_ms,
            subject: None,
            policy: None,
            may_be_personal: false,
            data: data::closed(record, None),
        };
        CloudEvent::new(parts, &self.producer)
    }

    fn event(&mut self, event: &Event) -> Result<CloudEvent, Error> {
        let payload = &event.payload;
        let text = |name: &str| payload.get(name).and_then(Json::as_str);
        let call = text("call_id").unwrap_or_default();
        if let (EventType::ToolCallProposed, Some(tool)) = (event.event_type, text("tool_name")) {
            self.tools.insert(call.to_owned(), tool.to_owned());
        }
        let tool = text("tool_name").or_else(|| self.tools.get(call).map(String::as_str));
        let (record, may_be_personal) = data::of(payload, &self.redactor);
        let record = match event.event_type {
            EventType::PolicyDecision => {
                data::decision(record, tool.unwrap_or_default(), payload, &self.redactor)
            }
            EventType::Termination => data::finished(record, event.seq + 1),
            _ => record,
        };
        let parts = Parts {
            kind: kind(event.event_type),
            run: &self.run,
            seq: event.seq + 1,
            at_unix_ms: event.at_unix_ms,
            subject: tool.map(|tool| format!("tool:{}", self.redactor.text(tool))),
            policy: text("policy_digest").map(str::to_owned),
            may_be_personal,
            data: data::closed(record, Some(event.event_type)),
        };
        CloudEvent::new(parts, &self.producer)
    }
}

/// The types that others know, and our own for the rest.
fn kind(event_type: EventType) -> String {
    match event_type {
        EventType::PolicyDecision => "assay.tool.decision".to_owned(),
        EventType::Termination => "assay.profile.finished".to_owned(),
        other => {
            let name = other.as_str().to_ascii_lowercase().replace('_', ".");
            format!("countersign.{name}")
        }
    }
}

/// The session, if its id may stand in an id as it is; else a digest of it. The id must hold no colon.
fn run_id(scope: &Scope, redactor: &Redactor) -> String {
    let session = scope.session.as_str();
    let plain = session.len() <= 128
        && scope.tenant.as_str() == "default"
        && session
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && redactor.text(session).as_str() == session;
    match plain {
        true => session.to_owned(),
        false => {
            let parts: [&[u8]; 3] = [scope.tenant.as_str().as_bytes(), b"\0", session.as_bytes()];
            let hash = Hash::of_parts(&parts).to_string();
            format!("run_{}", hash.chars().take(32).collect::<String>())
        }
    }
}
