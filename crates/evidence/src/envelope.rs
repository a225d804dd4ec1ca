//! The decision envelope: one nested shape for what was decided about an action, materialised from the
//! flat members of a record. Nothing is guessed: what a record does not hold, and no side document
//! brings, is unresolved, with the reason.

use std::collections::BTreeMap;

use countersign_approval::SideEffect;
use countersign_canon::Json;

use crate::aep::{Decision, Gate, Resolution};
use crate::state::{Coverage, StateDigest};
use crate::word::{Word, words};

/// What records refer to and do not hold.
#[derive(Clone, Debug, Default)]
pub struct SideDocuments {
    /// Until when a lease is good, by its id.
    pub leases: BTreeMap<String, u64>,
    /// Which policy in which version has a digest.
    pub policies: BTreeMap<String, (String, String)>,
}

words! {
    /// What became of an action.
    ObservedResult {
        /// It ran as it should.
        Success = "success",
        /// It ran, and not as it should.
        Failure = "failure",
        /// It was not allowed.
        Denied = "denied",
        /// It was not tried.
        Skipped = "skipped",
    }
}

words! {
    /// Why a member of an envelope has no value.
    Unresolved {
        /// The action has no decision with a subject.
        NoSubject = "no-subject",
        /// The action has no digest of state whose coverage can be read.
        NoCoverage = "no-coverage",
        /// The record names no policies.
        NoPolicy = "no-policy-digest",
        /// Nobody said which policies have this digest.
        PolicyNotGiven = "policy-not-given",
        /// The action has neither an approval nor a lease.
        NoApproval = "no-approval-or-lease",
        /// The action has no digest of its arguments.
        NoArguments = "no-arguments-digest",
        /// The action has no lease.
        NoLease = "no-lease",
        /// Nobody brought the lease.
        LeaseNotGiven = "lease-not-given",
        /// Nothing says how it went.
        NoOutcome = "no-outcome",
    }
}

/// The envelopes of a record, one for each of its actions, in their order.
pub fn envelopes(record: &Json, documents: &SideDocuments) -> Vec<Json> {
    let actions = record.get("actions").and_then(Json::as_array);
    let actions = actions.unwrap_or_default().iter();
    actions
        .map(|action| envelope(action, record, documents))
        .collect()
}

/// The envelope of one action of a record.
pub fn envelope(action: &Json, record: &Json, documents: &SideDocuments) -> Json {
    let effect: Option<SideEffect> = word(action.get("side_effect_class"));
    let policy = policy(record, documents);
    let members = [
        ("target_boundary", boundary(action)),
        ("principal_id", principal(action, record)),
        ("policy_id", policy.clone().map(|(id, _)| Json::from(id))),
        (
            "policy_version",
            policy.map(|(_, version)| Json::from(version)),
        ),
        ("approval_or_lease_id", approval(action)),
        ("payload_digest", payload(action)),
        ("expiry_ms", expiry(action, documents)),
        (
            "observed_result",
            observed(action)
                .map(|result| Json::from(result.as_str()))
                .ok_or(Unresolved::NoOutcome),
        ),
    ];
    let unresolved = members.iter().filter_map(|(name, value)| {
        let reason = value.as_ref().err()?;
        Some((*name, Json::from(reason.as_str())))
    });
    let unresolved = Json::object(unresolved);
    let members = members
        .into_iter()
        .map(|(name, value)| (name, value.unwrap_or(Json::Null)));
    let own = [
        ("action_id", member(action, "action_id")),
        (
            "action_class",
            Json::from(effect.unwrap_or(SideEffect::Unknown).as_str()),
        ),
        ("run_id", member(record, "run_id")),
        ("unresolved", unresolved),
    ];
    Json::object(own.into_iter().chain(members))
}

/// What became of an action, from what its record says; `None` if it says nothing.
///
/// A denial counts before everything else, then that nothing was tried, then the outcome in words, then
/// the exit code.
pub fn observed(action: &Json) -> Option<ObservedResult> {
    let decision = action.get("capability_decision");
    let decision: Option<Decision> = word(decision.and_then(|it| it.get("decision")));
    let gate = action.get("permission_gate");
    let gate: Option<Gate> = word(gate.and_then(|it| it.get("decision")));
    let drift = action.get("argument_drift");
    let drift: Option<Resolution> = word(drift.and_then(|it| it.get("resolution")));
    if decision == Some(Decision::Deny)
        || gate == Some(Gate::Denied)
        || drift == Some(Resolution::Denied)
    {
        return Some(ObservedResult::Denied);
    }
    let told = told(action);
    let waits = matches!(decision, Some(Decision::AskUser | Decision::DryRun));
    let code = action.get("exit_code").and_then(Json::as_i64);
    let code = code.map(|code| match code {
        0 => ObservedResult::Success,
        _ => ObservedResult::Failure,
    });
    told.or(waits.then_some(ObservedResult::Skipped)).or(code)
}

/// The outcome of an action in its own words, which no version has fixed.
pub(crate) fn told(action: &Json) -> Option<ObservedResult> {
    let told = action.get("outcome").and_then(Json::as_str)?;
    match told.to_ascii_lowercase().as_str() {
        "success" | "succeeded" | "ok" | "completed" | "executed" => Some(ObservedResult::Success),
        "failure" | "failed" | "error" | "timeout" | "aborted" => Some(ObservedResult::Failure),
        "denied" | "blocked" | "rejected" => Some(ObservedResult::Denied),
        "skipped" | "dry_run" | "cancelled" => Some(ObservedResult::Skipped),
        _ => None,
    }
}

/// The kind with everything that counts for comparing: identity, selector and boundary.
fn boundary(action: &Json) -> Result<Json, Unresolved> {
    let (state, _) = StateDigest::read(
        "",
        action.get("state_digest_kind"),
        action.get("state_digest_coverage"),
    );
    let mut coverage = state.coverage.ok_or(Unresolved::NoCoverage)?;
    match &mut coverage {
        Coverage::SandboxFs(files) => files.observed.file_count = None,
        Coverage::DbRowset(rows) => rows.observed.row_count = None,
        _ => {}
    }
    let mut json = coverage.to_json();
    if let Some(members) = json.as_object_mut() {
        let kind = Json::from(coverage.kind().as_str());
        members.insert("kind".to_owned(), kind);
    }
    Ok(json)
}

/// Whose decision it is about: the action's, or the only one beside the actions.
fn principal(action: &Json, record: &Json) -> Result<Json, Unresolved> {
    let beside = record.get("capability_decisions").and_then(Json::as_array);
    let beside = match beside.unwrap_or_default() {
        [only] => Some(only),
        _ => None,
    };
    let decision = action.get("capability_decision").or(beside);
    let subject = decision.and_then(|decision| text(decision, "subject"));
    let subject = subject.or_else(|| text(record, "subject_id"));
    subject.map(Json::from).ok_or(Unresolved::NoSubject)
}

fn policy(record: &Json, documents: &SideDocuments) -> Result<(String, String), Unresolved> {
    let digest = text(record, "policy_bundle_digest").ok_or(Unresolved::NoPolicy)?;
    let policy = documents.policies.get(digest).cloned();
    policy.ok_or(Unresolved::PolicyNotGiven)
}

fn approval(action: &Json) -> Result<Json, Unresolved> {
    let id = text(action, "approval_context_hash").or_else(|| text(action, "scope_lease_id"));
    id.map(Json::from).ok_or(Unresolved::NoApproval)
}

/// What was observed counts before what was sent.
fn payload(action: &Json) -> Result<Json, Unresolved> {
    let drift = action.get("argument_drift");
    let observed = drift.and_then(|drift| text(drift, "observed_args_digest"));
    let digest = observed
        .or_else(|| text(action, "tool_input_digest"))
        .or_else(|| text(action, "arguments_digest"));
    digest.map(Json::from).ok_or(Unresolved::NoArguments)
}

fn expiry(action: &Json, documents: &SideDocuments) -> Result<Json, Unresolved> {
    let lease = text(action, "scope_lease_id").ok_or(Unresolved::NoLease)?;
    let expiry = documents.leases.get(lease).copied();
    expiry.map(Json::from).ok_or(Unresolved::LeaseNotGiven)
}

fn text<'a>(json: &'a Json, name: &str) -> Option<&'a str> {
    let text = json.get(name).and_then(Json::as_str);
    text.filter(|text| !text.is_empty())
}

fn member(json: &Json, name: &str) -> Json {
    json.get(name).cloned().unwrap_or(Json::Null)
}

fn word<W: Word>(value: Option<&Json>) -> Option<W> {
    value.and_then(Json::as_str).and_then(W::named)
}
