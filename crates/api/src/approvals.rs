//! What is held, what people say about it, and leases.

use std::sync::Arc;

use axum::http::StatusCode;
use countersign_approval::lease::SignedLease;
use countersign_approval::{Human, LeaseId, Reason, State, Submission, UnixMs};
use countersign_canon::Json;
use countersign_display::{AgentSays, View};
use countersign_engine::{ApprovalId, NotCounted, NotEdited, NotGranted, Standing, StandingLease};

use countersign_event::TenantId;

use crate::api::{Api, now_unix_ms};
use crate::call::Call;
use crate::caller::Caller;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;

pub(crate) async fn list(call: &Call) -> Result<Reply, Problem> {
    let all = match call.parameters.query("state").unwrap_or("pending") {
        "pending" => false,
        "all" => true,
        _ => {
            return Err(Problem::new(
                Kind::Parameter,
                "`state` is `pending` or `all`",
            ));
        }
    };
    let (api, caller) = (Arc::clone(&call.api), call.caller.clone());
    let limit = call.parameters.limit()?;
    let read = move || {
        let reader = api.engine.store().reader();
        let rows = match all {
            true => reader.newest_approvals(MOST)?,
            false => reader.approvals_in(State::Pending)?,
        };
        let is_seen = |tenant: &TenantId| caller.tenant.as_ref().is_none_or(|own| own == tenant);
        let mut found = Vec::new();
        for row in rows
            .into_iter()
            .filter(|row| is_seen(&row.scope.tenant))
            .take(limit)
        {
            // One that cannot be read keeps nobody from the others.
            if let Ok(Some(standing)) = api.engine.approval(row.id) {
                found.push(summary(&standing));
            }
        }
        Ok::<_, Problem>(found)
    };
    let approvals = call.api.workers.run(read).await??;
    Ok(
        Reply::ok(&Json::object([("approvals", Json::Array(approvals))]))
            .tagged(call.if_none_match()),
    )
}

pub(crate) async fn show(call: &Call) -> Result<Reply, Problem> {
    let id = call.parameters.path("approval").to_owned();
    let (api, caller) = (Arc::clone(&call.api), call.caller.clone());
    let json = call
        .api
        .workers
        .run(move || api.card(&id, &caller))
        .await??;
    Ok(Reply::ok(&json).tagged(call.if_none_match()))
}

/// Takes a signed decision, byte for byte as it was signed.
pub(crate) async fn vote(call: &Call) -> Result<Reply, Problem> {
    let (id, body) = (
        call.parameters.path("approval").to_owned(),
        call.body.clone(),
    );
    let (api, caller) = (Arc::clone(&call.api), call.caller.clone());
    let counted = move || {
        let standing = api.visible(&id, &caller)?;
        let submission = Submission::parse(&body).map_err(refused)?;
        if submission.nonce() != standing.row.nonce {
            let text = "the decision is about another request";
            return Err(Problem::new(Kind::Approval, text));
        }
        api.engine.vote(&body).map_err(|error| match error {
            NotCounted::Refused(refusal) => refused(refusal),
            NotCounted::Failed(text) => Problem::new(Kind::Database, text),
        })
    };
    let voted = call.api.workers.run(counted).await??;
    Ok(Reply::json(
        StatusCode::CREATED,
        &Json::object([
            ("approval_id", Json::from(voted.id.to_string())),
            ("state", Json::from(voted.state.as_str())),
            ("approvals", Json::from(voted.counted.0 as u64)),
            ("required", Json::from(voted.counted.1 as u64)),
        ]),
    ))
}

/// Makes a new request in the place of one that nobody has used; people decide it from the start.
pub(crate) async fn edit(call: &Call) -> Result<Reply, Problem> {
    let id = call.parameters.path("approval").to_owned();
    let mut members = call.object()?;
    let args = members.remove("args").unwrap_or(Json::Null);
    let reason = members.remove("reason").and_then(Json::into_string);
    let reason = reason.map(Reason::new).transpose();
    let reason =
        reason.map_err(|error| Problem::new(Kind::Member, error.to_string()).at("/reason"))?;
    let (api, caller) = (Arc::clone(&call.api), call.caller.clone());
    let edited = move || {
        let new = api.edit(&id, args, reason.as_ref(), &caller)?;
        api.card(&new.to_string(), &caller)
    };
    let json = call.api.workers.run(edited).await??;
    Ok(Reply::json(StatusCode::CREATED, &json))
}

pub(crate) async fn leases(call: &Call) -> Result<Reply, Problem> {
    let tenant = call.caller.tenant(call.parameters.query("tenant_id"))?;
    let engine = Arc::clone(&call.api.engine);
    let read = move || engine.leases(tenant.as_str()).map_err(Problem::from);
    let leases = call.api.workers.run(read).await??;
    let now = UnixMs::new(now_unix_ms()?);
    let leases = leases.iter().map(|one| lease(one, now)).collect();
    Ok(Reply::ok(&Json::object([("leases", Json::Array(leases))])).tagged(call.if_none_match()))
}

/// Takes a signed lease, byte for byte as it was signed.
pub(crate) async fn grant(call: &Call) -> Result<Reply, Problem> {
    let (api, caller, body) = (
        Arc::clone(&call.api),
        call.caller.clone(),
        call.body.clone(),
    );
    let granted = move || {
        let signed = SignedLease::read(&body)
            .map_err(|error| Problem::new(Kind::Approval, error.to_string()))?;
        let tenant = &signed.claims().terms().holder.chain.tenant;
        caller.tenant(Some(tenant.as_str()))?;
        api.engine.grant_lease(&body).map_err(|error| match error {
            NotGranted::Failed(refusal) => refusal.into(),
            other => Problem::new(Kind::Approval, other.to_string()),
        })
    };
    let id = call.api.workers.run(granted).await??;
    let json = Json::object([("lease_id", Json::from(id.to_string()))]);
    Ok(Reply::json(StatusCode::CREATED, &json))
}

pub(crate) async fn revoke(call: &Call) -> Result<Reply, Problem> {
    let none = || Problem::new(Kind::NoApproval, "no such lease");
    let id: LeaseId = call.parameters.path("lease").parse().map_err(|_| none())?;
    let (api, caller) = (Arc::clone(&call.api), call.caller.clone());
    let revoked = move || {
        let row = api.engine.store().reader().lease(id)?;
        let is_seen = |tenant: &str| caller.tenant(Some(tenant)).is_ok();
        row.filter(|row| is_seen(&row.grant.tenant))
            .ok_or_else(none)?;
        let who = Human::new(caller.name.as_str())
            .map_err(|error| Problem::new(Kind::Id, error.to_string()))?;
        api.engine.revoke_lease(id, &who).map_err(Problem::from)
    };
    let revoked = call.api.workers.run(revoked).await??;
    Ok(Reply::ok(&Json::object([
        ("lease_id", Json::from(id.to_string())),
        ("revoked", Json::from(revoked)),
    ])))
}

impl Api {
    /// Asks for the same call with other arguments. Blocks.
    pub(crate) fn edit(
        &self,
        id: &str,
        args: Json,
        reason: Option<&Reason>,
        caller: &Caller,
    ) -> Result<ApprovalId, Problem> {
        let standing = self.visible(id, caller)?;
        let who = Human::new(caller.name.as_str())
            .map_err(|error| Problem::new(Kind::Id, error.to_string()))?;
        let edited = self.engine.edit(standing.row.id, args, &who, reason);
        let new = edited.map_err(|error| match error {
            NotEdited::Refused(refusal) => refused(refusal),
            NotEdited::Failed(refusal) => refusal.into(),
            NotEdited::Arguments(error) => {
                Problem::new(Kind::Member, error.to_string()).at("/args")
            }
            other => Problem::new(Kind::Approval, other.to_string()),
        })?;
        Ok(new.id())
    }

    /// A request, if the caller may see it. Blocks.
    pub(crate) fn visible(&self, id: &str, caller: &Caller) -> Result<Standing, Problem> {
        let none = || Problem::new(Kind::NoApproval, "no such approval");
        let id: ApprovalId = id.parse().map_err(|_| none())?;
        let standing = self.engine.approval(id)?.ok_or_else(none)?;
        let tenant = &standing.row.scope.tenant;
        match caller.tenant.as_ref().is_none_or(|own| own == tenant) {
            true => Ok(standing),
            false => Err(none()),
        }
    }

    /// Everything that there is to see of a request, as every channel shows it.
    fn card(&self, id: &str, caller: &Caller) -> Result<Json, Problem> {
        self.card_of(&self.visible(id, caller)?)
    }

    /// The same, of a request that was read already.
    pub(crate) fn card_of(&self, standing: &Standing) -> Result<Json, Problem> {
        let tally = self.engine.tally(standing)?;
        let why = self.engine.why_held(standing)?;
        let votes = tally.votes.iter().map(|vote| {
            let reason = vote.decisions.iter().find_map(|one| one.reason());
            let approved = vote.decisions.iter().all(|one| one.is_approved());
            Json::object([
                ("approver", Json::from(vote.approver.to_string())),
                ("approved", Json::from(approved)),
                ("reason", Json::from(reason.map(|reason| reason.as_str()))),
                ("at_ms", Json::from(vote.at.get())),
            ])
        });
        let said = standing.envelope.agent_says();
        let said = said.map(|said| AgentSays::of(said, View::Full).text().to_owned());
        // As text: what reads it must not round its numbers.
        let envelope = String::from_utf8_lossy(&standing.envelope.to_text()).into_owned();
        let mut json = summary(standing);
        if let Some(members) = json.as_object_mut() {
            for (name, value) in [
                ("why", Json::from(why)),
                ("display", Json::from(standing.rendering.text())),
                (
                    "display_sha256",
                    Json::from(standing.rendering.display_sha256().to_string()),
                ),
                ("agent_says_unverified", Json::from(said)),
                ("votes", Json::Array(votes.collect())),
                ("required", Json::from(tally.required as u64)),
                ("envelope", Json::from(envelope)),
            ] {
                members.insert(name.to_owned(), value);
            }
        }
        Ok(json)
    }
}

pub(crate) fn summary(standing: &Standing) -> Json {
    let (envelope, row) = (&standing.envelope, &standing.row);
    let time = |time: Option<UnixMs>| Json::from(time.map(UnixMs::get));
    let plan = envelope.plan();
    let tools = plan
        .calls()
        .iter()
        .map(|call| Json::from(call.tool.name.as_str()));
    Json::object([
        ("approval_id", Json::from(row.id.to_string())),
        ("state", Json::from(row.state.as_str())),
        ("plan_hash", Json::from(plan.hash().to_string())),
        ("short_code", Json::from(plan.hash().short())),
        ("irreversible", Json::from(plan.is_irreversible())),
        ("tools", Json::Array(tools.collect())),
        (
            "requester",
            Json::from(envelope.lineage().requester().to_string()),
        ),
        ("tenant_id", Json::from(row.scope.tenant.as_str())),
        ("session_id", Json::from(row.scope.session.as_str())),
        ("issued_at_ms", Json::from(row.issued.get())),
        ("decide_by_ms", time(row.decide_by)),
        ("decided_at_ms", time(row.decided)),
        ("execute_by_ms", time(row.ends)),
    ])
}

fn lease(standing: &StandingLease, now: UnixMs) -> Json {
    let terms = standing.lease.terms();
    // As text: what reads it must not round its numbers.
    let text = String::from_utf8_lossy(&standing.lease.to_text()).into_owned();
    Json::object([
        ("lease_id", Json::from(standing.lease.id().to_string())),
        ("status", Json::from(standing.condition(now).as_str())),
        ("tool_name", Json::from(terms.tool.name.as_str())),
        (
            "session_id",
            Json::from(terms.holder.chain.session.as_str()),
        ),
        ("granted_by", Json::from(terms.granted_by.to_string())),
        ("expires_at_ms", Json::from(terms.valid.expires_at.get())),
        ("max_uses", Json::from(terms.max_uses.get())),
        ("uses", Json::from(standing.usage.uses)),
        ("spent", Json::from(standing.usage.spent)),
        ("lease", Json::from(text)),
    ])
}

fn refused(refusal: countersign_approval::Refusal) -> Problem {
    Problem::new(Kind::Approval, format!("{}: {refusal}", refusal.code()))
}

const MOST: usize = 1000;
