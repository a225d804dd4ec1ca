//! Points of an agent's life that are no tool calls: asked here, decided by the engine.

use std::sync::Arc;

use axum::http::StatusCode;
use countersign_canon::{Json, Object};
use countersign_engine::{ApprovalId, Intervened, Intervention, Passed};
use countersign_event::{Scope, TraceParent};
use countersign_policy::Point;

use crate::api::Api;
use crate::call::Call;
use crate::caller::Caller;
use crate::events::{origin, verdict};
use crate::problem::{Kind, Problem};
use crate::reply::Reply;

/// What somebody asks about.
struct Wish {
    scope: Scope,
    point: Point,
    snapshot: Json,
    call_id: Option<String>,
    approval: Option<ApprovalId>,
}

pub(crate) async fn ask(call: Call) -> Result<Reply, Problem> {
    let wish = wish(call.object()?, &call.caller)?;
    let trace = call.trace();
    let (api, caller) = (Arc::clone(&call.api), call.caller);
    let worker = Arc::clone(&api);
    api.workers
        .run(move || worker.intervene(wish, &caller, trace))
        .await?
}

impl Api {
    fn intervene(
        &self,
        wish: Wish,
        caller: &Caller,
        trace: Option<TraceParent>,
    ) -> Result<Reply, Problem> {
        self.claim(caller, &wish.scope)?;
        if let (Point::PostToolCall, Some(approval)) = (wish.point, wish.approval) {
            return self.release(&wish.scope, approval);
        }
        let origin = origin(caller, trace, &self.engine)?;
        let intervention = Intervention {
            scope: &wish.scope,
            point: wish.point,
            origin: &origin,
            subject: wish.snapshot,
            call_id: wish.call_id,
        };
        let intervened = match wish.approval {
            None => self.engine.intervene(&intervention),
            Some(approval) => self.engine.resume(approval, &intervention),
        };
        let (state, decision, more) = match intervened {
            Intervened::Passed(passed) => {
                let Passed { verdict: said, .. } = &*passed;
                let decision = verdict("allow", said.reason().unwrap_or("OK"), None);
                ("passed", decision, told(*passed))
            }
            Intervened::Held(hold) => {
                let reason = hold.verdict.reason().unwrap_or("APPROVAL_REQUIRED");
                let decision = verdict("require_approval", reason, None);
                let mut more = vec![("verdict", Json::from("escalate"))];
                if let Ok(envelope) = &hold.approval {
                    more.push(("approval_id", Json::from(envelope.id().to_string())));
                    more.push(("short_code", Json::from(envelope.plan().hash().short())));
                }
                ("held", decision, more)
            }
            Intervened::Refused(refusal) if refusal.is_recorded() => {
                let decision = verdict("deny", refusal.reason(), None);
                let more = vec![
                    ("verdict", Json::from("deny")),
                    ("text_for_model", Json::from(refusal.text_for_model())),
                ];
                ("denied", decision, more)
            }
            Intervened::Refused(refusal) => return Err(refusal.into()),
        };
        Ok(reply(&wish.scope, wish.point, (state, decision), more))
    }

    /// The result of a call that has run, which people have let pass.
    fn release(&self, scope: &Scope, approval: ApprovalId) -> Result<Reply, Problem> {
        let released = self.engine.release(approval, scope)?;
        let result = Json::object([
            ("error", Json::from(released.is_error)),
            ("value", released.content),
        ]);
        let more = vec![
            ("verdict", Json::from("allow")),
            ("snapshot", Json::object([("tool_result", result)])),
            ("hash", Json::from(released.decision.hash().to_string())),
            ("seq", Json::from(released.decision.seq())),
        ];
        let decision = verdict("allow", "approval_granted", None);
        Ok(reply(
            scope,
            Point::PostToolCall,
            ("passed", decision),
            more,
        ))
    }
}

fn reply(
    scope: &Scope,
    point: Point,
    (state, decision): (&str, Json),
    more: Vec<(&'static str, Json)>,
) -> Reply {
    let mut members = vec![
        ("tenant_id", Json::from(scope.tenant.as_str())),
        ("session_id", Json::from(scope.session.as_str())),
        ("intervention_point", Json::from(point.as_str())),
        ("state", Json::from(state)),
        ("decision", decision),
    ];
    members.extend(more);
    Reply::json(StatusCode::CREATED, &Json::object(members))
}

fn told(passed: Passed) -> Vec<(&'static str, Json)> {
    let identity = |digest: Option<countersign_canon::Digest>| {
        Json::from(digest.map(|digest| digest.to_string()))
    };
    let identities = passed.identities;
    let labels = passed.verdict.result_labels().iter();
    let labels = labels.map(|label| Json::from(label.as_str())).collect();
    let mut more = vec![
        ("verdict", Json::from(passed.verdict.decision().as_str())),
        ("message", Json::from(passed.verdict.message())),
        ("result_labels", Json::Array(labels)),
        (
            "input_identity",
            identity(identities.map(|both| both.input)),
        ),
        (
            "enforced_identity",
            identity(identities.map(|both| both.enforced)),
        ),
        ("hash", Json::from(passed.decision.hash().to_string())),
        ("seq", Json::from(passed.decision.seq())),
    ];
    more.extend(passed.changed.map(|changed| ("snapshot", changed)));
    more
}

fn wish(mut members: Object, caller: &Caller) -> Result<Wish, Problem> {
    let mut text = |name: &str| members.remove(name).and_then(Json::into_string);
    let (tenant, session) = (text("tenant_id"), text("session_id").unwrap_or_default());
    let (point, call_id) = (text("intervention_point"), text("call_id"));
    let approval = text("approval_id").map(|id| id.parse()).transpose();
    let approval = approval
        .map_err(|_| Problem::new(Kind::NoApproval, "that is no approval id").at("/approval_id"))?;
    let point: Point = point.unwrap_or_default().parse().map_err(|error| {
        Problem::new(Kind::Member, format!("{error}")).at("/intervention_point")
    })?;
    let snapshot = members.remove("snapshot").unwrap_or(Json::Null);
    // SECURITY: who it is, how much it has used and what it has read is not the agent's to say.
    let mut ours = OURS_TO_SAY.into_iter();
    if let Some(name) = ours.find(|name| snapshot.get(name).is_some()) {
        let text = format!("`{name}` comes from the log of the session");
        return Err(Problem::new(Kind::Member, text).at(format!("/snapshot/{name}")));
    }
    Ok(Wish {
        scope: caller.scope(tenant.as_deref(), &session)?,
        point,
        snapshot,
        call_id,
        approval,
    })
}

/// The members of a snapshot that the engine fills.
const OURS_TO_SAY: [&str; 3] = ["envelope", "ifc", "session"];
