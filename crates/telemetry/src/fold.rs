//! From events to spans: one of each event, and one of each action once it has ended.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use countersign_canon::{Json, Limits};
use countersign_event::{EventType, FETCHING, Line, TraceParent, fetching};
use countersign_redact::{Public, Record, Redactor, Sensitive};

use crate::member;
use crate::span::{Ending, Kind, Place, Span, Title, derived, first};

/// Sees events in the order in which they were recorded.
pub struct Fold {
    redactor: Redactor,
    /// The actions that have begun and not ended, by session and call.
    open: HashMap<Session, HashMap<String, Action>>,
    /// The same in the order in which they began, some of them ended since.
    order: VecDeque<(Session, String)>,
    count: usize,
}

type Session = (String, String);

/// What an event tells.
#[derive(Debug, Default)]
pub struct Told {
    /// The span of the event, and that of the action that ends with it.
    pub spans: Vec<Span>,
    /// How long people took to decide, if they did with it.
    pub held: Option<Duration>,
    /// How long the tool took to answer, if it did with it.
    pub upstream: Option<Duration>,
}

/// An action that has begun.
struct Action {
    place: Place,
    id: [u8; 8],
    title: Title,
    kind: Kind,
    start_unix_ms: u64,
    attributes: Record,
    asked_unix_ms: Option<u64>,
    ran_unix_ms: Option<u64>,
}

impl Fold {
    /// Spans without what the redactor finds.
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            open: HashMap::new(),
            order: VecDeque::new(),
            count: 0,
        }
    }

    /// The next event; with what was sealed in it, if that is to be told.
    pub fn take(&mut self, line: &Line<'_>, content: Option<&Json>) -> Told {
        let payload = Json::admit(line.payload, &STORED).unwrap_or(Json::Null);
        let session = (line.tenant_id.to_string(), line.session_id.to_string());
        let call = line.refs.call_id.as_deref().map(str::to_owned);
        let mut told = Told::default();
        if begins(line.event_type)
            && let Some(call) = &call
        {
            let action = self.begun(line, &payload, call, content);
            told.spans.extend(self.keep(session.clone(), call, action));
        }
        let action = call.as_ref().and_then(|call| {
            let calls = self.open.get_mut(&session)?;
            calls.get_mut(call)
        });
        let place = match (&action, &call) {
            (Some(action), _) => Place {
                parent: Some(action.id),
                ..action.place
            },
            // The action began before we looked.
            (None, Some(call)) => Place {
                parent: Some(action_id(&session, call)),
                ..Place::of_session(&session.0, &session.1)
            },
            (None, None) => Place::of_session(&session.0, &session.1),
        };
        told.spans
            .push(event(line, &payload, place, &self.redactor));
        if let Some(action) = action {
            action.note(line, &payload, &self.redactor, &mut told);
            action.add_content(line.event_type, content, &self.redactor);
        }
        if let (Some(ending), Some(call)) = (ending(line.event_type, &payload), &call) {
            let action = self.end(&session, call);
            told.spans.extend(action.map(|action| {
                let action = action.with_error(line.event_type, &payload, &self.redactor);
                action.into_span(line.ts_unix_ms, ending)
            }));
        }
        if line.event_type == EventType::Termination {
            let calls = self.open.remove(&session).unwrap_or_default();
            self.count = self.count.saturating_sub(calls.len());
            let over = calls.into_values();
            told.spans
                .extend(over.map(|action| action.into_span(line.ts_unix_ms, Ending::Unset)));
        }
        told
    }

    fn begun(&self, line: &Line<'_>, payload: &Json, call: &str, content: Option<&Json>) -> Action {
        let redactor = &self.redactor;
        let text = |name: &str| payload.get(name).and_then(Json::as_str);
        let trace = text("traceparent").and_then(|text| text.parse::<TraceParent>().ok());
        let session = (line.tenant_id.to_string(), line.session_id.to_string());
        let place = match &trace {
            Some(trace) => Place::of_caller(trace),
            None => Place::of_session(&session.0, &session.1),
        };
        let mut attributes = scope(Record::default(), line, redactor);
        for (name, value) in payload.as_object().into_iter().flat_map(|it| it.iter()) {
            attributes = member::add(attributes, name, value, redactor);
        }
        let (word, about, kind) = match line.event_type {
            EventType::ModelCallStarted => ("chat", text("model_id"), Kind::Client),
            _ => ("execute_tool", text("tool_name"), Kind::Internal),
        };
        attributes = attributes.public("gen_ai.operation.name", Public::word(word));
        if line.event_type == EventType::ToolCallProposed {
            attributes = attributes.public("gen_ai.tool.type", Public::word("function"));
            if text("server").is_some() {
                let method = method(text("tool_name"), text("definition_digest"));
                attributes = attributes.public("mcp.method.name", Public::word(method));
            }
        }
        let mut action = Action {
            id: action_id(&session, call),
            place,
            title: Title {
                word,
                about: about.map(|about| redactor.text(about)),
            },
            kind,
            start_unix_ms: line.ts_unix_ms,
            attributes,
            asked_unix_ms: None,
            ran_unix_ms: None,
        };
        action.add_content(line.event_type, content, redactor);
        action
    }

    /// Keeps an action; gives the oldest as it is if there are too many.
    fn keep(&mut self, session: Session, call: &str, action: Action) -> Option<Span> {
        let calls = self.open.entry(session.clone()).or_default();
        if calls.insert(call.to_owned(), action).is_none() {
            self.count += 1;
        }
        self.order.push_back((session, call.to_owned()));
        // What has ended since is not looked for one by one.
        if self.order.len() > 2 * MAX_OPEN {
            let open = &self.open;
            self.order.retain(|(session, call)| {
                open.get(session).is_some_and(|it| it.contains_key(call))
            });
        }
        while self.count > MAX_OPEN {
            let (session, call) = self.order.pop_front()?;
            if let Some(action) = self.end(&session, &call) {
                let end = action.start_unix_ms;
                return Some(action.into_span(end, Ending::Unset));
            }
        }
        None
    }

    fn end(&mut self, session: &Session, call: &str) -> Option<Action> {
        let calls = self.open.get_mut(session)?;
        let action = calls.remove(call)?;
        if calls.is_empty() {
            self.open.remove(session);
        }
        self.count = self.count.saturating_sub(1);
        Some(action)
    }
}

impl Action {
    /// What an event on the way says about the whole.
    fn note(&mut self, line: &Line<'_>, payload: &Json, redactor: &Redactor, told: &mut Told) {
        let since = |began: Option<u64>| {
            began.map(|began| Duration::from_millis(line.ts_unix_ms.saturating_sub(began)))
        };
        let wanted: &[&str] = match line.event_type {
            EventType::PolicyDecision => &["outcome", "verdict", "reason_code", "policy_digest"],
            EventType::ApprovalRequested => {
                self.asked_unix_ms = Some(line.ts_unix_ms);
                &["approval_id"]
            }
            EventType::ToolCallAllowed | EventType::ToolCallDenied => {
                told.held = since(self.asked_unix_ms.take());
                &["approval_id", "action_digest", "reason_code"]
            }
            EventType::ToolCallExecuted => {
                told.held = since(self.asked_unix_ms.take());
                self.ran_unix_ms = Some(line.ts_unix_ms);
                &["action_digest"]
            }
            EventType::ToolResult | EventType::ErrorRaised => {
                told.upstream = since(self.ran_unix_ms.take());
                &["is_error", "result_labels", "code"]
            }
            EventType::ModelCallFinished => &[
                "completion_tokens",
                "total_tokens",
                "finish_reason",
                "model_id",
            ],
            _ => &[],
        };
        let mut attributes = std::mem::take(&mut self.attributes);
        for name in wanted {
            if let Some(value) = payload.get(name) {
                attributes = member::add(attributes, name, value, redactor);
            }
        }
        self.attributes = attributes;
    }

    fn add_content(&mut self, kind: EventType, content: Option<&Json>, redactor: &Redactor) {
        let (name, member) = match kind {
            EventType::ToolCallProposed => ("gen_ai.tool.call.arguments", "args"),
            EventType::ToolResult => ("gen_ai.tool.call.result", "content"),
            _ => return,
        };
        if let Some(value) = content.and_then(|content| content.get(member)) {
            let attributes = std::mem::take(&mut self.attributes);
            self.attributes = attributes.sensitive(name, Sensitive::general(value, redactor));
        }
    }

    /// Says in the words of OpenTelemetry that it went wrong.
    fn with_error(mut self, kind: EventType, payload: &Json, redactor: &Redactor) -> Self {
        let text = |name: &str| payload.get(name).and_then(Json::as_str);
        let error = match kind {
            EventType::ToolCallDenied => Some(text("reason_code").unwrap_or("denied")),
            EventType::ErrorRaised => Some(text("code").unwrap_or("error")),
            EventType::ToolResult if is_error(payload) => Some("tool_error"),
            _ => None,
        };
        if let Some(error) = error {
            let error = Public::name(error, redactor);
            self.attributes = self.attributes.public("error.type", error);
        }
        self
    }

    fn into_span(self, end_unix_ms: u64, ending: Ending) -> Span {
        Span {
            place: self.place,
            id: self.id,
            title: self.title,
            kind: self.kind,
            start_unix_ms: self.start_unix_ms,
            end_unix_ms: end_unix_ms.max(self.start_unix_ms),
            ending,
            attributes: self.attributes,
        }
    }
}

/// The span of an event. It has no length: an event is a moment.
fn event(line: &Line<'_>, payload: &Json, place: Place, redactor: &Redactor) -> Span {
    let mut attributes = scope(Record::default(), line, redactor)
        .public(
            "countersign.event.type",
            Public::word(line.event_type.as_str()),
        )
        .public("countersign.event.seq", Public::count(line.seq))
        .public("countersign.event.hash", Public::hash(&line.hash));
    for (name, value) in payload.as_object().into_iter().flat_map(|it| it.iter()) {
        attributes = member::add(attributes, name, value, redactor);
    }
    if line.seal.is_some() {
        attributes = attributes.forbidden("countersign.payload.sealed");
    }
    Span {
        place,
        id: first(&line.hash),
        title: Title {
            word: line.event_type.as_str(),
            about: None,
        },
        kind: Kind::Internal,
        start_unix_ms: line.ts_unix_ms,
        end_unix_ms: line.ts_unix_ms,
        ending: Ending::Unset,
        attributes,
    }
}

fn scope(record: Record, line: &Line<'_>, redactor: &Redactor) -> Record {
    record
        .public(
            "countersign.tenant.id",
            member::id(&line.tenant_id, redactor),
        )
        .public(
            "countersign.session.id",
            member::id(&line.session_id, redactor),
        )
        .public(
            "gen_ai.conversation.id",
            member::id(&line.session_id, redactor),
        )
}

fn action_id((tenant, session): &Session, call: &str) -> [u8; 8] {
    let parts: [&[u8]; 4] = [
        b"action",
        tenant.as_bytes(),
        session.as_bytes(),
        call.as_bytes(),
    ];
    derived(&parts)
}

fn begins(kind: EventType) -> bool {
    matches!(
        kind,
        EventType::ToolCallProposed | EventType::ModelCallStarted
    )
}

/// What of the protocol a call came by: a tool's own, or a method that fetches something.
fn method(tool: Option<&str>, definition: Option<&str>) -> &'static str {
    let is = |method: &&str| {
        let fetches = fetching(method).map(|digest| digest.to_string());
        tool == Some(method) && fetches.as_deref() == definition
    };
    FETCHING.into_iter().find(is).unwrap_or("tools/call")
}

/// How the action of an event ends with it, if it does.
fn ending(kind: EventType, payload: &Json) -> Option<Ending> {
    match kind {
        EventType::ToolResult if is_error(payload) => Some(Ending::Failed),
        EventType::ToolResult | EventType::ModelCallFinished => Some(Ending::Good),
        EventType::ToolCallDenied | EventType::ErrorRaised => Some(Ending::Failed),
        _ => None,
    }
}

fn is_error(payload: &Json) -> bool {
    payload.get("is_error").and_then(Json::as_bool) == Some(true)
}

/// What a client leaves open does not stay for ever.
const MAX_OPEN: usize = 50_000;

/// What was stored was admitted before.
const STORED: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 130,
    ..Limits::event()
};

#[cfg(test)]
mod tests;
