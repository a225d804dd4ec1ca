//! One connection between a client and a server, without I/O.
//!
//! A [`Session`] is told each frame that comes from either side and answers with [`Effect`]s: bytes
//! to send and [`Job`]s to run at the [gate](crate::Gate). It keeps who waits for what, so that
//! every request gets exactly one answer, whatever the peers do.

mod again;
mod ask;
mod calls;
mod client;
mod held;
mod list;
mod loss;
mod observed;
mod open;
mod patience;
mod peers;
mod pending;
mod points;
mod rounds;
pub(crate) mod seen;
mod server;
mod task;
mod time;
mod unfinished;

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::frame::{Frame, FrameLimits, Id, Kind};
use crate::gate::{Delivery, Done, Job, Waits};
use crate::outbound::Outbound;
use crate::record::{self, Entry};
use crate::reply::{self, RefusalForm, Refused};
use crate::seal::Seal;
use crate::tools::Shelf;
use crate::{Era, Method, splice};
pub(crate) use calls::APPROVAL;
pub use list::List;
pub(crate) use loss::{Instead, Unanswered};
use pending::{Asked, CallState, ServerAsked, Table};
pub(crate) use rounds::{Asks, Question, asks_anything};
pub(crate) use unfinished::Unfinished;

/// A connection.
pub struct Session {
    settings: Settings,
    shelf: Shelf,
    era: Option<&'static Era>,
    /// What the client waits for.
    asked: Table<Asked>,
    /// What the server waits for.
    server_asked: Table<ServerAsked>,
    /// Requests that the server has taken back, the newest last: their answers come too late.
    taken_back: VecDeque<Id>,
    list: list::Fetch,
    /// Requests whose answer nobody waits for any more.
    late: VecDeque<Id>,
    /// Whether a call is taken back from the server by ending the connection that carries it.
    closes: bool,
    server_gone: bool,
    client_gone: bool,
    complaints: usize,
    /// Errors of the server that answered nobody.
    strays: usize,
    /// How much was told unasked about tasks that no call of this session has begun.
    told_unasked: usize,
    peers: peers::Peers,
    /// What the client can do, where it said so when the peers met.
    client: ask::Abilities,
    /// Our questions to the client's human that have no answer, with the calls that they are about.
    questions: Vec<(Id, Id)>,
    questions_asked: u64,
    /// What the server has asked by results.
    rounds: rounds::Rounds,
    /// Held calls that the client asks about.
    tasks: task::Tasks,
    /// What people were asked about, and nobody waits for at the moment.
    unawaited: again::Unawaited,
    /// Calls that the server has made tasks of.
    open: open::OpenCalls,
    /// How long the client may come back for a call that people were asked about.
    comes_back_until: Option<Instant>,
    began: Instant,
    /// Whether the agent may begin.
    start: points::Start,
}

/// How a session behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the server is called in the log and in manifests.
    pub server: String,
    /// What a frame may ask for.
    pub limits: FrameLimits,
    /// Methods that the table does not name.
    pub unknown: Unknown,
    /// How a refused call is answered.
    pub refusals: RefusalForm,
    /// Which tools the client is shown; all of them if `None`.
    pub shown: Option<ToolNames>,
    /// Which server a tool must come from, where a manifest says so.
    pub elsewhere: ToolNames,
    /// A text that no client uses as an id. The server sees it.
    pub nonce: String,
    /// A text that no server uses as an id. The client sees it.
    pub question_nonce: String,
    /// How long a call that a human has to decide about is kept open; after that its client is told to
    /// come back. Where nobody says so, it depends on whether the client hears meanwhile that it waits.
    pub hold_wait: Option<Duration>,
    /// Where people decide: the id of an approval behind it is the address of its page. A client that
    /// can show a link shows this one.
    pub approval_url: Option<String>,
    /// Seals what a client brings back; without one, calls are not answered with questions.
    pub seal: Option<std::sync::Arc<Seal>>,
    /// How long a call waits until the server has listed its tools.
    pub list_wait: Duration,
    /// How long a server may take to answer. One that tells of progress, or asks the client something meanwhile, has
    /// more time; what the protocol keeps open stays open.
    pub answer_wait: Duration,
    /// Whether policies say how long calls of tools may take; otherwise they have `answer_wait`.
    pub timed_by_policy: bool,
    /// How many requests may wait at the same time, in each direction.
    pub max_waiting: usize,
    /// Whether somebody is asked before the first request of the client goes on.
    pub asks_first: bool,
}

/// A set of tools, by exact name or as a manifest matches them.
#[derive(Clone)]
pub struct ToolNames(std::sync::Arc<dyn Fn(&str) -> bool + Send + Sync>);

/// What becomes of requests and notifications that the table of methods does not name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unknown {
    /// They are refused: nobody knows what they do.
    #[default]
    Refuse,
    /// They pass.
    Pass,
}

/// What the driver has to do.
#[must_use]
pub enum Effect {
    /// Send this to the client.
    ToClient(Vec<u8>),
    /// Send this to the client, where it waits for this request of its own.
    ToCaller(Id, Vec<u8>),
    /// Send this to the server.
    ToServer(Outbound),
    /// Run this at the gate and tell the session what came of it.
    Job(Box<Job>),
    /// The server has listed all its tools: hold them against the books as they are now, keep what is
    /// new, and [tell the session](Session::judged) how they stand. Calls wait for it.
    Judge(Box<List>),
    /// Find this session again for whoever brings this, also on another connection.
    Remember(String),
}

impl Session {
    /// A connection that has just been made.
    pub fn new(settings: Settings, shelf: Shelf) -> Self {
        Self {
            asked: Table::new(settings.max_waiting),
            server_asked: Table::new(settings.max_waiting),
            taken_back: VecDeque::new(),
            list: list::Fetch::new(&settings.nonce),
            settings,
            shelf,
            era: None,
            late: VecDeque::new(),
            closes: false,
            server_gone: false,
            client_gone: false,
            complaints: 0,
            peers: peers::Peers::default(),
            client: ask::Abilities::default(),
            questions: Vec::new(),
            strays: 0,
            told_unasked: 0,
            questions_asked: 0,
            rounds: rounds::Rounds::default(),
            tasks: task::Tasks::default(),
            unawaited: again::Unawaited::default(),
            open: open::OpenCalls::default(),
            comes_back_until: None,
            began: Instant::now(),
            start: points::Start::default(),
        }
    }

    /// From now on each request to the server has a connection of its own.
    pub(crate) fn connects_for_each(&mut self) {
        self.closes = true;
    }

    /// The tools that the server shows.
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// The revision that the peers speak, as far as it is known.
    pub fn era(&self) -> Option<&'static Era> {
        self.era
    }

    /// Whether the client waits for an answer that has to come some time: not on what the protocol keeps open.
    pub fn is_awaited(&self) -> bool {
        self.asked.has_end(|asked| matches!(asked, Asked::Call(..)))
    }

    /// Whether the client has ended the session.
    pub(crate) fn is_left(&self) -> bool {
        self.client_gone
    }

    /// Whether calls wait that the server may yet get.
    pub fn has_unsent(&self) -> bool {
        self.asked.iter().any(|(_, asked)| {
            matches!(
                asked,
                Asked::Call(
                    _,
                    CallState::Waiting | CallState::Deciding { .. } | CallState::Held(_)
                )
            )
        })
    }

    /// What came of a job.
    pub fn done(&mut self, done: Done, now: Instant) -> Vec<Effect> {
        let effects = self.done_plainly(done, now);
        self.as_tasks(effects)
    }

    fn done_plainly(&mut self, done: Done, now: Instant) -> Vec<Effect> {
        match done {
            Done::Begun(id, begun) => {
                let closed = self.close_question(&id);
                closed
                    .into_iter()
                    .chain(self.begun(id, begun, now))
                    .collect()
            }
            Done::Refused(id, refused) => {
                let closed = self.close_question(&id);
                closed
                    .into_iter()
                    .chain(self.refused(&id, &refused))
                    .collect()
            }
            Done::Released(id, tool, content, is_error) => {
                let closed = self.close_question(&id);
                let released = match self.asked.remove(&id) {
                    Some(asked) if self.is_unwanted(&id, &asked) => Vec::new(),
                    Some(Asked::Call(form, _)) => self.deliver_asking(Delivery {
                        to_client: Some(reply::released(&id, &content, is_error)),
                        asks: Some(Box::new(Asks::of_call(&tool, &id))),
                        waits: Waits::Client(id),
                        form,
                        ..Delivery::default()
                    }),
                    _ => Vec::new(),
                };
                closed.into_iter().chain(released).collect()
            }
            Done::Held(call, approval, refused) => self.held(*call, approval, refused, now),
            Done::StillHeld(call, approval) => self.still_held(*call, approval, now),
            Done::Nothing => Vec::new(),
            Done::Dropped(id) => {
                self.asked.remove(&id);
                self.task_dropped(&id).into_iter().collect()
            }
            Done::Deliver(delivery) => self.deliver_asking(delivery),
            Done::Rounded(then, looked) => self.rounded(then, looked, now),
            Done::Opened(frame, opened) => self.opened(*frame, opened, now),
            Done::Instead(delivery, instead) => self.deliver_instead(delivery, instead),
            Done::Unrecorded(Waits::Client(id), refused) => {
                self.unsent(&id);
                vec![Effect::ToClient(refused.to_error(Some(&id)))]
            }
            Done::Unrecorded(Waits::Server(id), refused) => {
                let error = refused.to_error(Some(&id));
                self.server_asked.remove(&id);
                vec![Effect::ToServer(Outbound::own(error))]
            }
            Done::Unrecorded(Waits::Nobody, _) => Vec::new(),
        }
    }

    /// A request that is no call was not sent after all.
    fn unsent(&mut self, id: &Id) {
        if let Some(Asked::Plain | Asked::Task { .. }) = self.asked.get(id) {
            self.asked.remove(id);
            self.forget_question(id);
        }
    }

    /// A refusal on its way to a client that waits for a call.
    fn refused(&mut self, id: &Id, refused: &Refused) -> Vec<Effect> {
        match self.asked.remove(id) {
            Some(asked) if self.is_unwanted(id, &asked) => Vec::new(),
            Some(Asked::Call(form, _)) => {
                vec![Effect::ToClient(self.answer(id, form, refused))]
            }
            _ => Vec::new(),
        }
    }

    /// Whether the client has taken a call back, or has heard already that nothing comes of it.
    fn is_unwanted(&self, id: &Id, asked: &Asked) -> bool {
        let Asked::Call(_, CallState::Deciding { cancelled }) = asked else {
            return false;
        };
        // Whoever asks about a task waits for what becomes of its call.
        cancelled.load(Ordering::Acquire) && !self.carries_task(id)
    }

    fn answer(&self, id: &Id, form: RefusalForm, refused: &Refused) -> Vec<u8> {
        refused.to_answer(id, form, self.era)
    }

    /// How a refusal of a call is told: whoever fetches something takes no result of a tool.
    fn refusals_of(&self, method: Method) -> RefusalForm {
        match method.reads() {
            true => RefusalForm::Error,
            false => self.settings.refusals,
        }
    }

    fn deliver(&self, delivery: Delivery) -> Vec<Effect> {
        if self.is_taken_back(&delivery) {
            return Vec::new();
        }
        let warned = self.warned(&delivery);
        let refusal = delivery.refusal.map(|refusal| refusal.to_message());
        let to_client = warned.or(delivery.to_client).or(refusal);
        let to_client = to_client.map(Effect::ToClient);
        let to_server = delivery.to_server.map(Effect::ToServer);
        to_client.into_iter().chain(to_server).collect()
    }

    /// An answer with what policies warn of who let it through.
    fn warned(&self, delivery: &Delivery) -> Option<Vec<u8>> {
        let (warning, bytes) = (delivery.warning.as_ref()?, delivery.to_client.as_ref()?);
        let frame = Frame::read(bytes.clone(), &self.settings.limits).ok()?;
        match frame.kind() {
            Kind::Response { result: part, .. } | Kind::Error { error: part, .. } => {
                splice::with_meta(&frame, *part, WARNING, warning)
            }
            Kind::Request { .. } | Kind::Notification { .. } => None,
        }
    }

    /// Records that something was odd, then delivers. Who floods us with oddities does not fill the
    /// log with them.
    fn complain(&mut self, code: &str, message: String, mut then: Delivery) -> Effect {
        self.complaints += 1;
        then.is_ours = true;
        let entries = match self.complaints {
            ..MAX_COMPLAINTS => vec![record::fault(code, message)],
            MAX_COMPLAINTS => vec![record::fault(
                "too_many_faults",
                "further faults of this session are not recorded".to_owned(),
            )],
            _ => Vec::new(),
        };
        Effect::job(Job::Record { entries, then })
    }
}

impl Effect {
    fn job(job: Job) -> Self {
        Self::Job(Box::new(job))
    }
}

impl ToolNames {
    /// Tools for which `includes` says so.
    pub fn new(includes: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(std::sync::Arc::new(includes))
    }

    /// No tool.
    pub fn none() -> Self {
        Self::new(|_| false)
    }

    fn include(&self, tool: &str) -> bool {
        (self.0)(tool)
    }
}

impl std::fmt::Debug for ToolNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ToolNames")
    }
}

impl Settings {
    /// The usual settings.
    pub fn new(
        server: impl Into<String>,
        nonce: impl Into<String>,
        question_nonce: impl Into<String>,
    ) -> Self {
        Self {
            server: server.into(),
            limits: FrameLimits::default(),
            unknown: Unknown::default(),
            refusals: RefusalForm::default(),
            shown: None,
            elsewhere: ToolNames::none(),
            nonce: nonce.into(),
            question_nonce: question_nonce.into(),
            hold_wait: None,
            approval_url: None,
            seal: None,
            list_wait: Duration::from_secs(10),
            answer_wait: Duration::from_secs(600),
            timed_by_policy: true,
            max_waiting: 1024,
            asks_first: false,
        }
    }
}

/// Records, then sends to the client.
fn record_then_client(entry: Entry, bytes: Vec<u8>, id: Id) -> Effect {
    Effect::job(Job::Record {
        entries: vec![entry],
        then: Delivery {
            to_client: Some(bytes),
            waits: Waits::Client(id),
            ..Delivery::default()
        },
    })
}

/// Where a client reads that a policy warns of what it let through.
const WARNING: &str = "countersign/warning";
const MAX_COMPLAINTS: usize = 100;
