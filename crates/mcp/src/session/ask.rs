//! How a client hears that a human has to decide, by what it can do.
//!
//! SECURITY: nothing that a client answers approves anything. It may learn what waits, go on waiting, or
//! take its call back; approvers decide elsewhere, with their signatures.

use std::time::{Duration, Instant};

use countersign_canon::{Digest, Json};
use countersign_display::quote;
use countersign_engine::ApprovalId;

use crate::frame::{Frame, Id, Kind, Params, Span};
use crate::gate::{Call, Delivery, Job};
use crate::reply::{self, INVALID_PARAMS, Refused};
use crate::seal::Seal;
use crate::{Era, Method, record, splice};

use super::client::answer_of;
use super::pending::{Asked, CallState};
use super::{Effect, Session};

/// What a client can show to its human.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    form: bool,
    url: bool,
    tasks: bool,
}

/// How a held call is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// It is kept open, with signs of life if the client wants them.
    Open,
    /// It is kept open, and the client's human is told.
    Question,
    /// It is answered with a question, and comes back with the answer.
    Round,
    /// It is answered with a handle, under which the client asks.
    Task,
}

/// What came back with a call.
pub(super) struct Back {
    state: String,
    /// What the client's human answered.
    answers: Vec<u8>,
    /// The client's human does not want the call any more.
    declined: bool,
}

impl Back {
    pub(super) fn is_declined(&self) -> bool {
        self.declined
    }
}

impl Abilities {
    pub(super) fn read(frame: &Frame, capabilities: Option<Span>) -> Self {
        let elicitation = frame.member(capabilities, "elicitation");
        let form = frame.member(elicitation, "form").is_some();
        let url = frame.member(elicitation, "url").is_some();
        let extensions = frame.member(capabilities, "extensions");
        Self {
            // Before there were two kinds, forms were the only one.
            form: form || (elicitation.is_some() && !url),
            url,
            tasks: frame.member(extensions, TASKS).is_some(),
        }
    }
}

impl Session {
    pub(super) fn form(&self, call: &Call) -> Form {
        let Kind::Request { params, .. } = call.frame.kind() else {
            return Form::Open;
        };
        if self.settings.hold_wait == Some(Duration::ZERO) || call.back.is_some() {
            return Form::Open;
        }
        let abilities = self.abilities(&call.frame, params);
        let can_ask = abilities.form || (abilities.url && self.settings.approval_url.is_some());
        // What the server wants back must not be lost behind what we want back.
        let has_state = ["requestState", "inputResponses"]
            .iter()
            .any(|key| call.frame.member(params.whole, key).is_some());
        match self.era {
            Some(era) if !can_ask && !era.handshake && abilities.tasks && !call.method.reads() => {
                Form::Task
            }
            _ if !can_ask => Form::Open,
            Some(era) if era.server_requests => Form::Question,
            Some(_) if self.settings.seal.is_some() && !has_state => Form::Round,
            _ => Form::Open,
        }
    }

    fn abilities(&self, frame: &Frame, params: &Params) -> Abilities {
        match self.era.is_some_and(|era| !era.handshake) {
            true => Abilities::read(frame, frame.member(params.meta, Era::CAPABILITIES_KEY)),
            false => self.client,
        }
    }

    /// The client's human is told on the stream of the call.
    pub(super) fn question(&mut self, call: &Call, refused: &Refused) -> Option<Effect> {
        let Kind::Request { params, .. } = call.frame.kind() else {
            return None;
        };
        self.questions_asked += 1;
        let id = format!(
            "countersign-{}-q{}",
            self.settings.question_nonce, self.questions_asked
        );
        let id = Id::own(&id).ok()?;
        let params = self.told(call, params, refused);
        let bytes = reply::request(&id, "elicitation/create", &params);
        self.questions.push((id, call.id.clone()));
        Some(Effect::ToCaller(call.id.clone(), bytes))
    }

    /// The call is answered with a question; `None` if that cannot be done.
    pub(super) fn round(
        &self,
        call: &Call,
        approval: ApprovalId,
        refused: &Refused,
        now: Instant,
    ) -> Option<[Effect; 2]> {
        let Kind::Request { params, .. } = call.frame.kind() else {
            return None;
        };
        let until = now.saturating_duration_since(self.began) + STATE_LIFE;
        let text = format!("{approval} {}", until.as_secs());
        let seal = self.settings.seal.as_ref()?;
        let state = seal.close(&text, &context(&call.tool, &call.args))?;
        let asks = Json::object([
            ("method", Json::from("elicitation/create")),
            ("params", self.told(call, params, refused)),
        ]);
        let result = Json::object([
            ("resultType", Json::from("input_required")),
            ("inputRequests", Json::object([(KEY, asks)])),
            ("requestState", Json::from(state.as_str())),
        ]);
        let answer = reply::result(&call.id, &result);
        Some([
            Effect::Remember(state),
            Effect::ToCaller(call.id.clone(), answer),
        ])
    }

    /// What the client's human is told: by a link where there is a page, by a form without fields
    /// otherwise.
    fn told(&self, call: &Call, params: &Params, refused: &Refused) -> Json {
        let approval = refused.approval.as_deref().unwrap_or_default();
        let message = format!(
            "An agent asks to call {} of the server {}. The call waits ({}) for somebody who may approve it (code \
             {}): `countersign approval show {approval}` shows it as a whole, `countersign approval watch` is where \
             it is decided. Answering here approves nothing; declining takes the call back.",
            quote(&call.tool),
            quote(&self.settings.server),
            refused.reason,
            refused.code_of_plan(),
        );
        let mut members = vec![("message", Json::from(message))];
        let url = self.settings.approval_url.as_deref();
        match url.filter(|_| self.abilities(&call.frame, params).url) {
            Some(url) => {
                members.push(("mode", Json::from("url")));
                members.push(("url", Json::from(format!("{url}{approval}"))));
                members.push(("elicitationId", Json::from(approval)));
            }
            None => {
                let empty = Json::object::<String>([]);
                let schema = [("type", Json::from("object")), ("properties", empty)];
                members.push(("mode", Json::from("form")));
                members.push(("requestedSchema", Json::object(schema)));
            }
        }
        Json::object(members)
    }

    /// The call that our question was about, if it is ours.
    pub(super) fn own_question(&mut self, id: &Id) -> Option<Id> {
        let at = self
            .questions
            .iter()
            .position(|(question, _)| question == id)?;
        Some(self.questions.swap_remove(at).1)
    }

    /// The client's human has answered our question. That is recorded, and approves nothing.
    pub(super) fn question_answered(&mut self, frame: &Frame, call: &Id) -> Vec<Effect> {
        let mut effects = vec![heard(answer_of(frame))];
        let declined = match frame.kind() {
            Kind::Response { result, .. } => is_declined(frame, Some(*result)),
            _ => false,
        };
        if declined {
            effects.extend(self.take_back(call, &taken_back()));
        }
        effects
    }

    pub(super) fn take_back(&mut self, id: &Id, why: &Refused) -> Vec<Effect> {
        let Some(Asked::Call(form, CallState::Held(_))) = self.asked.get(id) else {
            return Vec::new();
        };
        let answer = Effect::ToCaller(id.clone(), self.answer(id, *form, why));
        self.withdraw(id).into_iter().chain([answer]).collect()
    }

    /// The question about a call has lost its point: the client may close it.
    pub(super) fn close_question(&mut self, call: &Id) -> Option<Effect> {
        let at = self.questions.iter().position(|(_, one)| one == call)?;
        let (question, call) = self.questions.swap_remove(at);
        Some(Effect::ToCaller(
            call,
            reply::cancelled(&question, "decided"),
        ))
    }

    /// What a message brings back of ours: a state, or the handle of a task. It may be forged.
    pub(crate) fn brings_back(frame: &Frame) -> Option<String> {
        let Kind::Request { params, .. } = frame.kind() else {
            return None;
        };
        let handle = frame.text(params.task_id).map(|handle| handle.into_owned());
        let handle = handle.filter(|handle| Seal::claims(handle));
        handle.or_else(|| Self::comes_back(frame, params))
    }

    /// Whether a call comes back with a state of ours.
    pub(super) fn comes_back(frame: &Frame, params: &Params) -> Option<String> {
        let state = frame.text(frame.member(params.whole, "requestState"))?;
        Seal::claims(&state).then(|| state.into_owned())
    }

    /// The frame without what is ours in it, and what that was.
    pub(super) fn come_back(
        &self,
        frame: &Frame,
        params: &Params,
        state: String,
    ) -> Option<(Frame, Back)> {
        let answers = frame.member(params.whole, "inputResponses");
        let back = Back {
            state,
            declined: is_declined(frame, frame.member(answers, KEY)),
            answers: answers
                .map_or_else(|| b"null".to_vec(), |answers| frame.part(answers).to_vec()),
        };
        let bytes = splice::without(frame, &["requestState", "inputResponses"])?;
        Some((Frame::read(bytes, &self.settings.limits).ok()?, back))
    }

    /// The approval that a state was made for, if it was made for this call.
    pub(super) fn open_state(
        &self,
        back: &Back,
        (tool, args): (&str, &Json),
        now: Instant,
    ) -> Option<ApprovalId> {
        let seal = self.settings.seal.as_ref()?;
        let text = seal.open(&back.state, &context(tool, args))?;
        let (approval, until) = text.split_once(' ')?;
        let until = Duration::from_secs(until.parse().ok()?);
        let approval = approval.parse().ok()?;
        (now.saturating_duration_since(self.began) <= until).then_some(approval)
    }

    /// The client's human does not want the call that came back.
    pub(super) fn declined(
        &self,
        (id, method): (&Id, Method),
        back: &Back,
        approval: ApprovalId,
    ) -> Vec<Effect> {
        let answer = self.answer(id, self.refusals_of(method), &taken_back());
        vec![
            heard(&back.answers),
            Effect::job(Job::Withdraw(approval)),
            Effect::ToCaller(id.clone(), answer),
        ]
    }

    /// A state that does not open.
    pub(super) fn refuse_state(&mut self, id: &Id) -> Effect {
        let text =
            "refused: this state was not given out for this call, or is too old; call without it";
        let refused = Refused::denied("STATE_REFUSED", text).with_code(INVALID_PARAMS);
        let then = Delivery::error(Some(id), refused);
        let message = "a state that does not open".to_owned();
        self.complain("client_call_refused", message, then)
    }

    /// Whether a call is being held.
    pub(super) fn is_held(&self, id: &Id) -> bool {
        matches!(self.asked.get(id), Some(Asked::Call(_, CallState::Held(_))))
    }
}

/// Who answered, and what.
fn heard(answer: &[u8]) -> Effect {
    let entry = record::write("elicitation/create".to_owned(), KEY, answer);
    Effect::job(Job::Record {
        entries: vec![entry],
        then: Delivery::default(),
    })
}

fn is_declined(frame: &Frame, answer: Option<Span>) -> bool {
    let action = frame.text(frame.member(answer, "action"));
    action.as_deref() == Some("decline")
}

fn taken_back() -> Refused {
    Refused::denied(
        "APPROVAL_WITHDRAWN",
        "the client's user took the call back; do not retry, ask what to do instead",
    )
}

/// What a state is bound to beside its session: the tool and its arguments.
fn context(tool: &str, args: &Json) -> Vec<u8> {
    let digest = Digest::of(&args.to_sorted_ascii());
    format!("request-state\n{digest}\n{tool}").into_bytes()
}

/// Under which name our question stands among those of a server.
const KEY: &str = "countersign";
/// What a client says that knows tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";
/// How long a state can come back. The approval itself may end sooner.
pub(super) const STATE_LIFE: Duration = Duration::from_secs(3600);
