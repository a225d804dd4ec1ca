//! Held calls as tasks: the client gets a handle and asks under it until somebody has decided. The
//! request that finds its call approved carries it to the server, and what comes of it is kept.
//!
//! SECURITY: a task lives in the session that made it, and its handle is sealed, so that it cannot be
//! guessed. What a client says about a task approves nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use countersign_approval::UnixMs;
use countersign_canon::Json;
use countersign_engine::ApprovalId;

use crate::frame::{Frame, Id, Kind, Params, Span};
use crate::gate::{Call, Delivery, Job};
use crate::method::Method;
use crate::outbound::Outbound;
use crate::reply::{self, DENIED, INVALID_PARAMS, Refused};
use crate::seal::Seal;
use crate::splice;

use super::pending::{Asked, CallState};
use super::{Effect, Session};

/// The tasks of a session.
#[derive(Default)]
pub(super) struct Tasks {
    all: HashMap<String, Task>,
    /// Requests whose answer is about a task, and about which.
    about: HashMap<Id, String>,
}

struct Task {
    approval: ApprovalId,
    stand: Stand,
    made: Instant,
    /// As the client is told.
    made_at: UnixMs,
    changed_at: UnixMs,
    /// Set when the client no longer wants it.
    cancelled: Arc<AtomicBool>,
}

/// How far a task has come.
enum Stand {
    /// A human decides.
    Waits(Box<Call>),
    /// The request with this id carries it.
    Carried(Id),
    /// The server has made a task of its own of it: this one.
    Theirs(String),
    /// It is over: the members that say how.
    Over(Vec<u8>),
}

impl Tasks {
    /// The requests that people have about them.
    pub(super) fn awaited(&self) -> impl Iterator<Item = ApprovalId> {
        let all = self.all.values();
        let waits = |task: &&Task| matches!(task.stand, Stand::Waits(_) | Stand::Carried(_));
        all.filter(waits).map(|task| task.approval)
    }
}

impl Session {
    /// The call is answered with a handle; `None` if that cannot be done.
    pub(super) fn make_task(
        &mut self,
        call: Call,
        approval: ApprovalId,
        now: Instant,
    ) -> Result<Vec<Effect>, Box<Call>> {
        let mut effects = self.forget_old_tasks(now);
        let text = format!("{approval} {}", call.id);
        let seal = self.settings.seal.as_ref();
        let handle = seal.and_then(|seal| seal.close(&text, CONTEXT));
        let Some(handle) = handle.filter(|_| self.tasks.all.len() < MOST) else {
            return Err(Box::new(call));
        };
        let at = clock();
        let id = call.id.clone();
        let task = Task {
            approval,
            cancelled: Arc::clone(&call.cancelled),
            stand: Stand::Waits(Box::new(call)),
            made: now,
            made_at: at,
            changed_at: at,
        };
        let answer = task.tell(&id, &handle, "task", WAITS);
        self.tasks.all.insert(handle.clone(), task);
        effects.push(Effect::Remember(handle));
        effects.push(Effect::ToCaller(id, answer));
        Ok(effects)
    }

    /// The client asks about a task of ours; `None` if it is not one that we have made.
    pub(super) fn about_task(
        &mut self,
        frame: &Frame,
        id: &Id,
        method: Method,
        params: &Params,
        now: Instant,
    ) -> Option<Vec<Effect>> {
        let is_about_tasks = matches!(
            method,
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel | Method::TasksResult
        );
        let handle = frame.text(params.task_id.filter(|_| is_about_tasks))?;
        if !Seal::claims(&handle) {
            return None;
        }
        let handle = handle.into_owned();
        let mut effects = self.forget_old_tasks(now);
        effects.extend(self.about_known(frame, id, method, params, handle, now));
        Some(effects)
    }

    fn about_known(
        &mut self,
        frame: &Frame,
        id: &Id,
        method: Method,
        params: &Params,
        handle: String,
        now: Instant,
    ) -> Vec<Effect> {
        let Some(task) = self.tasks.all.get_mut(&handle) else {
            return vec![self.no_task(id)];
        };
        if let Stand::Theirs(theirs) = &task.stand {
            let (task, theirs) = (
                theirs.clone(),
                Json::from(theirs.as_str()).to_sorted_ascii(),
            );
            let asked = params
                .task_id
                .and_then(|span| splice::replace(frame.bytes(), span, &[&theirs]));
            let asked = asked.and_then(|bytes| Frame::read(bytes, &self.settings.limits).ok());
            return match asked {
                Some(asked) => self.ask_server(asked, id, method, (handle, task), now),
                None => vec![self.no_task(id)],
            };
        }
        match method {
            Method::TasksGet => self.get_task(id, handle, now),
            Method::TasksCancel => self.cancel_task(id, &handle, now),
            // Nothing is asked of the client in a task of ours, so nothing is answered.
            Method::TasksUpdate => vec![acknowledge(id)],
            _ => vec![self.no_task(id)],
        }
    }

    fn get_task(&mut self, id: &Id, handle: String, now: Instant) -> Vec<Effect> {
        let Some(task) = self.tasks.all.get_mut(&handle) else {
            return Vec::new();
        };
        let call = match std::mem::replace(&mut task.stand, Stand::Carried(id.clone())) {
            Stand::Waits(call) => call,
            stand => {
                task.stand = stand;
                let answer = match &task.stand {
                    Stand::Over(how) => task.tell(id, &handle, "complete", how),
                    _ => task.tell(id, &handle, "complete", WORKS),
                };
                return vec![Effect::ToCaller(id.clone(), answer)];
            }
        };
        let (approval, cancelled) = (task.approval, Arc::clone(&task.cancelled));
        let Some(call) = under(*call, id, &self.settings.limits) else {
            // FAIL-CLOSED: a call that cannot be carried is not run.
            task.stand = Stand::Over(failed(&Refused::denied("FRAME_REFUSED", "refused")));
            return vec![Effect::job(Job::Withdraw(approval)), self.no_task(id)];
        };
        self.tasks.about.insert(id.clone(), handle);
        let deciding = CallState::Deciding { cancelled };
        let deciding = Asked::Call(self.settings.refusals, deciding);
        let patience = self.patience(&call.frame);
        self.asked.insert_until(id.clone(), deciding, patience);
        self.look_again(call, approval, now)
    }

    /// Nobody has decided about the call of a task yet.
    pub(super) fn task_waits(&mut self, call: Call) -> Result<Vec<Effect>, Box<Call>> {
        let Some(handle) = self.tasks.about.remove(&call.id) else {
            return Err(Box::new(call));
        };
        let id = call.id.clone();
        let Some(task) = self.tasks.all.get_mut(&handle) else {
            // The server is gone, and every task with it.
            return Err(Box::new(call));
        };
        if task.cancelled.load(Ordering::Acquire) {
            task.end(CANCELLED.to_vec());
            let answer = task.tell(&id, &handle, "complete", CANCELLED);
            let withdraw = Effect::job(Job::Withdraw(task.approval));
            self.asked.remove(&id);
            return Ok(vec![withdraw, Effect::ToCaller(id, answer)]);
        }
        task.stand = Stand::Waits(Box::new(call));
        let answer = task.tell(&id, &handle, "complete", WAITS);
        let is_asked = self.asked.remove(&id).is_some();
        let told = is_asked.then_some(Effect::ToCaller(id, answer));
        Ok(told.into_iter().collect())
    }

    fn cancel_task(&mut self, id: &Id, handle: &str, now: Instant) -> Vec<Effect> {
        let mut effects = vec![acknowledge(id)];
        let Some(task) = self.tasks.all.get_mut(handle) else {
            return effects;
        };
        match &task.stand {
            Stand::Waits(_) => {
                task.cancelled.store(true, Ordering::Release);
                task.end(CANCELLED.to_vec());
                effects.push(Effect::job(Job::Withdraw(task.approval)));
            }
            Stand::Carried(carrier) => {
                // Not begun: it will not be. Begun: the server may still stop.
                task.cancelled.store(true, Ordering::Release);
                let carrier = carrier.clone();
                effects.extend(self.stop_carried(&carrier, now));
            }
            Stand::Theirs(_) | Stand::Over(_) => {}
        }
        effects
    }

    /// The call of a task runs, and nobody wants it any more. The server hears it, and has a moment to say
    /// how far it came; where whoever carries the call has a connection of its own, that one ends.
    fn stop_carried(&mut self, carrier: &Id, now: Instant) -> Vec<Effect> {
        let Some(Asked::Call(
            _,
            CallState::Running {
                deadline,
                is_unwanted,
                ..
            },
        )) = self.asked.get_mut(carrier)
        else {
            return Vec::new();
        };
        *is_unwanted = true;
        let soon = now.checked_add(GRACE);
        *deadline = deadline.map_or(soon, |deadline| soon.map(|soon| soon.min(deadline)));
        let cancelled = reply::cancelled(carrier, "cancelled");
        let mut effects = vec![Effect::ToServer(Outbound::own(cancelled))];
        if self.closes {
            effects.extend(self.time_out(carrier));
        }
        effects
    }

    /// The server has made a task of its own: it is asked under its own name.
    fn ask_server(
        &mut self,
        frame: Frame,
        id: &Id,
        method: Method,
        (handle, task): (String, String),
        now: Instant,
    ) -> Vec<Effect> {
        self.tasks.about.insert(id.clone(), handle);
        let asked = Asked::Task {
            task,
            key: method.to_string(),
        };
        let params = match frame.kind() {
            Kind::Request { params, .. } => Some(*params),
            _ => None,
        };
        let patience = self.patience(&frame).map(|patience| patience.begun(now));
        self.asked.insert_until(id.clone(), asked, patience);
        match (method, params) {
            (Method::TasksUpdate, Some(params)) => {
                vec![Effect::job(self.task_answered(frame, id.clone(), &params))]
            }
            _ => vec![self.pass(frame)],
        }
    }

    fn no_task(&mut self, id: &Id) -> Effect {
        let text = "refused: there is no such task in this session, or it is too old; ask the operator \
                    before you make its call again";
        let refused = Refused::denied("TASK_UNKNOWN", text).with_code(INVALID_PARAMS);
        let then = Delivery::error(Some(id), refused);
        let message = "a task that is not known".to_owned();
        self.complain("client_task_unknown", message, then)
    }

    /// Answers to requests that are about tasks say how the task stands.
    pub(super) fn as_tasks(&mut self, effects: Vec<Effect>) -> Vec<Effect> {
        if self.tasks.about.is_empty() {
            return effects;
        }
        let effects = effects.into_iter();
        effects
            .map(|effect| match effect {
                Effect::ToClient(bytes) => Effect::ToClient(self.as_task(bytes)),
                Effect::ToCaller(id, bytes) => Effect::ToCaller(id, self.as_task(bytes)),
                other => other,
            })
            .collect()
    }

    fn as_task(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        let Ok(frame) = Frame::read(bytes.clone(), &self.settings.limits) else {
            return bytes;
        };
        let (Kind::Response { id, .. } | Kind::Error { id: Some(id), .. }) = frame.kind() else {
            return bytes;
        };
        let Some(handle) = self.tasks.about.remove(id) else {
            return bytes;
        };
        let Some(task) = self.tasks.all.get_mut(&handle) else {
            return bytes;
        };
        match &task.stand {
            Stand::Theirs(_) => renamed(&frame, &handle).unwrap_or(bytes),
            _ => {
                task.come_to(&frame);
                let how = match &task.stand {
                    Stand::Over(how) => how.as_slice(),
                    _ => WORKS,
                };
                task.tell(id, &handle, "complete", how)
            }
        }
    }

    /// The call of a task was dropped before it was begun.
    pub(super) fn task_dropped(&mut self, id: &Id) -> Option<Effect> {
        let handle = self.tasks.about.remove(id)?;
        let task = self.tasks.all.get_mut(&handle)?;
        task.end(CANCELLED.to_vec());
        let answer = task.tell(id, &handle, "complete", CANCELLED);
        Some(Effect::ToCaller(id.clone(), answer))
    }

    /// The request will not be answered by the server, whatever it was about.
    pub(super) fn forget_question(&mut self, id: &Id) {
        self.tasks.about.remove(id);
    }

    /// Whether a request carries the call of a task.
    pub(crate) fn carries_task(&self, id: &Id) -> bool {
        self.tasks.about.contains_key(id)
    }

    /// Tasks that were made too long ago; what waits there is taken back.
    fn forget_old_tasks(&mut self, now: Instant) -> Vec<Effect> {
        let is_old = |task: &Task| {
            let age = now.saturating_duration_since(task.made);
            age > LIFE && !matches!(task.stand, Stand::Carried(_))
        };
        let old = self.tasks.all.extract_if(|_, task| is_old(task));
        old.filter(|(_, task)| matches!(task.stand, Stand::Waits(_)))
            .map(|(_, task)| Effect::job(Job::Withdraw(task.approval)))
            .collect()
    }

    /// Whether a human is asked about a task that is not too old.
    pub(super) fn has_task_that_waits(&self, now: Instant) -> bool {
        let waits = |task: &Task| {
            let age = now.saturating_duration_since(task.made);
            age <= LIFE && matches!(task.stand, Stand::Waits(_))
        };
        self.tasks.all.values().any(waits)
    }

    /// What still waits for a human when the session ends is taken back.
    pub(super) fn withdraw_tasks(&mut self) -> Vec<Effect> {
        let all = std::mem::take(&mut self.tasks.all).into_values();
        all.filter(|task| matches!(task.stand, Stand::Waits(_)))
            .map(|task| Effect::job(Job::Withdraw(task.approval)))
            .collect()
    }
}

impl Task {
    /// What the answer to its call makes of it.
    fn come_to(&mut self, answer: &Frame) {
        self.end(match answer.kind() {
            Kind::Response { result, .. } => {
                let kind = answer.text(answer.member(Some(*result), "resultType"));
                match kind.as_deref() {
                    Some("task") => {
                        let theirs = answer.text(answer.member(Some(*result), "taskId"));
                        if let Some(theirs) = theirs {
                            self.stand = Stand::Theirs(theirs.into_owned());
                            return;
                        }
                        failed(&unfit())
                    }
                    Some("input_required") => failed(&unfit()),
                    _ => [
                        &b"\"status\":\"completed\",\"result\":"[..],
                        answer.part(*result),
                    ]
                    .concat(),
                }
            }
            // Nobody wanted it any more, and nobody knows how far it came.
            Kind::Error { .. } if self.cancelled.load(Ordering::Acquire) => CANCELLED.to_vec(),
            Kind::Error { error, .. } => {
                let error = answer.part(*error);
                [&b"\"status\":\"failed\",\"error\":"[..], error].concat()
            }
            Kind::Request { .. } | Kind::Notification { .. } => failed(&unfit()),
        });
    }

    fn end(&mut self, how: Vec<u8>) {
        self.changed_at = clock();
        self.stand = Stand::Over(how);
    }

    /// The answer to a request about it.
    fn tell(&self, id: &Id, handle: &str, kind: &str, how: &[u8]) -> Vec<u8> {
        let ttl = LIFE.as_millis();
        let (made, changed) = (self.made_at, self.changed_at);
        let head = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"{kind}","taskId":"{handle}","createdAt":"{made}","lastUpdatedAt":"{changed}","ttlMs":{ttl},"pollIntervalMs":{POLL_MS},"#
        );
        [head.as_bytes(), how, b"}}"].concat()
    }
}

/// The same call under the id of the request that carries it.
fn under(call: Call, id: &Id, limits: &crate::FrameLimits) -> Option<Call> {
    let whole = Span {
        start: 0,
        end: call.frame.bytes().len(),
    };
    let old = call.frame.member(Some(whole), "id")?;
    let bytes = splice::replace(call.frame.bytes(), old, &[id.as_str().as_bytes()])?;
    Some(Call {
        frame: Frame::read(bytes, limits).ok()?,
        id: id.clone(),
        // Somebody asks, and wants to know how it stands now.
        seen: None,
        ..call
    })
}

/// The server's words about its own task, under the handle that the client knows.
fn renamed(answer: &Frame, handle: &str) -> Option<Vec<u8>> {
    let Kind::Response { result, .. } = answer.kind() else {
        return None;
    };
    let theirs = answer.member(Some(*result), "taskId")?;
    let ours = Json::from(handle).to_sorted_ascii();
    splice::replace(answer.bytes(), theirs, &[&ours])
}

fn acknowledge(id: &Id) -> Effect {
    let done = Json::object([("resultType", Json::from("complete"))]);
    Effect::ToCaller(id.clone(), reply::result(id, &done))
}

fn failed(refused: &Refused) -> Vec<u8> {
    let error = refused.to_error_member();
    [&b"\"status\":\"failed\",\"error\":"[..], &error].concat()
}

fn unfit() -> Refused {
    Refused::denied(
        "TASK_UNFIT",
        "the server answered with a question, which a task of a held call cannot carry; make the \
         call again",
    )
    .with_code(DENIED)
}

fn clock() -> UnixMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.map_or(0, |since| since.as_millis());
    UnixMs::new(u64::try_from(ms).unwrap_or(u64::MAX))
}

const CONTEXT: &[u8] = b"task";
const WAITS: &[u8] = br#""status":"working","statusMessage":"a human has to approve this call; answering here approves nothing""#;
const WORKS: &[u8] = br#""status":"working""#;
const CANCELLED: &[u8] = br#""status":"cancelled""#;
/// How long a task is known.
const LIFE: Duration = Duration::from_secs(3600);
/// How long a server has to say how far it came with a call that was cancelled.
const GRACE: Duration = Duration::from_secs(5);
const POLL_MS: u64 = 1000;
/// How many tasks a session can have: each keeps its call or its result.
const MOST: usize = 256;
