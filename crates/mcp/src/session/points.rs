//! Points of the agent's life that this door sees beside calls: its start, what the server asks the
//! client's model or human, and what they answer.

use std::ops::ControlFlow;
use std::time::Instant;

use countersign_canon::{Json, Limits, Object};
use countersign_policy::Point;

use crate::frame::{self, Frame, Id, Kind, Params, Span};
use crate::gate::{self, Delivery, Job, Onward, Part, Round, Sight, Waits};
use crate::outbound::Outbound;
use crate::reply::Refused;
use crate::{Method, record, splice};

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
    pub(super) fn sampling(&self, call_id: String, content: &[u8]) -> Sight {
        let (mut asked, is_whole) = shown(content, &["messages", "systemPrompt"]);
        let mut take = |name: &str| {
            let members = asked.as_object_mut();
            let found = members.and_then(|members| members.remove(name));
            found.unwrap_or(Json::Null)
        };
        let (messages, system) = (take("messages"), take("systemPrompt"));
        let vendor = format!("mcp:{}", self.settings.server);
        let model = Json::object([
            // Whatever else the model is given: tools, context, limits.
            ("params", asked),
            ("vendor", Json::from(vendor)),
        ]);
        let subject = Json::object([("messages", messages), ("model", model), ("system", system)]);
        let entry = record::sampling_began(call_id.clone(), &self.settings.server, content);
        Sight {
            point: Point::PreModelCall,
            subject,
            is_whole,
            call_id: Some(call_id),
            entries: vec![entry],
        }
    }

    /// The client's model answered: what it was asked under this id, if that is known.
    pub(super) fn sampled(&self, call_id: Option<String>, answer: &[u8]) -> Sight {
        let (response, is_whole) = record::told(answer);
        let vendor = format!("mcp:{}", self.settings.server);
        let model = Json::object([
            ("name", member(&response, "model")),
            ("vendor", Json::from(vendor)),
        ]);
        let entry = match &call_id {
            Some(call_id) => record::sampling_ended(call_id.clone(), answer),
            None => {
                let key = Method::SamplingCreateMessage.to_string();
                record::write(key, &self.settings.server, answer)
            }
        };
        Sight {
            point: Point::PostModelCall,
            subject: Json::object([("model", model), ("response", response)]),
            is_whole,
            call_id,
            entries: vec![entry],
        }
    }

    /// The server asks the client's human: what they are shown goes out.
    pub(super) fn elicitation(&self, content: &[u8]) -> Sight {
        let (asked, is_whole) = shown(content, &["message", "requestedSchema", "mode", "url"]);
        let mut asked = asked.into_object().unwrap_or_default();
        let mut take = |name: &str| asked.remove(name);
        let said = [("content", "message"), ("schema", "requestedSchema")];
        let mut response: Object = said
            .into_iter()
            .map(|(name, of)| (name.to_owned(), take(of).unwrap_or(Json::Null)))
            .collect();
        // Where they are sent, if they are.
        for name in ["mode", "url"] {
            if let Some(value) = take(name) {
                response.insert(name.to_owned(), value);
            }
        }
        // Whatever else they may be shown.
        if !asked.is_empty() {
            response.insert("params".to_owned(), Json::Object(asked));
        }
        let key = Method::ElicitationCreate.to_string();
        Sight {
            point: Point::Output,
            subject: Json::object([("response", Json::Object(response))]),
            is_whole,
            call_id: None,
            entries: vec![record::read(key, &self.settings.server, content)],
        }
    }

    /// The client's human answered: that comes in.
    pub(super) fn elicited(&self, answer: &[u8]) -> Sight {
        self.came_in(Method::ElicitationCreate, answer)
    }

    fn came_in(&self, method: Method, answer: &[u8]) -> Sight {
        let (body, is_whole) = record::told(answer);
        let input = Json::object([("body", body), ("source", Json::from("user"))]);
        let entry = record::write(method.to_string(), &self.settings.server, answer);
        Sight {
            point: Point::Input,
            subject: Json::object([("input", input)]),
            is_whole,
            call_id: None,
            entries: vec![entry],
        }
    }

    /// A question on its way to the client.
    pub(super) fn asked(&self, frame: &Frame, id: &Id, mut sight: Sight) -> Job {
        sight.is_whole &= !frame.has_others();
        Job::Pass {
            sight: Box::new(sight),
            then: to_client(frame, id),
        }
    }

    /// An answer of the client to a request of the server.
    pub(super) fn answered(&self, frame: Frame, id: &Id, mut sight: Sight) -> Job {
        sight.is_whole &= !frame.has_others();
        if matches!(frame.kind(), Kind::Error { .. }) {
            // That there is no answer goes on as it is, or not at all.
            return Job::Round(Box::new(Round {
                parts: vec![Part { sight, place: None }],
                changes: Vec::new(),
                then: Onward::Deliver(to_server(frame, id), Vec::new()),
            }));
        }
        Job::Pass {
            sight: Box::new(sight),
            then: to_server(frame, id),
        }
    }

    /// The client answered what a task had asked: that comes in too.
    pub(super) fn task_answered(&mut self, frame: Frame, id: Id, params: &Params) -> Job {
        let answers = frame.member(params.whole, "inputResponses");
        let answers = answers.map_or(&b"null"[..], |span| frame.part(span));
        let whole = Part {
            sight: self.came_in(Method::TasksUpdate, answers),
            place: None,
        };
        let models = self.task_answers_in(&frame, params);
        Job::Round(Box::new(Round {
            parts: std::iter::once(whole).chain(models).collect(),
            changes: Vec::new(),
            then: Onward::Deliver(
                Delivery {
                    to_server: Outbound::passing(frame),
                    waits: Waits::Client(id),
                    ..Delivery::default()
                },
                Vec::new(),
            ),
        }))
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
                        return self.deliver_changed(delivery);
                    }
                    None => gate::unsupported(),
                }
            }
            gate::Instead::Part(point, new) => match self.with_part(&delivery, point, &new) {
                Some(changed) => return self.deliver(changed),
                None => gate::unsupported(),
            },
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
    fn with_part(&self, delivery: &Delivery, point: Point, new: &Json) -> Option<Delivery> {
        let waits = delivery.waits.clone();
        match point {
            Point::PreModelCall | Point::Output => {
                let bytes = delivery.to_client.clone()?;
                let frame = Frame::read(bytes, &self.settings.limits).ok()?;
                let name = match point {
                    Point::PreModelCall => "messages",
                    _ => "message",
                };
                let changed = with_parameter(&frame, name, new)?;
                Some(Delivery {
                    to_client: Some(changed),
                    waits,
                    ..Delivery::default()
                })
            }
            Point::PostModelCall | Point::Input => {
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

/// A question, and whether these members of it are all there is to see.
///
/// SECURITY: some clients take other keys for these.
fn shown(content: &[u8], known: &[&'static str]) -> (Json, bool) {
    let (asked, is_whole) = record::told(content);
    let poses = |members: &Object| members.iter().any(|(key, _)| frame::poses(key, known));
    let is_plain = !asked.as_object().is_some_and(poses);
    (asked, is_whole && is_plain)
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
