//! Points of the agent's life that this door sees beside calls: its start, what the server asks the
//! client's model or human, and what they answer.

use std::ops::ControlFlow;
use std::time::Instant;

use countersign_canon::{Json, Limits, Object};
use countersign_policy::Point;

use crate::frame::{Frame, Id, Kind, Params, Span};
use crate::gate::{self, Delivery, Job, Waits};
use crate::outbound::Outbound;
use crate::record::{self, Entry};
use crate::reply::Refused;
use crate::splice;

use super::client::{answer_of, server_call};
use super::{Effect, Session};

/// Whether the agent may begin.
#[derive(Default)]
pub(super) enum Start {
    /// Nobody knows yet.
    #[default]
    Unknown,
    /// It may.
    Yes,
    /// It may not.
    No(Refused),
}

impl Session {
    /// Whether what the client says goes on. FAIL-CLOSED: not before somebody has let it begin, where
    /// somebody is asked.
    pub(super) fn may_speak(&self) -> bool {
        match self.start {
            Start::Yes => true,
            Start::Unknown => !self.settings.asks_first,
            Start::No(_) => false,
        }
    }

    /// What becomes of a request before it is known whether the agent may begin; one that goes on as
    /// usual is given back.
    pub(super) fn at_start(
        &mut self,
        frame: Frame,
        id: &Id,
        params: &Params,
    ) -> ControlFlow<Vec<Effect>, Frame> {
        match &self.start {
            Start::Yes => ControlFlow::Continue(frame),
            Start::Unknown if !self.settings.asks_first => ControlFlow::Continue(frame),
            Start::Unknown => {
                let about = self.about_client(&frame, params);
                ControlFlow::Break(vec![Effect::job(Job::Open { frame, about })])
            }
            Start::No(refused) => {
                let refused = refused.clone();
                let then = Delivery::error(Some(id), refused);
                let message = format!("the request {id} of an agent that may not begin");
                ControlFlow::Break(vec![self.complain("client_request_refused", message, then)])
            }
        }
    }

    /// It is known whether the agent may begin.
    pub(super) fn opened(
        &mut self,
        frame: Frame,
        opened: Result<(), Refused>,
        now: Instant,
    ) -> Vec<Effect> {
        self.start = match opened {
            Ok(()) => Start::Yes,
            Err(refused) => Start::No(refused),
        };
        self.frame_from_client(frame, now)
    }

    fn about_client(&self, frame: &Frame, params: &Params) -> Json {
        let part = |name: &str| {
            let span = frame.member(params.whole, name)?;
            Json::admit(frame.part(span), &Limits::event()).ok()
        };
        let members = [
            ("capabilities", part("capabilities")),
            ("client", part("clientInfo")),
            ("server", Some(Json::from(self.settings.server.as_str()))),
        ];
        let members = members.into_iter();
        Json::object(members.filter_map(|(name, value)| Some((name, value?))))
    }

    /// The server asks the client's model.
    pub(super) fn sampling_asked(&self, frame: &Frame, id: &Id, content: &[u8]) -> Job {
        let subject = record::content(content);
        let hints = subject.get("modelPreferences").cloned();
        let subject = Json::object([
            ("messages", member(&subject, "messages")),
            (
                "model",
                Json::object([
                    ("params", hints.unwrap_or(Json::Null)),
                    (
                        "vendor",
                        Json::from(format!("mcp:{}", self.settings.server)),
                    ),
                ]),
            ),
            ("system", member(&subject, "systemPrompt")),
        ]);
        Job::Pass {
            point: Point::PreModelCall,
            subject,
            call_id: Some(server_call(id)),
            entries: vec![record::sampling_began(
                server_call(id),
                &self.settings.server,
                content,
            )],
            then: to_client(frame, id),
        }
    }

    /// The client's model answered.
    pub(super) fn sampling_answered(&self, frame: Frame, id: &Id) -> Job {
        let answer = record::content(answer_of(&frame));
        let model = Json::object([
            ("name", member(&answer, "model")),
            (
                "vendor",
                Json::from(format!("mcp:{}", self.settings.server)),
            ),
        ]);
        let entry = record::sampling_ended(server_call(id), answer_of(&frame));
        if matches!(frame.kind(), Kind::Error { .. }) {
            return unanswered(entry, frame, id);
        }
        Job::Pass {
            point: Point::PostModelCall,
            subject: Json::object([("model", model), ("response", answer)]),
            call_id: Some(server_call(id)),
            entries: vec![entry],
            then: to_server(frame, id),
        }
    }

    /// The server asks the client's human: what they are shown goes out.
    pub(super) fn elicitation_asked(
        &self,
        frame: &Frame,
        id: &Id,
        entry: Entry,
        content: &[u8],
    ) -> Job {
        let asked = record::content(content);
        let response = Json::object([
            ("content", member(&asked, "message")),
            ("schema", member(&asked, "requestedSchema")),
        ]);
        Job::Pass {
            point: Point::Output,
            subject: Json::object([("response", response)]),
            call_id: None,
            entries: vec![entry],
            then: to_client(frame, id),
        }
    }

    /// The client's human answered: that comes in.
    pub(super) fn elicitation_answered(&self, frame: Frame, id: &Id) -> Job {
        let answer = answer_of(&frame);
        let input = Json::object([
            ("body", record::content(answer)),
            ("source", Json::from("user")),
        ]);
        let entry = record::write(
            "elicitation/create".to_owned(),
            &self.settings.server,
            answer,
        );
        if matches!(frame.kind(), Kind::Error { .. }) {
            return unanswered(entry, frame, id);
        }
        Job::Pass {
            point: Point::Input,
            subject: Json::object([("input", input)]),
            call_id: None,
            entries: vec![entry],
            then: to_server(frame, id),
        }
    }

    /// The client's human answered what a task had asked: that comes in too.
    pub(super) fn task_answered(&self, frame: Frame, id: Id, params: &Params) -> Job {
        let answers = frame.member(params.whole, "inputResponses");
        let answers = answers.map_or(&b"null"[..], |span| frame.part(span));
        let input = Json::object([
            ("body", record::content(answers)),
            ("source", Json::from("user")),
        ]);
        let server = &self.settings.server;
        Job::Pass {
            point: Point::Input,
            subject: Json::object([("input", input)]),
            call_id: None,
            entries: vec![record::write("tasks/update".to_owned(), server, answers)],
            then: Delivery {
                to_server: Outbound::passing(frame),
                waits: Waits::Client(id),
                ..Delivery::default()
            },
        }
    }

    /// Delivers something else than what came.
    pub(super) fn deliver_instead(
        &mut self,
        mut delivery: Delivery,
        instead: gate::Instead,
    ) -> Vec<Effect> {
        let refused = match instead {
            gate::Instead::Nothing(refused) => refused,
            gate::Instead::Result(result) => {
                let bytes = delivery.to_client.take();
                let changed = bytes.and_then(|bytes| self.with_result(bytes, &result));
                match changed {
                    Some(changed) => {
                        delivery.to_client = Some(changed);
                        return self.deliver(delivery);
                    }
                    None => gate::unsupported(),
                }
            }
            gate::Instead::Subject(point, subject) => {
                match self.with_subject(&delivery, point, &subject) {
                    Some(changed) => return self.deliver(changed),
                    None => gate::unsupported(),
                }
            }
        };
        match delivery.waits {
            Waits::Client(id) => {
                self.unsent(&id);
                vec![Effect::ToClient(self.answer(&id, delivery.form, &refused))]
            }
            Waits::Server(id) => {
                self.server_asked.remove(&id);
                let error = refused.to_error(Some(&id));
                vec![Effect::ToServer(Outbound::own(error))]
            }
            Waits::Nobody => Vec::new(),
        }
    }

    /// An answer with another result, or with another error.
    fn with_result(&self, bytes: Vec<u8>, result: &Json) -> Option<Vec<u8>> {
        let frame = Frame::read(bytes, &self.settings.limits).ok()?;
        let span = match frame.kind() {
            Kind::Response { result, .. } => *result,
            Kind::Error { error, .. } => *error,
            Kind::Request { .. } | Kind::Notification { .. } => return None,
        };
        // A result of the protocol is an object.
        result.as_object()?;
        splice::replace(frame.bytes(), span, &[&result.to_jcs().ok()?])
    }

    /// What is delivered when a policy changed what there was to see: one part of the frame, and not
    /// one other byte.
    fn with_subject(&self, delivery: &Delivery, point: Point, subject: &Json) -> Option<Delivery> {
        let waits = delivery.waits.clone();
        match point {
            Point::PreModelCall | Point::Output => {
                let bytes = delivery.to_client.clone()?;
                let frame = Frame::read(bytes, &self.settings.limits).ok()?;
                let (name, new) = match point {
                    Point::PreModelCall => ("messages", subject.get("messages")?),
                    _ => ("message", subject.get("response")?.get("content")?),
                };
                let changed = with_parameter(&frame, name, new)?;
                Some(Delivery {
                    to_client: Some(changed),
                    waits,
                    ..Delivery::default()
                })
            }
            Point::PostModelCall | Point::Input => {
                let new = match point {
                    Point::PostModelCall => subject.get("response")?,
                    _ => subject.get("input")?.get("body")?,
                };
                let Waits::Server(id) = &waits else {
                    return None;
                };
                let answer = crate::reply::result(id, &Json::Object(object(new)?));
                Some(Delivery {
                    to_server: Some(Outbound::own(answer)),
                    waits,
                    ..Delivery::default()
                })
            }
            _ => None,
        }
    }
}

fn object(json: &Json) -> Option<Object> {
    json.as_object().cloned()
}

fn with_parameter(frame: &Frame, name: &str, new: &Json) -> Option<Vec<u8>> {
    let Kind::Request { params, .. } = frame.kind() else {
        return None;
    };
    let span: Span = frame.member(params.whole, name)?;
    splice::replace(frame.bytes(), span, &[&new.to_jcs().ok()?])
}

fn member(json: &Json, name: &str) -> Json {
    json.get(name).cloned().unwrap_or(Json::Null)
}

/// That there is no answer goes on as it is.
fn unanswered(entry: Entry, frame: Frame, id: &Id) -> Job {
    Job::Record {
        entries: vec![entry],
        then: to_server(frame, id),
    }
}

fn to_client(frame: &Frame, id: &Id) -> Delivery {
    Delivery {
        to_client: Some(frame.bytes().to_vec()),
        waits: Waits::Server(id.clone()),
        ..Delivery::default()
    }
}

fn to_server(frame: Frame, id: &Id) -> Delivery {
    Delivery {
        to_server: Outbound::passing(frame),
        waits: Waits::Server(id.clone()),
        ..Delivery::default()
    }
}
