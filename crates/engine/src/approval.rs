//! Approvals: asking people, counting what they say, and the one use of what they approved.

use std::path::Path;
use std::sync::Arc;

use countersign_approval::audit::{About, Entry, Outcome};
use countersign_approval::{
    ActionId, ApprovalId, Arguments, Class, Clocks, Context, Draft, Envelope, ExecuteBy,
    Fingerprints, Nonce, Plan, PreconditionFailed, Scope, Situation, State, Subject, SubjectKind,
    Tool, ToolCall, ToolCallId, Trust, UnixMs, WorkItemId,
};
use countersign_canon::{Digest, Hash, Json};
use countersign_display::{Rendering, View};
use countersign_event::payload::{ApprovalRequested, Payload};
use countersign_event::{EventType, Line};
use countersign_policy::Policies;
use countersign_policy::capability::Judgement;
use countersign_store::{Approval, Change, Reader, Requested, Stored};

use crate::hot::Hot;
use crate::origin::workspace;
use crate::refusal::Fault;
use crate::{Approvers, Origin, Proposal};

mod ask;
mod basis;
mod drift;
mod edit;
mod look;
mod news;
mod precondition;
mod recent;
mod redeem;
mod replay;
mod retention;
mod sweep;
mod tally;
mod vote;

pub use ask::Unaskable;
pub(crate) use ask::{Asked, Question, class, random, tool, trust, work_item};
pub(crate) use basis::{LABELS, POINT_TOOL};
pub use drift::Drifted;
pub use edit::NotEdited;
pub(crate) use news::Board;
pub use news::News;
pub use precondition::{Precondition, Told};
pub(crate) use recent::Recent;
pub(crate) use redeem::{ApprovalStep, Used};
pub use redeem::{Redeemed, Wanted};
pub use replay::{RecordedResult, Replay};
pub use sweep::Swept;
pub(crate) use sweep::is_erased;
pub use tally::{Tally, TallyVote};
pub use vote::{Denial, NotCounted, Voted};

/// How long people have, and how far their clocks may be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalTimes {
    /// How long people may decide; `None` as long as it takes.
    pub decide_within_ms: Option<u64>,
    /// How long an approved action may wait for its start.
    pub execute_within_ms: u64,
    /// How far an approver's clock may be off.
    pub skew_ms: u64,
    /// How long an approval that is over is kept.
    pub keep_ms: u64,
}

impl Default for ApprovalTimes {
    fn default() -> Self {
        Self {
            decide_within_ms: Some(HOUR_MS),
            execute_within_ms: HOUR_MS,
            skew_ms: countersign_approval::DEFAULT_SKEW_MS,
            keep_ms: 7 * 24 * HOUR_MS,
        }
    }
}

/// A request for approval as it stands.
pub struct Standing {
    /// Where it is in its life, and its clocks.
    pub row: Approval,
    /// What it is about.
    pub envelope: Arc<Envelope>,
    /// What people see of it.
    pub rendering: Arc<Rendering>,
}

impl Standing {
    /// A request as it is stored: for those who may look and not write.
    pub fn read(row: Approval, reader: &Reader) -> Result<Self, crate::Refusal> {
        Ok(standing(row, reader)?)
    }

    /// Where the action comes from. What the agent said was about that plan, and is not said again.
    pub(crate) fn origin(&self) -> Origin {
        let scope = self.envelope.plan().scope();
        Origin {
            lineage: self.envelope.lineage().clone(),
            agent_name: scope.agent_name.clone(),
            work_item: Some(scope.work_item.clone()),
            workspace: workspace(Path::new(&scope.workspace.root)),
            toolset_mode: scope.toolset_mode.clone(),
            agent_says: None,
            trace: None,
        }
    }

    /// Looks once more at the files and commits that the plan names: for a door, right before it starts
    /// what was approved.
    pub fn look_again(&self) -> Result<(), PreconditionFailed> {
        let asked = self.envelope.plan().preconditions();
        let seen = asked
            .iter()
            .fold(asked.clone(), |seen, (subject, _)| match subject.kind {
                SubjectKind::Resource => seen,
                SubjectKind::File | SubjectKind::GitHead => {
                    seen.with(subject.clone(), fingerprint(subject))
                }
            });
        asked.check(&seen)
    }
}

/// A request, read back from the event that asked for it.
pub(crate) fn standing(row: Approval, reader: &Reader) -> Result<Standing, Fault> {
    let event = reader.event(&row.scope, row.seq)?;
    let event = event.ok_or_else(|| history("the event that asked is gone"))?;
    let (envelope, rendering) = read_back(&event, reader)?;
    stand(row, Arc::new(envelope), Arc::new(rendering))
}

fn read_back(event: &Stored, reader: &Reader) -> Result<(Envelope, Rendering), Fault> {
    let payload = reader.open_payload(event)?;
    let text = payload
        .get("envelope")
        .and_then(Json::as_str)
        .ok_or_else(|| history("the event that asked has no envelope"))?;
    let envelope = Envelope::read(text.as_bytes()).map_err(|error| history(&error.to_string()))?;
    let rendering = rendering(&envelope)?;
    Ok((envelope, rendering))
}

fn stand(
    row: Approval,
    envelope: Arc<Envelope>,
    rendering: Arc<Rendering>,
) -> Result<Standing, Fault> {
    // SECURITY: the row names the envelope; it does not get to name another one.
    if envelope.id() != row.id
        || envelope.nonce() != row.nonce
        || envelope.plan().hash() != row.plan_hash
    {
        return Err(history(
            "the stored approval is not the one that was asked for",
        ));
    }
    Ok(Standing {
        row,
        envelope,
        rendering,
    })
}

/// What people see: the very bytes that the plan hash covers.
pub(crate) fn rendering(envelope: &Envelope) -> Result<Rendering, Fault> {
    let payload = envelope.plan().payload().to_sorted_ascii();
    Rendering::of(&payload, View::Full).map_err(|error| history(&error.to_string()))
}

/// The context as it is now. What only a door knows, it brings.
///
/// Whoever counts votes need not know the policies that the action runs under: the engine that lets
/// it run compares them.
pub(crate) fn context(
    envelope: &Envelope,
    policy: Digest,
    tools: Option<Vec<(Tool, Class)>>,
    folder: Option<&Path>,
) -> Context {
    let mut context = envelope.plan().context();
    let approved = &context.scope.workspace;
    context.scope.workspace = match (folder, approved.identity) {
        (Some(folder), _) => workspace(folder),
        (None, Some(_)) => workspace(Path::new(&approved.root)),
        (None, None) => context.scope.workspace,
    };
    context.policy = policy;
    if let Some(tools) = tools {
        context.tools = tools;
    }
    context
}

/// The fingerprint of something as it is now.
fn fingerprint(subject: &Subject) -> Option<String> {
    match subject.kind {
        // What is no plain file may have no end.
        SubjectKind::File if !Path::new(&subject.name).is_file() => None,
        SubjectKind::File => {
            let content = std::fs::read(&subject.name).ok()?;
            Some(Digest::of(&content).to_string())
        }
        SubjectKind::GitHead => git_head(Path::new(&subject.name)),
        SubjectKind::Resource => None,
    }
}

/// The commit that a working copy is at, without asking git: its files are enough.
fn git_head(folder: &Path) -> Option<String> {
    let git = folder.join(".git");
    let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
    match head.trim().strip_prefix("ref: ") {
        None => Some(head.trim().to_owned()),
        Some(name) => {
            let loose = std::fs::read_to_string(git.join(name)).ok();
            let packed = || {
                let packed = std::fs::read_to_string(git.join("packed-refs")).ok()?;
                let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
                lines
                    .find(|(_, found)| *found == name)
                    .map(|(commit, _)| commit.to_owned())
            };
            loose.map(|commit| commit.trim().to_owned()).or_else(packed)
        }
    }
}

pub(crate) fn history(problem: &str) -> Fault {
    Fault::History(problem.to_owned())
}

const HOUR_MS: u64 = 3_600_000;
