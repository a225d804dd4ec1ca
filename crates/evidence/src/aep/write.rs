//! Writing records. The types leave no room for a record that breaks a rule: what was denied has no
//! result, a digest of state has its coverage, a re-approval has its parent, what is derived is worked
//! out here.

use std::collections::BTreeMap;

use base64ct::{Base64, Encoding};
use countersign_approval::{ApprovalMode, SideEffect, SigningKey};
use countersign_canon::{Digest, Hash, Json, Object};
use ed25519_dalek::Signer as _;

use super::canonical::{self, Order, UNSIGNED};
use super::dsse;
use super::version::Version;
use super::words::{Decision, DenyReason, RecordingMode, Resolution};
use crate::state::{Coverage, StateDigest};
use crate::word::words;

/// How the records of a run are signed. The version of the format follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A signature over the record's own text: version 0.3.
    Inline,
    /// A signature in an envelope: version 0.4.
    Dsse,
}

/// One action, and how it came to be allowed or denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Its name in the run.
    pub id: String,
    /// The tool.
    pub tool_name: String,
    /// When it was decided, or ran.
    pub at_unix_ms: u64,
    /// What it can change.
    pub effect: SideEffect,
    /// Who wanted what.
    pub claim: Claim,
    /// How it came to be allowed or denied, and what became of it.
    pub authority: Authority,
    /// The digest of its arguments.
    pub arguments: Option<Digest>,
    /// The state of the session that the decision was made from.
    pub precondition: Option<Hash>,
    /// The definition of the tool.
    pub tool_descriptor: Option<Digest>,
    /// The action that led to it. A re-approval has its own.
    pub parent: Option<String>,
    /// Where the evidence is.
    pub evidence: Vec<String>,
}

/// Who wanted what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What kind of right.
    pub capability: String,
    /// Who.
    pub subject: String,
    /// On what.
    pub resource: String,
    /// Why it was decided so.
    pub reason_code: Option<String>,
}

/// How an action came to be allowed or denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authority {
    /// Policies allowed it.
    Policy(Option<Ran>),
    /// A person approved exactly this.
    Approved {
        /// What was approved.
        context: Hash,
        /// The digest of arguments that were compared with those that were approved, and are them.
        matched: Option<Digest>,
        /// What became of it.
        ran: Option<Ran>,
    },
    /// A person approved what had been denied because it had changed.
    ReApproved {
        /// What was approved.
        context: Hash,
        /// The action that was denied.
        denied: String,
        /// What became of it.
        ran: Option<Ran>,
    },
    /// A lease covered it.
    Leased {
        /// Which one.
        lease: String,
        /// What became of it.
        ran: Option<Ran>,
    },
    /// A person is asked.
    Asked {
        /// What they are asked about.
        context: Option<Hash>,
    },
    /// Policies denied it.
    Denied(DenyReason),
    /// A person denied it.
    Refused {
        /// What they were asked about.
        context: Option<Hash>,
    },
    /// It differs from what was approved.
    Drifted(Drift),
}

/// Arguments that differ from those that were approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    approved: Digest,
    observed: Digest,
    context: Option<Hash>,
}

impl Drift {
    /// A drift, if there is one.
    pub fn between(approved: Digest, observed: Digest, context: Option<Hash>) -> Option<Self> {
        (approved != observed).then_some(Self {
            approved,
            observed,
            context,
        })
    }
}

/// That an action ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// How it went, if that is known.
    pub outcome: Option<Outcome>,
    /// The digest of its result.
    pub result: Option<Digest>,
    /// The labels of its result.
    pub labels: Vec<String>,
    /// What changed.
    pub state: Option<StateChange>,
}

/// A state before and after, over one coverage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// What the digests cover.
    pub coverage: Coverage,
    /// The digest before, in the text form of its kind.
    pub before: Option<String>,
    /// The digest after.
    pub after: Option<String>,
}

impl StateChange {
    /// The member of an event that tells what a call changed, with the names that records use. What
    /// cannot be read as a state with its coverage is no evidence of one.
    pub(super) fn read(state: Option<&Json>) -> Option<Self> {
        let state = state?;
        let kind = state.get("state_digest_kind");
        let (read, problems) = StateDigest::read("", kind, state.get("state_digest_coverage"));
        let text = |name| state.get(name).and_then(Json::as_str).map(str::to_owned);
        let change = Self {
            coverage: read.coverage.filter(|_| problems.is_empty())?,
            before: text("pre_state_digest"),
            after: text("post_state_digest"),
        };
        (change.before.is_some() || change.after.is_some()).then_some(change)
    }
}

words! {
    /// How an action went.
    Outcome {
        /// As it should.
        Success = "success",
        /// Otherwise.
        Failure = "failure",
    }
}

/// What a record says beside its action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// When the last of what it tells happened.
    pub created_at_ms: u64,
    /// The policies in force.
    pub policy_bundle_digest: Option<String>,
    /// Who acts.
    pub subject_id: Option<String>,
    /// For whom.
    pub user_id: Option<String>,
    /// Who started whom, from the first on.
    pub delegation_chain: Vec<String>,
    /// The session.
    pub session_id: Option<String>,
}

/// Why a record was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Two actions with one name.
    #[error("the run has an action `{0}` already")]
    Twice(String),
    /// A parent that is not in the run.
    #[error("action `{0}` has a parent that is not in the run")]
    NoParent(String),
    /// A re-approval of something else than a denied drift.
    #[error("action `{0}` takes up an action that was not denied for drift")]
    NotDenied(String),
    /// A re-approval with the approval that was drifted from.
    #[error("action `{0}` has the approval that was drifted from")]
    SameApproval(String),
    /// A number that JSON does not keep.
    #[error(transparent)]
    Json(#[from] countersign_canon::Error),
}

/// The records of one run, each linked to the one before it.
#[derive(Clone, Debug)]
pub struct Run {
    id: String,
    form: Form,
    previous: Option<Hash>,
    /// What was denied for drift has the approval that it drifted from.
    actions: BTreeMap<String, Option<Option<Hash>>>,
}

impl Run {
    /// A run without records.
    pub fn new(id: impl Into<String>, form: Form) -> Self {
        Self {
            id: id.into(),
            form,
            previous: None,
            actions: BTreeMap::new(),
        }
    }

    /// The next record of the run.
    pub fn record(
        &mut self,
        action: &Action,
        surroundings: &Surroundings,
    ) -> Result<Unsigned, WriteError> {
        self.check(action)?;
        let record = self.members(action, surroundings);
        self.previous = Some(canonical::record_hash(&record)?);
        let drifted = match &action.authority {
            Authority::Drifted(drift) => Some(drift.context),
            _ => None,
        };
        self.actions.insert(action.id.clone(), drifted);
        Ok(Unsigned {
            record,
            form: self.form,
        })
    }

    fn check(&self, action: &Action) -> Result<(), WriteError> {
        let id = || action.id.clone();
        if self.actions.contains_key(&action.id) {
            return Err(WriteError::Twice(id()));
        }
        if let Some(parent) = &action.parent
            && !self.actions.contains_key(parent)
        {
            return Err(WriteError::NoParent(id()));
        }
        if let Authority::ReApproved {
            context, denied, ..
        } = &action.authority
        {
            match self.actions.get(denied) {
                None => return Err(WriteError::NoParent(id())),
                Some(None) => return Err(WriteError::NotDenied(id())),
                Some(Some(drifted)) if *drifted == Some(*context) => {
                    return Err(WriteError::SameApproval(id()));
                }
                Some(Some(_)) => {}
            }
        }
        Ok(())
    }

    fn members(&self, action: &Action, surroundings: &Surroundings) -> Object {
        let version = match self.form {
            Form::Inline => Version::V03,
            Form::Dsse => Version::V04,
        };
        let decision = decision(action);
        let context = Json::object(present([
            ("agent_id", Json::from(surroundings.subject_id.clone())),
            ("delegation_chain", texts(&surroundings.delegation_chain)),
            ("session_id", Json::from(surroundings.session_id.clone())),
        ]));
        let members = present([
            ("schema_version", Json::from(version.as_str())),
            ("run_id", Json::from(self.id.as_str())),
            ("created_at_ms", Json::from(surroundings.created_at_ms)),
            ("user_id", Json::from(surroundings.user_id.clone())),
            ("subject_id", Json::from(surroundings.subject_id.clone())),
            (
                "policy_bundle_digest",
                Json::from(surroundings.policy_bundle_digest.clone()),
            ),
            ("input_refs", Json::Array(Vec::new())),
            ("output_refs", Json::Array(Vec::new())),
            ("capability_decisions", Json::Array(vec![decision.clone()])),
            ("actions", Json::Array(vec![action_json(action, decision)])),
            ("verifier_results", Json::Array(Vec::new())),
            ("run_context", context),
            (
                "run_side_effect_class_max",
                Json::from(action.effect.as_str()),
            ),
        ]);
        let mut record: Object = members
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let link = self.previous.map(|hash| hash.to_string());
        record.insert("prev_record_hash".to_owned(), Json::from(link));
        record
    }
}

/// A record that keeps every rule, and that nobody has signed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Unsigned {
    record: Object,
    form: Form,
}

impl Unsigned {
    /// The record without a signature.
    pub fn into_json(self) -> Json {
        Json::Object(self.record)
    }

    /// The record, signed under the name that readers know the key by.
    pub fn sign(mut self, key: &SigningKey, key_id: &str) -> Result<Json, WriteError> {
        let message = match self.form {
            Form::Inline => canonical::text(&self.record, UNSIGNED, Order::Jcs)?,
            Form::Dsse => dsse::statement(&self.record)?,
        };
        let signature = match self.form {
            Form::Inline => key.sign(&message),
            Form::Dsse => key.sign(&dsse::pae(&message)),
        };
        let sig = Base64::encode_string(&signature.to_bytes());
        // An envelope needs no copy of its signature beside it: nobody would miss it.
        let (name, block) = match self.form {
            Form::Dsse => ("dsse_envelope", dsse::envelope(&message, key_id, &sig)),
            Form::Inline => (
                "signature",
                Json::object([
                    ("alg", Json::from("ed25519")),
                    ("key_id", Json::from(key_id)),
                    ("sig", Json::from(sig)),
                ]),
            ),
        };
        self.record.insert(name.to_owned(), block);
        Ok(Json::Object(self.record))
    }
}

fn action_json(action: &Action, decision: Json) -> Json {
    let authority = &action.authority;
    let ran = authority.ran();
    let state = ran.and_then(|ran| ran.state.as_ref());
    let digest = |digest: Option<Digest>| Json::from(digest.map(|digest| digest.to_string()));
    let parent = match authority {
        Authority::ReApproved { denied, .. } => Some(denied),
        _ => action.parent.as_ref(),
    };
    let lease = match authority {
        Authority::Leased { lease, .. } => Some(lease.clone()),
        _ => None,
    };
    Json::object(present([
        ("action_id", Json::from(action.id.as_str())),
        ("tool_name", Json::from(action.tool_name.as_str())),
        (
            "state_changing",
            Json::Bool(action.effect != SideEffect::Read),
        ),
        ("side_effect_class", Json::from(action.effect.as_str())),
        ("timestamp_ms", Json::from(action.at_unix_ms)),
        (
            "recording_mode",
            Json::from(RecordingMode::Validation.as_str()),
        ),
        ("capability_decision", decision),
        ("arguments_digest", digest(action.arguments)),
        (
            "precondition_digest",
            digest(action.precondition.map(Hash::to_digest)),
        ),
        ("tool_descriptor_digest", digest(action.tool_descriptor)),
        ("parent_action_id", Json::from(parent.cloned())),
        ("scope_lease_id", Json::from(lease)),
        (
            "approval_context_hash",
            Json::from(authority.context().map(|hash| hash.to_string())),
        ),
        ("argument_drift", authority.drift()),
        (
            "outcome",
            Json::from(ran.and_then(|ran| ran.outcome).map(Outcome::as_str)),
        ),
        ("result_digest", digest(ran.and_then(|ran| ran.result))),
        (
            "output_taint_labels",
            ran.filter(|ran| !ran.labels.is_empty())
                .map_or(Json::Null, |ran| texts(&ran.labels)),
        ),
        (
            "state_digest_kind",
            Json::from(state.map(|state| state.coverage.kind().as_str())),
        ),
        (
            "state_digest_coverage",
            state.map_or(Json::Null, |state| state.coverage.to_json()),
        ),
        (
            "pre_state_digest",
            Json::from(state.and_then(|it| it.before.clone())),
        ),
        (
            "post_state_digest",
            Json::from(state.and_then(|it| it.after.clone())),
        ),
        ("evidence_refs", texts(&action.evidence)),
    ]))
}

fn decision(action: &Action) -> Json {
    let (decision, mode, reason) = action.authority.words();
    let claim = &action.claim;
    Json::object(present([
        ("capability", Json::from(claim.capability.as_str())),
        ("subject", Json::from(claim.subject.as_str())),
        ("resource", Json::from(claim.resource.as_str())),
        ("decision", Json::from(decision.as_str())),
        ("reason_code", Json::from(claim.reason_code.clone())),
        ("approval_mode", Json::from(mode.as_str())),
        (
            "deny_reason_class",
            Json::from(reason.map(DenyReason::as_str)),
        ),
    ]))
}

impl Authority {
    fn words(&self) -> (Decision, ApprovalMode, Option<DenyReason>) {
        use ApprovalMode as Mode;
        match self {
            Self::Policy(_) => (Decision::Allow, Mode::PolicyAllowWithReceipt, None),
            Self::Approved { .. } => (Decision::Allow, Mode::OneShotPayload, None),
            Self::ReApproved { .. } => (Decision::Allow, Mode::ReApprovalOnDrift, None),
            Self::Leased { .. } => (Decision::Allow, Mode::BoundedLease, None),
            Self::Asked { .. } => (Decision::AskUser, Mode::OneShotPayload, None),
            Self::Denied(reason) => (Decision::Deny, Mode::PolicyDenyWithEvidence, Some(*reason)),
            Self::Refused { .. } => {
                let reason = Some(DenyReason::Other);
                (Decision::Deny, Mode::OneShotPayload, reason)
            }
            Self::Drifted(_) => {
                let reason = Some(DenyReason::Argument);
                (Decision::Deny, Mode::PolicyDenyWithEvidence, reason)
            }
        }
    }

    fn ran(&self) -> Option<&Ran> {
        match self {
            Self::Policy(ran)
            | Self::Approved { ran, .. }
            | Self::ReApproved { ran, .. }
            | Self::Leased { ran, .. } => ran.as_ref(),
            Self::Asked { .. } | Self::Denied(_) | Self::Refused { .. } | Self::Drifted(_) => None,
        }
    }

    fn context(&self) -> Option<Hash> {
        match self {
            Self::Approved { context, .. } | Self::ReApproved { context, .. } => Some(*context),
            Self::Asked { context } | Self::Refused { context } => *context,
            Self::Drifted(drift) => drift.context,
            Self::Policy(_) | Self::Leased { .. } | Self::Denied(_) => None,
        }
    }

    /// A comparison that was made is told, whatever came of it.
    fn drift(&self) -> Json {
        let (approved, observed) = match self {
            Self::Drifted(drift) => (drift.approved, drift.observed),
            Self::Approved {
                matched: Some(digest),
                ..
            } => (*digest, *digest),
            _ => return Json::Null,
        };
        let resolution = match approved == observed {
            true => Resolution::Matched,
            false => Resolution::Denied,
        };
        Json::object([
            ("detected", Json::Bool(approved != observed)),
            ("approved_args_digest", Json::from(approved.to_string())),
            ("observed_args_digest", Json::from(observed.to_string())),
            ("resolution", Json::from(resolution.as_str())),
        ])
    }
}

fn texts(texts: &[String]) -> Json {
    Json::Array(texts.iter().map(|text| Json::from(text.as_str())).collect())
}

/// The members that are there.
fn present<const N: usize>(members: [(&str, Json); N]) -> impl Iterator<Item = (&str, Json)> {
    members.into_iter().filter(|(_, value)| !value.is_null())
}
