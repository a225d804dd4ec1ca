//! What a server asks the client's model or human by a result, and what the client brings with the next call.
//!
//! In revisions without requests of the server this is the only way to ask. It is held to the same as those
//! requests are, point by point.

mod read;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use countersign_canon::{Digest, Json};

use crate::frame::{Frame, Id, Kind, Params, Span};
use crate::gate::{self, Delivery, Instead, Job, Onward, Part, Round, Waits};
use crate::reply::{Notice, Refused};
use crate::{Method, splice};

use super::client::SERVER_GONE;
use super::open::name_of;
use super::pending::{Asked, CallState};
use super::{Effect, Session, Unknown};
use read::{Found, Of, Unfit, asking, found_in, members, shape};

/// What was asked by results, the oldest first.
#[derive(Default)]
pub(super) struct Rounds(VecDeque<Question>);

/// Whose questions a result may bring: those of a tool, or of a task.
#[derive(Debug)]
pub(crate) struct Asks {
    whose: String,
    /// Under which the log knows what the model is asked.
    known_as: String,
    is_task: bool,
    /// Whether it brings any, as far as is known.
    asks: bool,
}

/// One thing that the client was asked.
#[derive(Debug)]
pub struct Question {
    whose: String,
    /// What the server wants back with the answer.
    state: Option<String>,
    name: String,
    text: Digest,
    of: Of,
    /// The model call that has not ended.
    model: Option<String>,
    /// Where that stands which a policy may change, and what is in its place.
    place: Option<Span>,
    changed: Option<Json>,
}

/// Whether a message of a server asks the client's model or human for something, as far as anybody can tell.
pub(crate) fn asks_anything(frame: &Frame) -> bool {
    read::asks(frame, true)
}

impl Asks {
    /// Of a call with this id.
    pub(super) fn of_call(tool: &str, id: &Id) -> Self {
        Self {
            whose: format!("tool {tool}"),
            known_as: format!("server:{id}"),
            is_task: false,
            asks: true,
        }
    }

    pub(super) fn of_task(task: &str) -> Self {
        let quoted = Json::from(task).to_sorted_ascii();
        Self {
            whose: whose_task(task),
            known_as: format!("server:task {}", String::from_utf8_lossy(&quoted)),
            is_task: true,
            asks: true,
        }
    }

    /// Of what answers nobody that is known.
    pub(super) fn of_nobody() -> Self {
        Self {
            whose: "nobody".to_owned(),
            known_as: "server".to_owned(),
            is_task: false,
            asks: true,
        }
    }

    /// The same, where the frame brings any; others need not be looked at again as long as they are what they
    /// are.
    pub(super) fn in_frame(self, frame: &Frame) -> Box<Self> {
        let asks = read::asks(frame, self.is_task);
        Box::new(Self { asks, ..self })
    }
}

impl Rounds {
    fn note(&mut self, mut questions: Vec<Question>, changes: &[(Span, Json)]) {
        for question in &mut questions {
            let changed = changes.iter();
            let mut changed = changed.filter(|(place, _)| Some(*place) == question.place);
            question.changed = changed.next().map(|(_, new)| new.clone());
        }
        self.0.extend(questions);
        let most = self.0.len().saturating_sub(MOST);
        self.0.drain(..most);
    }

    /// The same question of a task, which is told as long as it is open.
    fn again(&self, asks: &Asks, name: &str, text: Digest) -> Option<&Question> {
        let mut all = self.0.iter().filter(|_| asks.is_task);
        all.find(|one| one.whose == asks.whose && one.name == name && one.text == text)
    }

    /// Who was asked under this name, and the model call that an answer ends.
    ///
    /// SECURITY: the server names its questions, and may use a name again for another one. Whoever was asked under
    /// it, the answer is shown to all who look at theirs.
    fn asked_under(
        &mut self,
        whose: &str,
        state: Option<&str>,
        name: &str,
    ) -> (Vec<Of>, Option<String>) {
        let (mut asked, mut model) = (Vec::new(), None);
        let is_it = |one: &&mut Question| {
            one.whose == whose && one.state.as_deref() == state && one.name == name
        };
        for one in self.0.iter_mut().filter(is_it) {
            if !asked.contains(&one.of) {
                asked.push(one.of);
            }
            model = model.or_else(|| one.model.take());
        }
        (asked, model)
    }
}

impl Session {
    /// Delivers something to the client: not before it is known whether it may be asked what it is asked by it.
    pub(super) fn deliver_asking(&mut self, mut delivery: Delivery) -> Vec<Effect> {
        let asks = delivery.asks.take().filter(|asks| asks.asks);
        let (Some(asks), Some(bytes)) = (asks, &delivery.to_client) else {
            return self.deliver(delivery);
        };
        let frame = Frame::read(bytes.clone(), &self.settings.limits);
        let round = frame.map_err(|_| Unfit);
        match round.and_then(|frame| self.questions_in(&frame, &asks)) {
            Ok(None) => self.deliver(delivery),
            Ok(Some((parts, changes, questions))) => {
                vec![Effect::job(Job::Round(Box::new(Round {
                    parts,
                    changes,
                    then: Onward::Deliver(delivery, questions),
                })))]
            }
            Err(Unfit) => vec![self.refuse_question(delivery)],
        }
    }

    /// What a policy has put in the place of a result may ask as well.
    pub(super) fn deliver_changed(&mut self, mut delivery: Delivery) -> Vec<Effect> {
        if let Some(asks) = &mut delivery.asks {
            asks.asks = true;
        }
        self.deliver_asking(delivery)
    }

    /// FAIL-CLOSED: who is asked something that nobody understands is not asked.
    fn refuse_question(&mut self, delivery: Delivery) -> Effect {
        let refused = Refused::denied(
            UNFIT,
            "the result is withheld: it asks for input in a way that is not known; ask the operator, do not retry",
        );
        let message = "a result that asks in a way that is not known".to_owned();
        let refusal = match &delivery.waits {
            Waits::Client(id) => {
                let notice = Notice::answer(id, refused, delivery.form, self.era);
                Some(Box::new(notice))
            }
            Waits::Server(_) | Waits::Nobody => None,
        };
        let then = Delivery {
            refusal,
            waits: delivery.waits,
            form: delivery.form,
            ..Delivery::default()
        };
        self.complain("server_question_refused", message, then)
    }

    /// FAIL-CLOSED: only what is decided about can ask by its result. Whatever was asked may end in links.
    pub(super) fn asks_out_of_place(&mut self, frame: &Frame, id: &Id) -> Option<Vec<Effect>> {
        if !read::asks(frame, false) {
            return None;
        }
        let then = Delivery {
            waits: Waits::Client(id.clone()),
            ..Delivery::default()
        };
        Some(match frame.kind() {
            Kind::Error { .. } => self.deliver_asking(Delivery {
                to_client: Some(frame.bytes().to_vec()),
                asks: Some(Asks::of_call("", id).in_frame(frame)),
                ..then
            }),
            _ => vec![self.refuse_question(then)],
        })
    }

    /// What there is to see of the links in an error.
    fn links_in(&self, frame: &Frame, links: Vec<Span>) -> Vec<Part> {
        let links = links.into_iter();
        let parts = links.map(|link| Part {
            sight: self.elicitation(frame.part(link)),
            place: frame.member(Some(link), "message"),
        });
        parts.collect()
    }

    /// What there is to see of what a result asks; `None` if it asks nothing.
    #[expect(clippy::type_complexity, reason = "the parts of one round")]
    fn questions_in(
        &self,
        frame: &Frame,
        asks: &Asks,
    ) -> Result<Option<(Vec<Part>, Vec<(Span, Json)>, Vec<Question>)>, Unfit> {
        let (mut parts, mut changes, mut questions) = (Vec::new(), Vec::new(), Vec::new());
        let asking = asking(frame, asks.is_task)?;
        let is_asked = !asking.is_empty();
        for one in asking {
            // Nothing answers links.
            parts.extend(self.links_in(frame, one.links));
            let Some(asked) = one.questions else {
                continue;
            };
            let state = frame.member(Some(one.within), "requestState");
            let state = state.map(|state| name_of(frame, Some(state)));
            for found in found_in(frame, asked, self.settings.unknown)? {
                let text = Digest::of(frame.part(found.whole));
                let place = found.place(frame);
                if let Some(known) = self.rounds.again(asks, &found.name, text) {
                    changes.extend(place.zip(known.changed.clone()));
                    continue;
                }
                let model = (found.of == Of::Model).then(|| found.known_as(asks));
                let content = found.params.map_or(&b"null"[..], |span| frame.part(span));
                let sight = match (found.of, &model) {
                    (Of::Model, Some(model)) => Some(self.sampling(model.clone(), content)),
                    (Of::Human, _) => Some(self.elicitation(content)),
                    _ => None,
                };
                parts.extend(sight.map(|sight| Part { sight, place }));
                questions.push(Question {
                    whose: asks.whose.clone(),
                    state: state.clone().filter(|_| !asks.is_task),
                    name: found.name,
                    text,
                    of: found.of,
                    model,
                    place,
                    changed: None,
                });
            }
        }
        Ok(is_asked.then_some((parts, changes, questions)))
    }

    /// What a call brings that answers what its server has asked; `None` if that needs no look.
    pub(super) fn answers_in(
        &mut self,
        frame: &Frame,
        (method, params): (Method, &Params),
    ) -> Option<Vec<Part>> {
        let whole = frame.member(params.whole, "inputResponses")?;
        if frame.part(whole) == b"null" {
            return None;
        }
        let state = frame.member(params.whole, "requestState");
        let state = state.map(|state| name_of(frame, Some(state)));
        let tool = match method.reads() {
            true => method.to_string(),
            false => name_of(frame, params.name),
        };
        let (whose, mut parts) = (format!("tool {tool}"), Vec::new());
        let answers = members(frame, whole).unwrap_or_else(|Unfit| vec![(String::new(), whole)]);
        for (name, place) in answers {
            let (mut asked, mut model) = self.rounds.asked_under(&whose, state.as_deref(), &name);
            if asked.is_empty() {
                // Asked on another connection, or long ago.
                asked.push(shape(frame, place));
            }
            let content = frame.part(place);
            parts.extend(asked.into_iter().filter_map(|of| {
                let sight = match of {
                    Of::Model => self.sampled(model.take(), content),
                    Of::Human => self.elicited(content),
                    Of::Client => return None,
                };
                let place = Some(place);
                Some(Part { sight, place })
            }));
        }
        (!parts.is_empty()).then_some(parts)
    }

    /// What the client's model has answered of what a task has asked.
    pub(super) fn task_answers_in(&mut self, frame: &Frame, params: &Params) -> Vec<Part> {
        let mut parts = Vec::new();
        let whose = whose_task(&name_of(frame, params.task_id));
        let whole = frame.member(params.whole, "inputResponses");
        let answers = whole.and_then(|whole| members(frame, whole).ok());
        for (name, place) in answers.unwrap_or_default() {
            let (asked, model) = self.rounds.asked_under(&whose, None, &name);
            if asked.contains(&Of::Model) {
                parts.push(Part {
                    sight: self.sampled(model, frame.part(place)),
                    place: None,
                });
            }
        }
        parts
    }

    /// The call waits until it is known whether what it brings may pass.
    pub(super) fn bring(
        &mut self,
        frame: Frame,
        (id, method): (&Id, Method),
        parts: Vec<Part>,
    ) -> Effect {
        let cancelled = Arc::new(AtomicBool::new(false));
        let deciding = CallState::Deciding {
            cancelled: Arc::clone(&cancelled),
        };
        let asked = Asked::Call(self.refusals_of(method), deciding);
        self.asked.insert(id.clone(), asked);
        Effect::job(Job::Round(Box::new(Round {
            parts,
            changes: Vec::new(),
            then: Onward::Call(Box::new(frame), cancelled),
        })))
    }

    /// It is known whether what a result asks, or what a call brings, may pass.
    pub(super) fn rounded(
        &mut self,
        then: Onward,
        looked: Result<Vec<(Span, Json)>, Refused>,
        now: Instant,
    ) -> Vec<Effect> {
        match (then, looked) {
            (Onward::Deliver(delivery, questions), Ok(changes)) => {
                let Some(changed) = self.with_changes(&delivery, &changes) else {
                    let nothing = Instead::Nothing(gate::unsupported());
                    return self.deliver_instead(delivery, nothing);
                };
                self.rounds.note(questions, &changes);
                self.deliver(Delivery {
                    to_client: changed.or(delivery.to_client),
                    ..delivery
                })
            }
            (Onward::Deliver(delivery, ..), Err(refused)) => {
                let refused = match delivery.to_client {
                    Some(_) => gate::withheld_for(&refused),
                    None => refused,
                };
                self.deliver_instead(delivery, Instead::Nothing(refused))
            }
            (Onward::Call(frame, cancelled), looked) => {
                self.brought(*frame, &cancelled, looked, now)
            }
        }
    }

    /// An answer with other parts, if there are any; `None` if it cannot be made.
    fn with_changes(
        &self,
        delivery: &Delivery,
        changes: &[(Span, Json)],
    ) -> Option<Option<Vec<u8>>> {
        match (changes.is_empty(), &delivery.to_client) {
            (true, _) => Some(None),
            (false, None) => None,
            (false, Some(bytes)) => spliced(bytes, changes).map(Some),
        }
    }

    fn brought(
        &mut self,
        frame: Frame,
        cancelled: &Arc<AtomicBool>,
        looked: Result<Vec<(Span, Json)>, Refused>,
        now: Instant,
    ) -> Vec<Effect> {
        let Kind::Request { id, method, .. } = frame.kind() else {
            return Vec::new();
        };
        let (id, method) = (id.clone(), *method);
        let is_it = matches!(
            self.asked.get(&id),
            Some(Asked::Call(_, CallState::Deciding { cancelled: known })) if Arc::ptr_eq(known, cancelled)
        );
        if !is_it {
            return Vec::new();
        }
        if cancelled.load(Ordering::Acquire) {
            self.asked.remove(&id);
            return Vec::new();
        }
        if self.server_gone {
            return self.refused(&id, &Refused::denied("SERVER_GONE", SERVER_GONE));
        }
        let changed = looked.map(|changes| match changes.is_empty() {
            true => Some(frame),
            // An answer of the protocol is an object.
            false if changes.iter().any(|(_, new)| new.as_object().is_none()) => None,
            false => spliced(frame.bytes(), &changes)
                .and_then(|bytes| Frame::read(bytes, &self.settings.limits).ok()),
        });
        match changed {
            Err(refused) => self.refused(&id, &not_brought(&refused)),
            Ok(None) => self.refused(&id, &gate::unsupported()),
            Ok(Some(frame)) => {
                self.asked.remove(&id);
                let params = match frame.kind() {
                    Kind::Request { params, .. } => *params,
                    _ => Params::default(),
                };
                self.call_of(frame, (id, method), (params, None), now)
            }
        }
    }
}

impl Found {
    /// Where that stands which a policy may change.
    fn place(&self, frame: &Frame) -> Option<Span> {
        match self.of {
            Of::Model => frame.member(self.params, "messages"),
            Of::Human => frame.member(self.params, "message"),
            Of::Client => None,
        }
    }

    /// Under which the log knows what the model is asked.
    fn known_as(&self, asks: &Asks) -> String {
        let known_as = &asks.known_as;
        match self.name.len() <= LONGEST_NAME {
            true => format!("{known_as}/{}", self.name),
            false => format!("{known_as}/{}", Digest::of(self.name.as_bytes())),
        }
    }
}

fn spliced(bytes: &[u8], changes: &[(Span, Json)]) -> Option<Vec<u8>> {
    let parts = changes
        .iter()
        .map(|(place, new)| Some((*place, new.to_jcs().ok()?)));
    splice::replace_all(bytes, parts.collect::<Option<Vec<_>>>()?)
}

fn whose_task(task: &str) -> String {
    format!("task {task}")
}

/// What a client hears whose call brings what may not pass.
fn not_brought(refused: &Refused) -> Refused {
    let reason = &refused.reason;
    let text = format!(
        "refused ({reason}): an answer to what the server asked may not pass; ask the operator, do not retry"
    );
    Refused {
        event: refused.event,
        ..Refused::denied(reason, text)
    }
}

const UNFIT: &str = "INPUT_REQUEST_REFUSED";
/// So many questions are remembered.
const MOST: usize = 1024;
const LONGEST_NAME: usize = 128;
