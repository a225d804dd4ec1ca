//! The gate to the engine: runs the jobs that a session asks for.
//!
//! Everything here may wait for the disk, so a driver runs it beside the session, on as many threads
//! as it likes.

mod again;
mod hold;
mod look;
mod object;
mod points;
mod quick;
mod sight;

pub(crate) use points::unsupported;
pub(crate) use quick::{Lost, Quick, Soon};
pub(crate) use sight::{Onward, Part, Round, Sight, withheld_for};

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use countersign_approval::Tool;
use countersign_canon::{Digest, Hash, Json};
use countersign_engine::{
    ApprovalId, Engine, Hold, Intervened, Intervention, News, Origin, Outcome, Permit, Proposal,
    Refusal, Running, Start,
};
use countersign_event::payload::ToolCallDenied;
use countersign_event::{EventType, Payload, Scope};
use countersign_policy::Point;

use crate::frame::{Frame, FrameLimits, Id, Kind, Span};
use crate::outbound::{Begun, Outbound};
use crate::record::{self, Entry};
use crate::reply::{Notice, RefusalForm, Refused};
use crate::session::Asks;
use crate::tools::Objection;
use crate::{Method, beside, splice};

/// Where a session's decisions and events go.
pub struct Gate {
    engine: Arc<Engine>,
    scope: Scope,
    server: String,
    origin: Origin,
    /// Whether anybody was asked in this session.
    has_asked: AtomicBool,
    /// Whether people have a result of this session.
    has_kept: AtomicBool,
    /// Whether a result was told of whose event is not on its way.
    owes: AtomicBool,
    /// Whether the agent may begin, once that is known.
    opened: Mutex<Option<Result<(), Refused>>>,
}

/// Something that a session wants done.
pub enum Job {
    /// Decide a call, and begin it if it may run.
    Decide(Box<Call>),
    /// Look whether a human has decided about a call, and begin it if it may run.
    Look(Box<Call>, ApprovalId),
    /// Take a request for approval back: nobody waits for it any more.
    Withdraw(ApprovalId),
    /// Record how a call went, then deliver.
    Settle {
        /// The call.
        running: Running,
        /// How it went.
        outcome: Outcome,
        /// Whether the outcome holds all that the tool said.
        is_whole: bool,
        /// What to deliver then.
        then: Delivery,
    },
    /// Ask whether the agent may begin, before its first request goes on.
    Open {
        /// The request.
        frame: Frame,
        /// What the client says about itself.
        about: Json,
    },
    /// Ask whether something may pass, if anybody wants to be asked; then record and deliver.
    Pass {
        /// What it is.
        sight: Box<Sight>,
        /// What to deliver then.
        then: Delivery,
    },
    /// The same for several things that pass together or not at all.
    Round(Box<Round>),
    /// Ask those who look at results about one that comes late; then record and deliver.
    Review(Box<Late>),
    /// Record events, then deliver.
    Record {
        /// The events.
        entries: Vec<Entry>,
        /// What to deliver then.
        then: Delivery,
    },
}

/// What the server has said about a task that it has made of a call.
pub struct Late {
    /// What there is to see, if the call is known and everything can be shown.
    pub(crate) subject: Option<Json>,
    /// Whether it is nothing but what the tool said, so that something else can stand in its place.
    pub(crate) is_plain: bool,
    pub(crate) entry: Entry,
    pub(crate) then: Delivery,
}

/// A call on its way to a decision.
pub struct Call {
    pub(crate) id: Id,
    /// What the client sent: a call, or a method of its own that fetches something.
    pub(crate) method: Method,
    /// The tool, or the method where that fetches something.
    pub(crate) tool: String,
    pub(crate) args: Json,
    pub(crate) frame: Frame,
    /// The digest of the tool's definition, as the server shows it; for a method, what it is by the protocol.
    pub(crate) definition: Option<Digest>,
    /// The approval that the client says it is for.
    pub(crate) approval: Option<ApprovalId>,
    /// Why the tool itself is not to be trusted.
    pub(crate) objection: Option<Objection>,
    /// Set when the client no longer wants it.
    pub(crate) cancelled: Arc<AtomicBool>,
    /// The approval that it comes back for, after it was answered with a question.
    pub(crate) back: Option<ApprovalId>,
    /// What people were asked about when it was made before, if nobody else waits for that.
    pub(crate) again: Option<Again>,
    /// What others of its session wait for.
    pub(crate) awaited: Vec<ApprovalId>,
    /// When nobody had decided about it, and what had happened by then.
    pub(crate) seen: Option<(Instant, News)>,
}

/// A request for approval that its client is to make the same call for again.
pub(crate) struct Again {
    pub(crate) approval: ApprovalId,
    /// What the client was told, or would have been.
    pub(crate) refused: Refused,
}

/// What is delivered once something is recorded.
#[derive(Default)]
pub struct Delivery {
    pub(crate) to_client: Option<Vec<u8>>,
    /// What the client gets where it is refused what it waits for.
    pub(crate) refusal: Option<Box<Notice>>,
    pub(crate) to_server: Option<Outbound>,
    /// Whether it is of our own making: then it is delivered even if nothing could be recorded,
    /// because nobody should wait for ever.
    pub(crate) is_ours: bool,
    /// What policies warn of, who let it through.
    pub(crate) warning: Option<String>,
    /// What the client is asked by it, that nobody has looked at yet.
    pub(crate) asks: Option<Box<Asks>>,
    /// Who waits, in case nothing may be delivered.
    pub(crate) waits: Waits,
    /// How the client hears of that.
    pub(crate) form: RefusalForm,
}

/// Who waits for a delivery.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Waits {
    /// Nobody.
    #[default]
    Nobody,
    /// The client, under this id.
    Client(Id),
    /// The server, under this id.
    Server(Id),
}

/// What takes the place of something that came.
#[derive(Debug)]
pub enum Instead {
    /// This, in the place of a result.
    Result(Json),
    /// This, in the place of the part that was shown at a point.
    Part(Point, Json),
    /// Nothing.
    Nothing(Refused),
}

/// What came of a job.
pub enum Done {
    /// The call may be forwarded now.
    Begun(Id, Begun),
    /// The call may not be forwarded.
    Refused(Id, Refused),
    /// The call has run before: this is its tool, its result, and whether that is an error.
    Released(Id, String, Json, bool),
    /// A human has not decided yet. The refusal is for a client that waits no longer.
    Held(Box<Call>, ApprovalId, Refused),
    /// The same for a call that was held before.
    StillHeld(Box<Call>, ApprovalId),
    /// There is nothing to do.
    Nothing,
    /// The client no longer wanted the call; nothing was begun.
    Dropped(Id),
    /// It is recorded; deliver.
    Deliver(Delivery),
    /// The agent may begin, or not.
    Opened(Box<Frame>, Result<(), Refused>),
    /// Something else is delivered than what came.
    Instead(Delivery, Instead),
    /// All of a round may pass, with these in the place of parts of it; or nothing of it.
    Rounded(Onward, Result<Vec<(Span, Json)>, Refused>),
    /// It could not be recorded; whoever waits gets an error.
    Unrecorded(Waits, Refused),
}

impl Delivery {
    /// An error for the client.
    pub(crate) fn error(id: Option<&Id>, refused: Refused) -> Self {
        Self {
            refusal: Some(Box::new(Notice::error(id, refused))),
            ..Self::default()
        }
    }

    /// Says this too beside what it delivers.
    fn warning_of(mut self, more: Option<&str>) -> Self {
        self.warning = match (self.warning, more) {
            (Some(said), Some(more)) => Some(format!("{said}\n{more}")),
            (said, more) => said.or(more.map(str::to_owned)),
        };
        self
    }

    fn recorded_in(mut self, event: Option<Hash>) -> Self {
        if let Some(refusal) = &mut self.refusal {
            refusal.recorded_in(event);
        }
        self
    }
}

impl Gate {
    /// A gate for one session with one server.
    pub fn new(
        engine: Arc<Engine>,
        scope: Scope,
        server: impl Into<String>,
        origin: Origin,
    ) -> Self {
        Self {
            engine,
            scope,
            server: server.into(),
            origin,
            has_asked: AtomicBool::new(false),
            has_kept: AtomicBool::new(false),
            owes: AtomicBool::new(false),
            opened: Mutex::new(None),
        }
    }

    /// Does a job.
    pub fn run(&self, job: Job) -> Done {
        match job {
            Job::Decide(call) => self.decide(*call),
            Job::Look(call, approval) => self.look(*call, approval),
            Job::Withdraw(approval) => {
                // Whoever decides later finds it taken back, or expired.
                let _ = self.engine.cancel(approval);
                Done::Nothing
            }
            Job::Settle {
                running,
                outcome,
                is_whole,
                then,
            } => self.settle(running, outcome, is_whole, then),
            Job::Open { frame, about } => Done::Opened(Box::new(frame), self.open(about)),
            Job::Pass { sight, then } => self.pass(*sight, then),
            Job::Round(round) => self.round(*round),
            Job::Review(late) => self.review(*late),
            Job::Record { entries, then } => deliver(self.record(entries), then),
        }
    }

    /// Records who meets whom, before anything else happens.
    pub fn introduce(&self, about: &Json) -> Result<(), Refusal> {
        let text = about.to_sorted_ascii();
        let entry = record::write("mcp/session".to_owned(), &self.server, &text);
        self.record(vec![entry]).map(drop)
    }

    /// Records that the session is over, and takes back what it has asked people for.
    pub fn terminate(&self, reason: &str) -> Result<(), Refusal> {
        if self.attends(Point::AgentShutdown) {
            let summary = Json::object([("reason", Json::from(reason))]);
            let subject = Json::object([("summary", summary)]);
            // What is said about the end is recorded; the end comes all the same.
            let _said = self.intervene(Point::AgentShutdown, subject, None);
        }
        self.engine.terminate(&self.scope, reason).map(drop)
    }

    /// Gives the last event.
    fn record(&self, entries: Vec<Entry>) -> Result<Option<Hash>, Refusal> {
        if entries.is_empty() {
            return Ok(None);
        }
        let events = entries.into_iter();
        let events: Vec<_> = events
            .map(|entry| (entry.event_type, entry.payload))
            .collect();
        let last = self.engine.record_all(&self.scope, &events)?;
        Ok(Some(last.hash()))
    }

    fn decide(&self, call: Call) -> Done {
        if call.cancelled.load(Ordering::Acquire) {
            self.forget_again(&call);
            return Done::Dropped(call.id);
        }
        if let Some(objection) = call.objection
            && let Err(refused) = self.object(&call, objection)
        {
            return Done::Refused(call.id, refused);
        }
        if let Some(approval) = self.held_result(&call) {
            return self.look(call, approval);
        }
        if let Some(approval) = call.approval {
            return match self.engine.approval(approval) {
                // SECURITY: an approval of another session is none of this one.
                Ok(Some(standing)) if standing.row.scope == self.scope => {
                    self.redeem(call, approval)
                }
                _ => Done::Refused(call.id, hold::gone()),
            };
        }
        if let Some(approval) = self.asked_before(&call) {
            return self.look(call, approval);
        }
        if let Some(approval) = self.approved(&call) {
            return self.redeem(call, approval);
        }
        let start = self.propose(&call, |proposal| self.engine.start(proposal));
        self.started(call, start)
    }

    /// Tells the engine of a call, as its client asks for it.
    fn propose<T>(&self, call: &Call, to: impl FnOnce(Proposal<'_>) -> T) -> T {
        let encode = |args: &Json| rewritten(call, args).unwrap_or_default();
        let origin = self.origin(call);
        to(Proposal {
            scope: &self.scope,
            call_id: call.id.as_str().to_owned(),
            tool_name: call.tool.clone(),
            server: Some(self.server.clone()),
            definition: call.definition,
            origin: &origin,
            preconditions: Vec::new(),
            args: call.args.clone(),
            sanitizer_key: None,
            bytes: call.frame.bytes(),
            encode: &encode,
        })
    }

    fn started(&self, call: Call, start: Start) -> Done {
        match start {
            Start::Running(running) => forward(call.id, call.frame.into_bytes(), running),
            Start::Permit(permit) => self.begin(call, permit),
            Start::Hold(held) => match hold::asked(&held) {
                Some(approval) => {
                    self.has_asked.store(true, Ordering::Release);
                    Done::Held(Box::new(call), approval, hold::refused(&held))
                }
                None => Done::Refused(call.id, hold::refused(&held)),
            },
            Start::Refusal(refusal) if refusal.is_recorded() => {
                Done::Refused(call.id, refused(&refusal))
            }
            Start::Refusal(refusal) => {
                let refused = self.undecided(&call, &refusal);
                Done::Refused(call.id, refused)
            }
        }
    }

    /// A call that could not be decided about is told of by itself, where the log takes that.
    fn undecided(&self, call: &Call, refusal: &Refusal) -> Refused {
        let tool = call.tool.escape_debug();
        let message = format!("a call of `{tool}`: {}", refusal.message());
        let event = match self.record(vec![record::fault(refusal.reason(), message)]) {
            Ok(event) => event,
            Err(_) => return refused(refusal),
        };
        match refusal.reason() {
            MISPLACED => Refused {
                event,
                ..Refused::denied(
                    "ID_REUSED",
                    "refused: another call of this session had the same id; call with a new one",
                )
            },
            _ => Refused {
                event,
                ..refused(refusal)
            },
        }
    }

    /// Where a call comes from, with the trace that its client says it is a part of.
    fn origin(&self, call: &Call) -> Cow<'_, Origin> {
        let Kind::Request { params, .. } = call.frame.kind() else {
            return Cow::Borrowed(&self.origin);
        };
        let trace = call.frame.member(params.meta, "traceparent");
        let trace = call.frame.text(trace).and_then(|text| text.parse().ok());
        match trace {
            None => Cow::Borrowed(&self.origin),
            trace => Cow::Owned(Origin {
                trace,
                ..self.origin.clone()
            }),
        }
    }

    fn tool(&self, call: &Call) -> Tool {
        Tool {
            server: Some(self.server.clone()),
            name: call.tool.clone(),
            definition: call.definition,
        }
    }

    fn begin(&self, call: Call, permit: Permit) -> Done {
        let bytes = match permit.rewritten().map(<[u8]>::to_vec) {
            None => call.frame.into_bytes(),
            Some(rewritten) if is_same_call(&call, &rewritten) => rewritten,
            // FAIL-CLOSED: a rewriting that is no longer this call is not sent.
            Some(_) => {
                self.abandon(permit);
                let refused = self.unfit(&call);
                return Done::Refused(call.id, refused);
            }
        };
        if call.cancelled.load(Ordering::Acquire) {
            self.abandon(permit);
            return Done::Dropped(call.id);
        }
        match self.engine.begin(permit, &bytes) {
            Ok(running) => forward(call.id, bytes, running),
            Err(refusal) => Done::Refused(call.id, refused(&refusal)),
        }
    }

    /// A call that was allowed with other arguments, which it cannot be sent with.
    fn unfit(&self, call: &Call) -> Refused {
        let denied = ToolCallDenied {
            call_id: Some(call.id.as_str().to_owned()),
            reason_code: Some(UNFIT.to_owned()),
            ..ToolCallDenied::default()
        };
        let entry = Entry {
            event_type: EventType::ToolCallDenied,
            payload: Payload::ToolCallDenied(denied),
        };
        Refused {
            event: self.record(vec![entry]).ok().flatten(),
            ..Refused::denied(UNFIT, "refused: ask the operator; do not retry")
        }
    }

    fn abandon(&self, permit: Permit) {
        // What cannot be recorded now is found by the next sweep, when this process is gone.
        let _ = self.engine.abandon(permit);
    }
}

/// The frame with the arguments that were judged; what stands beside them must be what was judged.
///
/// FAIL-CLOSED: what fetches something is sent as it came, or not at all.
fn rewritten(call: &Call, judged: &Json) -> Option<Vec<u8>> {
    let frame = &call.frame;
    let Kind::Request { params, .. } = frame.kind() else {
        return None;
    };
    match call.method.reads() {
        true => (call.args == *judged).then(|| frame.bytes().to_vec()),
        false => splice::with_arguments(frame, &beside::split(judged, frame, params)?),
    }
}

fn forward(id: Id, bytes: Vec<u8>, running: Running) -> Done {
    match Begun::new(bytes, running) {
        Some(begun) => Done::Begun(id, begun),
        None => Done::Refused(
            id,
            Refused::denied(OTHER_BYTES, "refused: ask the operator; do not retry"),
        ),
    }
}

fn refused(refusal: &Refusal) -> Refused {
    Refused {
        event: refusal.event().map(|event| event.hash()),
        ..Refused::denied(refusal.reason(), refusal.text_for_model())
    }
}

fn deliver(recorded: Result<Option<Hash>, Refusal>, then: Delivery) -> Done {
    match recorded {
        Ok(event) => Done::Deliver(then.recorded_in(event)),
        Err(_) if then.is_ours => Done::Deliver(then),
        // FAIL-CLOSED: what could not be recorded is not delivered.
        Err(refusal) => Done::Unrecorded(then.waits, refused(&refusal)),
    }
}

/// Whether rewritten bytes are still the same call of the same tool.
fn is_same_call(call: &Call, bytes: &[u8]) -> bool {
    let Ok(frame) = Frame::read(bytes.to_vec(), &FrameLimits::default()) else {
        return false;
    };
    match frame.kind() {
        Kind::Request {
            id, method, params, ..
        } => {
            let named = frame.text(params.name);
            let is_named = named.as_deref() == Some(call.tool.as_str());
            *id == call.id && *method == call.method && (call.method.reads() || is_named)
        }
        _ => false,
    }
}

/// What the log takes at another time only: here, a call under an id that had one before.
const MISPLACED: &str = "runtime_error:order";
/// Policies changed something that cannot be changed in its message.
const UNFIT: &str = "runtime_error:transform_target_missing";
const OTHER_BYTES: &str = "runtime_error:bytes_differ";
