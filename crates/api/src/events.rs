//! Events: recording what happened, deciding what is proposed, listing.

use std::sync::Arc;

use axum::http::StatusCode;
use countersign_canon::{Hash, Json, Limits, Object};
use countersign_engine::{Admission, Engine, Origin, Proposal};
use countersign_event::{EventType, Head, Line, Payload, Scope, SessionId, TraceParent};
use countersign_policy::capability::Constraints;
use countersign_store::{Filter, Recorded, Stored};

use crate::api::Api;
use crate::call::Call;
use crate::caller::Caller;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;
use crate::{Role, token};

/// An event that somebody brings.
struct Draft {
    scope: Scope,
    event_type: EventType,
    payload: Json,
    ts_unix_ms: Option<u64>,
    place: Place,
}

/// Where an event is to go.
#[derive(Clone, Copy)]
enum Place {
    Next,
    /// This number, whatever comes before it.
    Number(u64),
    After(Head),
}

pub(crate) async fn append(call: Call) -> Result<Reply, Problem> {
    let mut draft = draft(call.object()?, &call.caller)?;
    draft.trace(call.trace());
    let (api, caller) = (Arc::clone(&call.api), call.caller);
    match draft.event_type {
        EventType::ToolCallProposed => {
            let worker = Arc::clone(&api);
            let proposed = move || propose(draft, &caller, &worker);
            api.workers.run(proposed).await?
        }
        _ => record(draft, caller, &api).await,
    }
}

pub(crate) async fn list(call: &Call) -> Result<Reply, Problem> {
    let parameters = &call.parameters;
    let number = |name: &str| {
        let text = parameters.query(name);
        let number = text.map(str::parse::<u64>).transpose();
        number.map_err(|_| Problem::new(Kind::Parameter, format!("`{name}` is a number")))
    };
    let session = parameters
        .query("session_id")
        .map(SessionId::new)
        .transpose()?;
    let event_type = parameters.query("event_type").map(event_type).transpose()?;
    let filter = Filter {
        tenant: match (parameters.query("tenant_id"), &call.caller.tenant, &session) {
            (None, None, None) => None,
            (named, _, _) => Some(call.caller.tenant(named)?),
        },
        session,
        event_type,
        tool_name: parameters.query("tool_name").map(str::to_owned),
        since_unix_ms: number("since_unix_ms")?,
        until_unix_ms: number("until_unix_ms")?,
    };
    if call.caller.role == Role::Agent {
        let Some(session) = &filter.session else {
            let text = "an agent lists the events of one session: name it with `session_id`";
            return Err(Problem::new(Kind::Parameter, text));
        };
        let tenant = parameters.query("tenant_id");
        let scope = call.caller.scope(tenant, session.as_str())?;
        call.api.check_owner(&call.caller, &scope).await?;
    }
    let cursor = parameters
        .query("cursor")
        .or(parameters.query("page_token"));
    let cursor = cursor.filter(|text| !text.is_empty());
    let cursor = cursor.map(str::parse).transpose()?;
    let limit = parameters.limit()?;
    let engine = Arc::clone(&call.api.engine);
    let read = move || {
        engine
            .store()
            .reader()
            .page(&filter, cursor.as_ref(), limit)
    };
    let page = call.api.workers.run(read).await??;
    let events = page
        .events
        .iter()
        .map(json)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Reply::ok(&Json::object([
        ("events", Json::Array(events)),
        ("next", Json::from(page.next.map(|next| next.to_string()))),
    ]))
    .tagged(call.if_none_match()))
}

/// An event as it is stored, and its place among all.
pub(crate) fn json(event: &Stored) -> Result<Json, Problem> {
    let damaged = |_| Problem::new(Kind::Damaged, format!("event {} cannot be read", event.id));
    let mut json = Json::admit(&event.line, &STORED).map_err(damaged)?;
    if let Some(members) = json.as_object_mut() {
        members.insert("id".to_owned(), Json::from(event.id));
    }
    Ok(json)
}

impl Draft {
    /// Notes the trace that the caller's request is a part of, where an event has a place for it.
    fn trace(&mut self, trace: Option<TraceParent>) {
        let has_place = [EventType::ToolCallProposed, EventType::ModelCallStarted];
        if let (Some(trace), Some(payload)) = (trace, self.payload.as_object_mut())
            && has_place.contains(&self.event_type)
            && !payload.contains_key("traceparent")
        {
            payload.insert("traceparent".to_owned(), Json::from(trace.to_string()));
        }
    }
}

fn draft(mut members: Object, caller: &Caller) -> Result<Draft, Problem> {
    let mut text = |name: &str| members.remove(name).and_then(Json::into_string);
    let tenant = text("tenant_id");
    let session = text("session_id").unwrap_or_default();
    let named = text("event_type").unwrap_or_default();
    let prev_hash = text("prev_hash");
    let user = text("user_id").filter(|user| !user.is_empty());
    let scope = caller.scope(tenant.as_deref(), &session)?;
    let event_type = event_type(&named)?;
    // SECURITY: what the engine decides is told by the engine alone.
    if ENGINE_ONLY.contains(&event_type) {
        let text = format!("`{event_type}` is recorded by the engine when it decides");
        return Err(Problem::new(Kind::EngineOnly, text).at("/event_type"));
    }
    let mut number = |name: &str| members.remove(name).and_then(|value| value.as_u64());
    let seq = number("seq");
    let ts_unix_ms = number("ts_unix_ms").filter(|time| *time != 0);
    let mut payload = members.remove("payload").unwrap_or(Json::Null);
    if let (Some(user), Some(payload)) = (user, payload.as_object_mut())
        && !payload.contains_key("user_id")
    {
        payload.insert("user_id".to_owned(), Json::from(user));
    }
    Ok(Draft {
        scope,
        event_type,
        payload,
        ts_unix_ms,
        place: place(seq, prev_hash.as_deref())?,
    })
}

fn place(seq: Option<u64>, prev_hash: Option<&str>) -> Result<Place, Problem> {
    let prev_hash = prev_hash.filter(|hash| !hash.is_empty());
    let prev_hash = prev_hash.map(str::parse::<Hash>).transpose().map_err(|_| {
        let text = "a hash has 64 hexadecimal digits in lower case";
        Problem::new(Kind::Member, text).at("/prev_hash")
    })?;
    match (seq, prev_hash) {
        (None, None) => Ok(Place::Next),
        (Some(0), None) => Ok(Place::After(Head::GENESIS)),
        (Some(0), Some(_)) => {
            let text = "the first event has none before it";
            Err(Problem::new(Kind::Member, text).at("/prev_hash"))
        }
        (Some(seq), None) => Ok(Place::Number(seq)),
        (Some(seq), Some(hash)) => Ok(Place::After(Head::after(seq - 1, hash))),
        (None, Some(_)) => {
            let text = "`prev_hash` needs the `seq` of the event";
            Err(Problem::new(Kind::Member, text).at("/seq"))
        }
    }
}

/// Records an event that needs no decision.
async fn record(draft: Draft, caller: Caller, api: &Arc<Api>) -> Result<Reply, Problem> {
    let payload = Payload::admit(draft.event_type, draft.payload)?;
    let (scope, place, ts) = (draft.scope, draft.place, draft.ts_unix_ms);
    let ends = draft.event_type == EventType::Termination;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let (worker, session, caller) = (Arc::clone(api), scope.clone(), caller.clone());
        let event = (draft.event_type, payload.clone());
        let ingest = move || {
            worker.claim(&caller, &session)?;
            // Nothing follows the end, so what the session asks people for is taken back before it;
            // whoever has named the place of the end gets that place.
            if ends && matches!(place, Place::Next) {
                worker.engine.withdraw(&session)?;
            }
            let after = head(place, &session, &worker.engine)?;
            worker
                .engine
                .ingest(&session, event, ts, after)
                .map_err(Problem::from)
        };
        let durable = match api.workers.run(ingest).await? {
            Ok(ingest) => ingest.durable().await.map_err(Problem::from),
            Err(problem) => Err(problem),
        };
        match durable {
            // Another process was faster; whoever does not care where the event goes tries again.
            Err(problem)
                if problem.kind() == Kind::Conflict
                    && matches!(place, Place::Next)
                    && attempts < MAX_ATTEMPTS => {}
            Err(problem) => return Err(problem),
            Ok(recorded) => {
                if ends {
                    let (worker, scope) = (Arc::clone(api), scope.clone());
                    let withdraw = move || worker.engine.withdraw(&scope);
                    // It ends with the next look at what is over, if not now.
                    let _ = api.workers.run(withdraw).await?;
                }
                let head = Head::after(recorded.seq(), recorded.hash());
                return Ok(created(recorded.seq(), recorded.hash(), head, Vec::new()));
            }
        }
    }
}

/// Decides a proposed call, and records the proposal with its decision. Blocks.
///
/// The caller runs what is allowed by itself and records that; a permit is for who asks at
/// `/v1/actions`.
fn propose(draft: Draft, caller: &Caller, api: &Api) -> Result<Reply, Problem> {
    let Payload::ToolCallProposed(mut proposed) = Payload::admit(draft.event_type, draft.payload)?
    else {
        let text = "a proposed call is an object with `tool_name` and `args`";
        return Err(Problem::new(Kind::Member, text).at("/payload"));
    };
    let tool_name = proposed.tool_name.take().unwrap_or_default();
    api.claim(caller, &draft.scope)?;
    api.take_tool(&draft.scope.tenant, &tool_name)?;
    let call_id = match proposed.call_id.take() {
        Some(id) => id,
        None => format!("call_{}", token::random::<12>().unwrap_or_default()),
    };
    let args = proposed.args.take().unwrap_or(Json::Null);
    let trace = proposed.traceparent.take();
    let trace = trace.and_then(|text| text.parse().ok());
    let origin = origin(caller, trace, &api.engine)?;
    let encode = |args: &Json| action_bytes(&tool_name, args);
    let bytes = encode(&args);
    let after = head(draft.place, &draft.scope, &api.engine)?;
    let proposal = Proposal {
        scope: &draft.scope,
        call_id: call_id.clone(),
        tool_name: tool_name.clone(),
        server: proposed.server.take(),
        definition: None,
        origin: &origin,
        preconditions: Vec::new(),
        args,
        sanitizer_key: proposed.sanitizer_key.take(),
        bytes: &bytes,
        encode: &encode,
    };
    let admission = match after {
        Some(after) => api.engine.admit_at(proposal, after),
        None => api.engine.admit(proposal),
    };
    let (verdict, last, approval) = match admission {
        Admission::Permit(permit) => {
            let verdict = verdict("allow", "OK", Some(permit.constraints()));
            (verdict, permit.decision(), None)
        }
        Admission::Hold(hold) => {
            let reason = hold.verdict.reason().unwrap_or("APPROVAL_REQUIRED");
            let approval = hold
                .approval
                .as_ref()
                .ok()
                .map(|asked| asked.id().to_string());
            (
                verdict("require_approval", reason, None),
                hold.decision,
                approval,
            )
        }
        Admission::Refusal(refusal) => match refusal.event() {
            Some(last) => (verdict("deny", refusal.reason(), None), last, None),
            None => return Err(Problem::from(&refusal)),
        },
    };
    let (seq, hash) = proposal_event(&draft.scope, &call_id, &last, &api.engine)?;
    let mut more = vec![("decision", verdict)];
    if let Some(approval) = approval {
        more.push(("approval_id", Json::from(approval)));
    }
    Ok(created(
        seq,
        hash,
        Head::after(last.seq(), last.hash()),
        more,
    ))
}

/// The bytes that an action over the API stands for: what a permit names the digest of.
pub(crate) fn action_bytes(tool_name: &str, args: &Json) -> Vec<u8> {
    let action = Json::object([("args", args.clone()), ("tool_name", Json::from(tool_name))]);
    action.to_sorted_ascii()
}

/// The operator answers for the agents that hold tokens.
pub(crate) fn origin(
    caller: &Caller,
    trace: Option<TraceParent>,
    engine: &Engine,
) -> Result<Origin, Problem> {
    let folder = engine.store().folder().path();
    let origin = Origin::new("operator", &caller.name, folder)
        .map_err(|error| Problem::new(Kind::Id, error.to_string()))?;
    Ok(Origin { trace, ..origin })
}

pub(crate) fn verdict(outcome: &str, reason: &str, constraints: Option<Constraints>) -> Json {
    let constraints = constraints.map_or(Json::Object(Object::new()), |constraints| {
        Json::object([
            ("max_output_bytes", Json::from(constraints.max_output_bytes)),
            ("timeout_ms", Json::from(constraints.timeout_ms)),
        ])
    });
    Json::object([
        ("outcome", Json::from(outcome)),
        ("reason", Json::from(reason)),
        ("constraints", constraints),
    ])
}

/// The proposal stands a few events before the last one of its decision.
fn proposal_event(
    scope: &Scope,
    call_id: &str,
    last: &Recorded,
    engine: &Engine,
) -> Result<(u64, Hash), Problem> {
    let reader = engine.store().reader();
    for seq in (last.seq().saturating_sub(FEW)..=last.seq()).rev() {
        let Some(event) = reader.event(scope, seq)? else {
            break;
        };
        let line = Line::read(&event.line).map_err(countersign_store::Error::from)?;
        let is_it = line.event_type == EventType::ToolCallProposed
            && line.refs.call_id.as_deref() == Some(call_id);
        if is_it {
            return Ok((line.seq, line.hash));
        }
    }
    Ok((last.seq(), last.hash()))
}

fn head(place: Place, scope: &Scope, engine: &Engine) -> Result<Option<Head>, Problem> {
    match place {
        Place::Next => Ok(None),
        Place::After(head) => Ok(Some(head)),
        Place::Number(seq) => {
            let session = engine.store().reader().session(scope)?;
            match session {
                Some(session) if session.events == seq => {
                    Ok(Some(Head::after(seq - 1, session.head)))
                }
                session => {
                    let next = session.map_or(0, |session| session.events);
                    let text = format!("the next event of the session is number {next}, not {seq}");
                    Err(Problem::new(Kind::Conflict, text).at("/seq"))
                }
            }
        }
    }
}

fn created(seq: u64, hash: Hash, head: Head, more: Vec<(&'static str, Json)>) -> Reply {
    let mut members = vec![
        ("hash", Json::from(hash.to_string())),
        ("seq", Json::from(seq)),
        (
            "head",
            Json::object([
                ("seq", Json::from(head.count())),
                (
                    "prev_hash",
                    Json::from(head.hash().map(|hash| hash.to_string())),
                ),
            ]),
        ),
    ];
    members.extend(more);
    Reply::json(StatusCode::CREATED, &Json::object(members))
}

fn event_type(text: &str) -> Result<EventType, Problem> {
    text.parse().map_err(|_| {
        let text = format!("`{}` is no event type", text.escape_debug());
        Problem::new(Kind::EventType, text)
    })
}

const ENGINE_ONLY: [EventType; 5] = [
    EventType::PolicyDecision,
    EventType::ToolCallAllowed,
    EventType::ToolCallDenied,
    EventType::ApprovalRequested,
    EventType::ApprovalDecided,
];
/// As many events as one decision has, and one more.
const FEW: u64 = 4;
const MAX_ATTEMPTS: usize = 100;

/// What was stored was admitted before; only the envelope around it is new.
const STORED: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 130,
    ..Limits::event()
};
