//! Asking: the envelope is made and stored before anybody sees anything.

use super::*;
use crate::{ApprovalTimes, Engine, Hold, Refusal};
use countersign_event::payload::ToolCallDenied;
use countersign_policy::{Appeal, Decision, Verdict};

/// Why nobody can be asked about an action. It stays held, and nothing runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unaskable {
    /// There is nobody who could approve.
    #[error("approval_unavailable: no approver is registered")]
    Nobody,
    /// The list of approvers cannot be used.
    #[error("approval_unavailable: {0}")]
    Approvers(String),
    /// The action cannot be put into an envelope.
    #[error("approval_unavailable: {0}")]
    Plan(String),
    /// The system gave no randomness.
    #[error("approval_unavailable: the system gave no randomness")]
    Randomness,
    /// People were asked too often.
    #[error("approval_fatigue: people were asked {asked} times in the last {seconds} seconds")]
    Fatigue {
        /// How often.
        asked: u64,
        /// In how long.
        seconds: u64,
    },
}

impl Unaskable {
    /// Why an action of an Agent Control manifest does not wait.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Fatigue { .. } => "approval_fatigue",
            Self::Nobody | Self::Approvers(_) | Self::Plan(_) | Self::Randomness => {
                "runtime_error:approval_resolver_failed"
            }
        }
    }

    /// The event that tells that it does not run.
    pub(crate) fn denial(&self, call_id: &str) -> (EventType, Payload, Option<Change>) {
        let denied = ToolCallDenied {
            call_id: Some(call_id.to_owned()),
            reason_code: Some(self.reason().to_owned()),
            message: Some(Json::from(self.to_string())),
            ..ToolCallDenied::default()
        };
        (
            EventType::ToolCallDenied,
            Payload::ToolCallDenied(denied),
            None,
        )
    }
}

/// What goes with the event that asks.
pub(crate) struct Asked {
    pub(crate) envelope: Envelope,
    pub(crate) payload: Payload,
    pub(crate) change: Change,
}

/// Everything that an envelope is made from.
pub(crate) struct Question<'a> {
    pub(crate) proposal: &'a Proposal<'a>,
    pub(crate) judgement: &'a Judgement,
    pub(crate) hot: &'a Hot,
    pub(crate) policies: &'a Policies,
    pub(crate) folder: &'a Path,
    pub(crate) times: ApprovalTimes,
    pub(crate) now: UnixMs,
    /// The denied action that this one takes up again.
    pub(crate) parent_action: Option<ActionId>,
    /// The request that was edited to make this one.
    pub(crate) supersedes: Option<ApprovalId>,
    /// What an Agent Control manifest says would be done. What is approved is that.
    pub(crate) identity: Option<Digest>,
}

impl Engine {
    /// For doors where nothing can wait that nobody was asked about: records that the call does not run.
    pub fn deny_unasked(
        &self,
        scope: &countersign_event::Scope,
        hold: &Hold,
        why: &Unaskable,
    ) -> Refusal {
        let (event_type, payload, _) = why.denial(&hold.call_id);
        match self.record(scope, event_type, payload) {
            Ok(recorded) => {
                let denied = Verdict::new(Decision::Deny, why.reason());
                let denied = denied.with_message(why.to_string());
                Refusal::denied(&denied, hold.explanation.clone(), recorded)
            }
            Err(refusal) => refusal,
        }
    }

    /// Makes the envelope of an action that needs a human, unless they were asked too often.
    pub(crate) fn ask(&self, question: &Question<'_>) -> Result<Asked, Unaskable> {
        let fatigue = question.appeal().fatigue;
        if let Some((threshold, window_ms)) = fatigue {
            let most = usize::try_from(threshold).unwrap_or(usize::MAX);
            let newest = self
                .store()
                .reader()
                .newest_approvals(most.min(MOST_COUNTED));
            let newest = newest.map_err(|error| Unaskable::Plan(error.to_string()))?;
            let since = question.now.get().saturating_sub(window_ms);
            let recent = newest.iter().filter(|row| row.issued.get() > since).count();
            if recent >= most.min(MOST_COUNTED) {
                return Err(Unaskable::Fatigue {
                    asked: recent as u64,
                    seconds: window_ms / 1000,
                });
            }
        }
        ask(question)
    }
}

impl Question<'_> {
    /// What an Agent Control manifest wants, where it has said something about the action.
    fn appeal(&self) -> Appeal {
        match self.identity {
            Some(_) => self.policies.appeal(),
            None => Appeal::default(),
        }
    }
}

fn ask(question: &Question<'_>) -> Result<Asked, Unaskable> {
    let approvers = Approvers::load(question.folder)
        .map_err(|error| Unaskable::Approvers(error.to_string()))?;
    let quorum = approvers.quorum().ok_or(Unaskable::Nobody)?;
    let times = question.times;
    let appeal = question.appeal();
    let within = match appeal.stays_open {
        true => None,
        false => [times.decide_within_ms, appeal.decide_within_ms]
            .into_iter()
            .flatten()
            .min(),
    };
    let decide_by = within.map(|ms| question.now.plus(ms));
    let clocks = Clocks::new(
        question.now,
        decide_by,
        ExecuteBy::Within(times.execute_within_ms),
    )
    .map_err(plan_error)?;
    let envelope = Envelope::create(Draft {
        id: ApprovalId::from_random(random()?),
        nonce: Nonce::from_random(random()?),
        plan: plan(question)?,
        clocks,
        quorum,
        lineage: question.proposal.origin.lineage.clone(),
        parent_action: question.parent_action,
        supersedes: question.supersedes,
        agent_says: question.proposal.origin.agent_says.clone(),
    })
    .map_err(plan_error)?;
    let mut entry = Entry::new(question.now, Outcome::Requested);
    entry.about = Some(About::envelope(&envelope));
    entry.actor = Some(envelope.lineage().requester().to_string());
    Ok(Asked {
        payload: requested(question.proposal, &envelope),
        change: Change::request(&envelope, entry, question.now),
        envelope,
    })
}

fn plan(question: &Question<'_>) -> Result<Plan, Unaskable> {
    let proposal = question.proposal;
    let work_item = work_item(proposal)?;
    let scope = Scope {
        chain: proposal.scope.clone(),
        work_item,
        workspace: proposal.origin.workspace.clone(),
        toolset_mode: proposal.origin.toolset_mode.clone(),
        agent_name: proposal.origin.agent_name.clone(),
        trust: trust(question),
    };
    let call = ToolCall {
        id: ToolCallId::new(proposal.call_id.as_str()).map_err(plan_error)?,
        tool: tool(proposal),
        args: Arguments::new(proposal.args.clone()).map_err(plan_error)?,
        class: class(question.judgement),
    };
    let told = proposal.preconditions.iter();
    let mut seen = told.fold(Fingerprints::default(), |all, it| {
        all.with(it.subject(), it.fingerprint())
    });
    if let Some(identity) = question.identity {
        seen = seen.with(enforced_identity(), Some(identity.to_string()));
    }
    Plan::new(scope, vec![call], question.policies.digest(), seen).map_err(plan_error)
}

/// What an Agent Control manifest says would be done, as something that must not have changed.
pub(super) fn enforced_identity() -> Subject {
    Subject {
        kind: SubjectKind::Resource,
        name: "agent_control/enforced_identity".to_owned(),
    }
}

pub(crate) fn work_item(proposal: &Proposal<'_>) -> Result<WorkItemId, Unaskable> {
    match &proposal.origin.work_item {
        Some(work_item) => Ok(work_item.clone()),
        None => WorkItemId::new(proposal.scope.session.as_str()).map_err(plan_error),
    }
}

pub(crate) fn tool(proposal: &Proposal<'_>) -> Tool {
    Tool {
        server: proposal.server.clone(),
        name: proposal.tool_name.clone(),
        definition: proposal.definition,
    }
}

/// What the call can change, as it was judged: an entry of the manifest may say less than is certain.
pub(crate) fn class(judgement: &Judgement) -> Class {
    let effect = judgement.side_effect.as_str().parse().ok();
    Class {
        effect: effect.unwrap_or(Class::UNKNOWN.effect),
        irreversible: judgement.irreversible,
    }
}

/// Content from outside that steers the agent counts most.
pub(crate) fn trust(question: &Question<'_>) -> Trust {
    let manifest = question.policies.capability().manifest();
    let trusted = |server: Option<&str>, tool: &str| {
        manifest.is_some_and(|manifest| manifest.trusts_output_of(server, tool))
    };
    let snapshot = question.hot.snapshot();
    let handed = match snapshot.trust_for(&trusted) {
        countersign_session::Trust::Full => Trust::Full,
        countersign_session::Trust::Reduced => Trust::Reduced,
    };
    match snapshot.is_tainted_for(&trusted) {
        true => handed.after_outside_content(),
        false => handed,
    }
}

fn requested(proposal: &Proposal<'_>, envelope: &Envelope) -> Payload {
    let text = String::from_utf8_lossy(&envelope.to_text()).into_owned();
    Payload::ApprovalRequested(ApprovalRequested {
        call_id: Some(proposal.call_id.clone()),
        approval_id: Some(envelope.id().to_string()),
        plan_hash: Some(envelope.plan().hash().to_string()),
        expires_unix_ms: envelope.clocks().decide_by().map(UnixMs::get),
        envelope: Some(Json::from(text)),
        ..ApprovalRequested::default()
    })
}

pub(crate) fn random() -> Result<[u8; 16], Unaskable> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| Unaskable::Randomness)?;
    Ok(bytes)
}

fn plan_error(error: impl ToString) -> Unaskable {
    Unaskable::Plan(error.to_string())
}

/// Nobody is asked more often without getting tired.
const MOST_COUNTED: usize = 1000;
