//! Calls that the server has made tasks of. What comes of them is held to the same as what is answered
//! at once: the client asks for it under the name that the server has given.

use std::collections::VecDeque;
use std::time::Instant;

use countersign_canon::Json;
use countersign_engine::Running;

use crate::frame::{Frame, Id, Kind, Span};
use crate::gate::{Delivery, Job, Late, Waits};
use crate::record;

use super::calls::output_too_large;
use super::{Asks, Effect, Session, observed};

/// What is known of the calls that the server has made tasks of.
#[derive(Default)]
pub(super) struct OpenCalls(VecDeque<(String, OpenCall)>);

struct OpenCall {
    /// What those see of it who look at results.
    seen: Option<Json>,
    max_output_bytes: u64,
    /// Whether that stops nothing.
    is_observed: bool,
    since: Instant,
    /// The server has said that it is over.
    is_over: bool,
    /// How much it has told about it that nobody asked for.
    told_unasked: usize,
}

impl OpenCalls {
    /// The server has answered a call with a task.
    pub(super) fn note(&mut self, frame: &Frame, result: Span, running: &Running) {
        let Some(task) = task_of(frame, result) else {
            return;
        };
        self.0.retain(|(known, _)| *known != task);
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        let call = OpenCall {
            seen: running.seen_with_result(),
            max_output_bytes: running.constraints().max_output_bytes,
            is_observed: running.is_observed(),
            since: Instant::now(),
            is_over: false,
            told_unasked: 0,
        };
        self.0.push_back((task, call));
    }

    /// Whether the server works on any of them, as far as it has said.
    pub(super) fn is_any_open(&self) -> bool {
        self.0.iter().any(|(_, call)| !call.is_over)
    }

    fn get_mut(&mut self, task: &str) -> Option<&mut OpenCall> {
        let mut known = self.0.iter_mut();
        known.find_map(|(known, call)| (known == task).then_some(call))
    }

    fn note_over(&mut self, task: &str) {
        let known = self.0.iter_mut().filter(|(known, _)| known == task);
        known.for_each(|(_, call)| call.is_over = true);
    }

    fn get(&self, task: &str) -> Option<&OpenCall> {
        let mut known = self.0.iter();
        known.find_map(|(known, call)| (known == task).then_some(call))
    }
}

impl Session {
    /// The server has said how a task of its own stands, or what came of it.
    pub(super) fn task_told(
        &mut self,
        frame: Frame,
        id: &Id,
        task: &str,
        key: String,
    ) -> Vec<Effect> {
        let told = match frame.kind() {
            Kind::Response { result, .. } => (*result, false),
            Kind::Error { error, .. } => (*error, true),
            Kind::Request { .. } | Kind::Notification { .. } => return vec![self.unasked(id)],
        };
        self.told_late(frame, told, Some(id), (task, key))
    }

    /// The server says so by itself. Nobody waits, so that what may not pass is just left out.
    pub(super) fn task_notified(&mut self, frame: Frame, params: Span) -> Vec<Effect> {
        let task = name_of(&frame, frame.member(Some(params), "taskId"));
        let key = format!("notifications/tasks {task}");
        // Nobody has asked for it, so it ends somewhere: for each task of a call, and for all others together. The
        // client can still ask.
        let told = match self.open.get_mut(&task) {
            Some(call) => &mut call.told_unasked,
            None => &mut self.told_unasked,
        };
        *told += frame.bytes().len() + ENTRY;
        if *told > MOST_UNASKED {
            if says_over(&frame, params, &key) {
                self.open.note_over(&task);
            }
            let message = "more about tasks than the log takes unasked".to_owned();
            let code = "server_notification_refused";
            return vec![self.complain(code, message, Delivery::default())];
        }
        let is_error = frame.member(Some(params), "error").is_some();
        self.told_late(frame, (params, is_error), None, (&task, key))
    }

    fn told_late(
        &mut self,
        frame: Frame,
        (part, is_error): (Span, bool),
        id: Option<&Id>,
        (task, key): (&str, String),
    ) -> Vec<Effect> {
        if says_over(&frame, part, &key) {
            self.open.note_over(task);
        }
        let refusals = self.settings.refusals;
        let call = self.open.get(task);
        let length = part.end - part.start;
        let too_large = call.and_then(|call| {
            let refused = output_too_large(length, call.max_output_bytes)?;
            Some((refused, call.is_observed, call.max_output_bytes))
        });
        let noted = match too_large {
            Some((_, true, most)) => Some(observed::large(&key, length, most)),
            Some((refused, false, _)) => {
                let then = id.map(|id| self.to_client(id, refusals, refused));
                return vec![self.complain("output_too_large", key, then.unwrap_or_default())];
            }
            None => None,
        };
        let seen = call.and_then(|call| Some((call.seen.clone()?, call.since)));
        let entry = record::read(key, &self.settings.server, frame.part(part));
        let (told, is_whole) = record::told(frame.part(part));
        let is_plain = told.get(SAID).is_none();
        let is_whole = is_whole && !frame.has_others();
        let subject = seen.filter(|_| is_whole).map(|(call, since)| {
            let took = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            let result = Json::object([
                ("duration_ms", Json::from(took)),
                ("error", Json::from(is_error)),
                ("value", as_answered(told)),
            ]);
            Json::object([("tool_call", call), ("tool_result", result)])
        });
        let asks = Asks::of_task(task).in_frame(&frame);
        let review = Effect::job(Job::Review(Box::new(Late {
            subject,
            is_plain,
            entry,
            then: Delivery {
                asks: Some(asks),
                to_client: Some(frame.into_bytes()),
                waits: id.map_or(Waits::Nobody, |id| Waits::Client(id.clone())),
                form: refusals,
                ..Delivery::default()
            },
        })));
        noted.into_iter().chain([review]).collect()
    }
}

/// Whether a server says that a task is over: by its status, or by what came of it.
fn says_over(frame: &Frame, told: Span, key: &str) -> bool {
    let status = frame.text(frame.member(Some(told), "status"));
    let is_end = matches!(
        status.as_deref(),
        Some("completed" | "failed" | "cancelled")
    );
    is_end || key.starts_with("tasks/result")
}

/// What a task has come to, as those see it who look at results: what the tool said stands where it
/// stands in an answer to a call, and the rest beside it.
fn as_answered(told: Json) -> Json {
    let said = told.get(SAID).and_then(Json::as_object).cloned();
    match (said, told) {
        (Some(mut said), Json::Object(mut told)) => {
            told.remove(SAID);
            said.insert(TASK.to_owned(), Json::Object(told));
            Json::Object(said)
        }
        (_, told) => told,
    }
}

/// The name of a task, in the form of either era.
fn task_of(frame: &Frame, result: Span) -> Option<String> {
    let task = frame.member(Some(result), "task");
    let id = frame.member(task.or(Some(result)), "taskId")?;
    Some(name_of(frame, Some(id)))
}

/// The text of a name; where it is something else, how that is written.
pub(super) fn name_of(frame: &Frame, span: Option<Span>) -> String {
    match (frame.text(span), span) {
        (Some(text), _) => text.into_owned(),
        (None, Some(span)) => String::from_utf8_lossy(frame.part(span)).into_owned(),
        (None, None) => String::new(),
    }
}

/// Where what the tool said stands in what a server says about a task that is over.
const SAID: &str = "result";
/// As many as are remembered.
const MOST: usize = 1024;
/// Where that stands which a server says about a task beside its result.
const TASK: &str = "countersign/task";

/// How much is taken about tasks that nobody has asked for, with so much for the entry of each time.
const MOST_UNASKED: usize = 64 << 20;
const ENTRY: usize = 1 << 10;
