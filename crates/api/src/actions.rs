//! Actions: proposed, decided, begun, and told how they went.
//!
//! Whoever runs an action gets a permit for exactly the bytes that were decided, once. It has begun
//! when the permit is given: nobody can take a permit and leave no trace.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use countersign_approval::{Arguments, State, Tool, ToolCall};
use countersign_canon::{Json, Object};
use countersign_engine::{
    Admission, ApprovalId, Delivery, Outcome, Permit, Proposal, Redeemed, Refusal, Wanted,
};
use countersign_event::{Scope, TraceParent};

use crate::api::{Api, lock};
use crate::call::Call;
use crate::caller::Caller;
use crate::events::{action_bytes, origin, verdict};
use crate::problem::{Kind, Problem};
use crate::reply::Reply;
use crate::token::{digest, is_secret, random};

mod places;

pub(crate) use places::Actions;
use places::{Action, MAX_AGE, Place, Stage, find, time_left};

/// What is proposed.
struct Wish {
    scope: Scope,
    call_id: String,
    tool: Tool,
    args: Json,
    sanitizer_key: Option<String>,
    approval: Option<ApprovalId>,
    trace: Option<TraceParent>,
}

pub(crate) async fn propose(call: Call) -> Result<Reply, Problem> {
    let mut wish = wish(call.object()?, &call.caller)?;
    wish.trace = call.trace();
    let (api, caller) = (Arc::clone(&call.api), call.caller);
    let worker = Arc::clone(&api);
    api.workers
        .run(move || worker.propose(wish, &caller))
        .await?
}

/// How an action stands. With `wait_ms` the answer to a held one is put off until somebody decides.
pub(crate) async fn show(call: &Call) -> Result<Reply, Problem> {
    let wait = call
        .parameters
        .query("wait_ms")
        .map(str::parse::<u64>)
        .transpose();
    let wait = wait.map_err(|_| Problem::new(Kind::Parameter, "`wait_ms` is a number"))?;
    let until = Instant::now() + Duration::from_millis(wait.unwrap_or(0).min(MAX_WAIT_MS));
    let id = call.parameters.path("action").to_owned();
    let mut closing = call.api.live.closing.subscribe();
    loop {
        let (api, caller, wanted) = (Arc::clone(&call.api), call.caller.clone(), id.clone());
        let (reply, is_held) = call
            .api
            .workers
            .run(move || api.standing(&wanted, &caller))
            .await??;
        if !is_held || Instant::now() >= until || *closing.borrow() {
            return Ok(reply);
        }
        // Held calls are told where they stand when the door closes.
        let _ = tokio::time::timeout(LOOK, closing.wait_for(|closing| *closing)).await;
    }
}

pub(crate) async fn permit(call: &Call) -> Result<Reply, Problem> {
    let id = call.parameters.path("action").to_owned();
    let (api, caller) = (Arc::clone(&call.api), call.caller.clone());
    call.api
        .workers
        .run(move || api.redeem_held(&id, &caller))
        .await?
}

pub(crate) async fn result(call: Call) -> Result<Reply, Problem> {
    let members = call.object()?;
    let id = call.parameters.path("action").to_owned();
    let (api, caller) = (Arc::clone(&call.api), call.caller.clone());
    call.api
        .workers
        .run(move || api.settle(&id, members, &caller))
        .await?
}

impl Api {
    fn propose(&self, wish: Wish, caller: &Caller) -> Result<Reply, Problem> {
        self.claim(caller, &wish.scope)?;
        self.take_tool(&wish.scope.tenant, &wish.tool.name)?;
        let id = format!("act_{}", secret::<16>()?);
        // FAIL-CLOSED: whoever has no room for the action asks nobody and begins nothing.
        let place = self.actions.place(caller)?;
        if let Some(approval) = wish.approval {
            return self.redeem(id, wish, approval, Some(place));
        }
        let origin = origin(caller, wish.trace, &self.engine)?;
        let bytes = action_bytes(&wish.tool.name, &wish.args);
        let admission = self.engine.admit(Proposal {
            scope: &wish.scope,
            call_id: wish.call_id.clone(),
            tool_name: wish.tool.name.clone(),
            server: wish.tool.server.clone(),
            definition: None,
            origin: &origin,
            preconditions: Vec::new(),
            args: wish.args.clone(),
            sanitizer_key: wish.sanitizer_key.clone(),
            bytes: &bytes,
            encode: &|args| action_bytes(&wish.tool.name, args),
        });
        match admission {
            Admission::Permit(permit) => self.begin(id, wish, permit, &bytes, Some(place)),
            Admission::Refusal(refusal) => denied(&id, &wish, refusal, Vec::new()),
            Admission::Hold(hold) => {
                let reason = hold.verdict.reason().unwrap_or("APPROVAL_REQUIRED");
                let held = verdict("require_approval", reason, None);
                let envelope = match &hold.approval {
                    Ok(envelope) => envelope,
                    // What nobody is asked about would wait for ever.
                    Err(nobody) => {
                        let refusal = self.engine.deny_unasked(&wish.scope, &hold, nobody);
                        let why = vec![("error", Json::from(nobody.to_string()))];
                        return denied(&id, &wish, refusal, why);
                    }
                };
                let more = vec![
                    ("approval_id", Json::from(envelope.id().to_string())),
                    ("short_code", Json::from(envelope.plan().hash().short())),
                ];
                let reply = answer(StatusCode::CREATED, &id, &wish, "held", held, more);
                let stage = Stage::Held {
                    approval: envelope.id(),
                    until: Instant::now() + time_left(envelope.clocks())?,
                };
                place.fill(id, wish, stage);
                Ok(reply)
            }
        }
    }

    /// Begins what is permitted, and hands the permit out. An action that was held has its place.
    fn begin(
        &self,
        id: String,
        wish: Wish,
        permit: Permit,
        bytes: &[u8],
        place: Option<Place<'_>>,
    ) -> Result<Reply, Problem> {
        let allowed = verdict("allow", "OK", Some(permit.constraints()));
        let warning = permit.warning().map(str::to_owned);
        let bytes = permit.rewritten().unwrap_or(bytes).to_vec();
        let (digest_of, mode) = (permit.digest().to_string(), permit.mode().as_str());
        let handed = secret::<32>().and_then(|secret| {
            let action = Json::admit(&bytes, &crate::call::LIMITS)?;
            Ok((secret, action))
        });
        let (secret, action) = match handed {
            Ok(handed) => handed,
            Err(problem) => {
                self.engine.abandon(permit)?;
                return Err(problem);
            }
        };
        let running = self.engine.begin(permit, &bytes)?;
        let more = vec![
            ("permit", Json::from(format!("prm_{secret}"))),
            ("digest", Json::from(digest_of)),
            ("approval_mode", Json::from(mode)),
            ("action", action),
            ("warning", Json::from(warning)),
        ];
        let reply = answer(StatusCode::CREATED, &id, &wish, "running", allowed, more);
        let stage = Stage::Running {
            running,
            permit: digest(&secret),
        };
        match place {
            Some(place) => place.fill(id, wish, stage),
            None => self.actions.advance(&id, stage),
        }
        Ok(reply)
    }

    /// Takes the one use of what people have approved.
    fn redeem(
        &self,
        id: String,
        wish: Wish,
        approval: ApprovalId,
        place: Option<Place<'_>>,
    ) -> Result<Reply, Problem> {
        let standing = self.engine.approval(approval)?;
        // SECURITY: an approval of another session is none of this one.
        let is_ours = standing.is_some_and(|standing| standing.row.scope == wish.scope);
        if !is_ours {
            return Err(Problem::new(
                Kind::NoApproval,
                "no such approval in this session",
            ));
        }
        let args = Arguments::new(wish.args.clone())
            .map_err(|error| Problem::new(Kind::Json, error.to_string()))?;
        let wanted = Wanted {
            tool: Some(&wish.tool),
            args: Some(&args),
            ..Wanted::default()
        };
        let encode = |call: &ToolCall| action_bytes(&call.tool.name, call.args.value());
        match self.engine.redeem(approval, wanted, &encode) {
            Redeemed::Permit(permit) => {
                let bytes = permit.rewritten().map(<[u8]>::to_vec).unwrap_or_default();
                self.begin(id, wish, permit, &bytes, place)
            }
            Redeemed::Replayed(replay) => {
                let text = format!(
                    "the approval was used already; its state is `{}`",
                    replay.state
                );
                Err(Problem::new(Kind::Approval, text))
            }
            Redeemed::Drifted(_) => Err(Problem::new(
                Kind::Approval,
                "approved were other arguments",
            )),
            Redeemed::Refused(refusal) => Err(Problem::new(
                Kind::Approval,
                format!("{}: {refusal}", refusal.code()),
            )),
            Redeemed::Failed(refusal) => Err(refusal.into()),
        }
    }

    fn redeem_held(&self, id: &str, caller: &Caller) -> Result<Reply, Problem> {
        let (wish, approval) = {
            let mut actions = lock(&self.actions.0);
            let action = find(&mut actions, id, caller)?;
            let Stage::Held { approval, .. } = action.stage else {
                return Err(Problem::new(
                    Kind::Permit,
                    "the action has its permit already",
                ));
            };
            let wish = Wish {
                scope: action.scope.clone(),
                call_id: String::new(),
                tool: action.tool.clone(),
                args: action.args.clone(),
                sanitizer_key: None,
                approval: None,
                trace: None,
            };
            (wish, approval)
        };
        self.redeem(id.to_owned(), wish, approval, None)
    }

    /// How an action stands, and whether people still decide.
    fn standing(&self, id: &str, caller: &Caller) -> Result<(Reply, bool), Problem> {
        let (held, json) = {
            let mut actions = lock(&self.actions.0);
            let action = find(&mut actions, id, caller)?;
            let held = match action.stage {
                Stage::Held { approval, .. } => Some(approval),
                Stage::Running { .. } | Stage::Settling => None,
            };
            (held, about(id, &action.scope, &action.tool.name))
        };
        let mut members = json;
        let state = match held {
            None => "running".to_owned(),
            Some(approval) => {
                members.push(("approval_id", Json::from(approval.to_string())));
                let standing = self.engine.approval(approval)?;
                let state = standing.map(|standing| standing.row.state);
                match state {
                    Some(State::Pending) => "held".to_owned(),
                    Some(state) => state.as_str().to_owned(),
                    None => "gone".to_owned(),
                }
            }
        };
        let is_held = state == "held";
        members.push(("state", Json::from(state)));
        Ok((Reply::ok(&Json::object(members)), is_held))
    }

    fn settle(&self, id: &str, mut members: Object, caller: &Caller) -> Result<Reply, Problem> {
        let shown = members
            .remove("permit")
            .and_then(Json::into_string)
            .unwrap_or_default();
        let secret = shown.strip_prefix("prm_").unwrap_or_default();
        let running = {
            let mut actions = lock(&self.actions.0);
            let action = find(&mut actions, id, caller)?;
            match std::mem::replace(&mut action.stage, Stage::Settling) {
                Stage::Running { running, permit } if is_secret(secret, &permit) => running,
                stage => {
                    action.stage = stage;
                    return Err(Problem::new(
                        Kind::Permit,
                        "the permit is not of this action",
                    ));
                }
            }
        };
        let outcome = outcome(members);
        let permit = digest(secret);
        let settled = match self.engine.try_settle(running, outcome) {
            Ok(settled) => settled,
            Err(given_back) => {
                let (running, refusal) = *given_back;
                match refusal.may_pass() {
                    // Whoever told can tell again.
                    true => self.actions.advance(id, Stage::Running { running, permit }),
                    false => drop(lock(&self.actions.0).remove(id)),
                }
                return Err(refusal.into());
            }
        };
        lock(&self.actions.0).remove(id);
        let recorded = settled.recorded();
        let mut members = vec![
            ("action_id", Json::from(id)),
            (
                "hash",
                Json::from(recorded.map(|recorded| recorded.hash().to_string())),
            ),
            ("seq", Json::from(recorded.map(|recorded| recorded.seq()))),
        ];
        let delivery = match settled.into_delivery() {
            Delivery::AsItCame => "as_it_came",
            Delivery::Changed(content) => {
                members.push(("content", content));
                "changed"
            }
            Delivery::Held(held) => {
                let text = Delivery::text_while_held(&held);
                members.push(("text_for_model", Json::from(text)));
                members.push(("approval_id", Json::from(held.approval.to_string())));
                members.push(("short_code", Json::from(held.code)));
                members.push(("reason", Json::from(held.reason)));
                "held"
            }
            Delivery::Withheld(reason) => {
                let text = Delivery::text_for_model(&reason);
                members.push(("text_for_model", Json::from(text)));
                members.push(("reason", Json::from(reason)));
                "withheld"
            }
        };
        members.push(("delivery", Json::from(delivery)));
        Ok(Reply::json(StatusCode::CREATED, &Json::object(members)))
    }

    /// Tells the truth about what nobody has told the end of: all of it when the door closes, and what
    /// is too old at any time. Blocks.
    pub(crate) fn abandon(&self, all: bool) {
        let over: Vec<Action> = {
            let mut actions = lock(&self.actions.0);
            let now = Instant::now();
            let is_over = |action: &Action| match action.stage {
                Stage::Held { until, .. } => now > until,
                _ => now.saturating_duration_since(action.since) > MAX_AGE,
            };
            let over = actions.by_id.iter();
            let over = over.filter(|(_, action)| all || is_over(action));
            let ids: Vec<String> = over.map(|(id, _)| id.clone()).collect();
            ids.iter().filter_map(|id| actions.remove(id)).collect()
        };
        for action in over {
            if let Stage::Running { running, .. } = action.stage {
                let outcome = Outcome::Lost {
                    code: "outcome_unknown".to_owned(),
                    message: "nobody told how the action went".to_owned(),
                };
                // What cannot be recorded now is found by the sweep.
                let _ = self.engine.settle(running, outcome);
            }
        }
    }

    /// Whether anything is under way.
    pub(crate) fn is_idle(&self) -> bool {
        let actions = lock(&self.actions.0);
        let is_running = |action: &Action| !matches!(action.stage, Stage::Held { .. });
        !actions.by_id.values().any(is_running)
    }
}

fn wish(mut members: Object, caller: &Caller) -> Result<Wish, Problem> {
    let mut text = |name: &str| members.remove(name).and_then(Json::into_string);
    let (tenant, session) = (text("tenant_id"), text("session_id").unwrap_or_default());
    let (name, server) = (text("tool_name").unwrap_or_default(), text("server"));
    let (call_id, sanitizer_key) = (text("call_id"), text("sanitizer_key"));
    let approval = text("approval_id").map(|id| id.parse()).transpose();
    let approval = approval
        .map_err(|_| Problem::new(Kind::NoApproval, "that is no approval id").at("/approval_id"))?;
    Ok(Wish {
        scope: caller.scope(tenant.as_deref(), &session)?,
        call_id: match call_id {
            Some(id) => id,
            None => format!("call_{}", secret::<12>()?),
        },
        tool: Tool {
            server,
            name,
            definition: None,
        },
        args: members
            .remove("args")
            .unwrap_or_else(|| Json::Object(Object::new())),
        sanitizer_key,
        approval,
        trace: None,
    })
}

fn outcome(mut members: Object) -> Outcome {
    match members.remove("failed") {
        Some(Json::String(message)) => Outcome::Failed {
            code: "failed".to_owned(),
            message,
        },
        _ => Outcome::Result {
            content: members.remove("content").unwrap_or(Json::Null),
            is_error: members.remove("is_error").and_then(|flag| flag.as_bool()) == Some(true),
        },
    }
}

fn about(id: &str, scope: &Scope, tool: &str) -> Vec<(&'static str, Json)> {
    vec![
        ("action_id", Json::from(id)),
        ("tenant_id", Json::from(scope.tenant.as_str())),
        ("session_id", Json::from(scope.session.as_str())),
        ("tool_name", Json::from(tool)),
    ]
}

/// What does not run. Nothing is kept of it: the log has it all.
fn denied(
    id: &str,
    wish: &Wish,
    refusal: Refusal,
    mut more: Vec<(&'static str, Json)>,
) -> Result<Reply, Problem> {
    if !refusal.is_recorded() {
        return Err(refusal.into());
    }
    more.push(("text_for_model", Json::from(refusal.text_for_model())));
    let denied = verdict("deny", refusal.reason(), None);
    let created = StatusCode::CREATED;
    Ok(answer(created, id, wish, "denied", denied, more))
}

fn answer(
    status: StatusCode,
    id: &str,
    wish: &Wish,
    state: &str,
    decision: Json,
    more: Vec<(&'static str, Json)>,
) -> Reply {
    let mut members = about(id, &wish.scope, &wish.tool.name);
    if !wish.call_id.is_empty() {
        members.push(("call_id", Json::from(wish.call_id.as_str())));
    }
    members.push(("state", Json::from(state)));
    members.push(("decision", decision));
    members.extend(more);
    Reply::json(status, &Json::object(members))
}

fn secret<const N: usize>() -> Result<String, Problem> {
    let no_randomness = || Problem::new(Kind::Overloaded, "the system gave no randomness");
    random::<N>().ok_or_else(no_randomness)
}

const MAX_WAIT_MS: u64 = 60_000;
const LOOK: Duration = Duration::from_millis(250);
