//! Where an action comes from: who asks, on whose behalf, in which folder.

use std::path::Path;

use countersign_approval::{
    Agent, FolderIdentity, Human, Lineage, PrincipalError, WorkItemId, Workspace,
};
use countersign_event::TraceParent;

/// Where an action comes from. What is approved is bound to all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The chain of who started whom, from the person who answers for it to the agent that asks.
    pub lineage: Lineage,
    /// The name of the agent, as its host calls it.
    pub agent_name: String,
    /// The piece of work; the session if there is no smaller one.
    pub work_item: Option<WorkItemId>,
    /// The folder that the agent works in.
    pub workspace: Workspace,
    /// How the set of tools is gated.
    pub toolset_mode: String,
    /// What the agent says about the action. People see it apart from the plan; nobody checks it, and
    /// nothing is bound to it.
    pub agent_says: Option<String>,
    /// The trace that the action is a part of. It is recorded; nothing is bound to it.
    pub trace: Option<TraceParent>,
}

impl Origin {
    /// An agent that a person started, working in this folder.
    pub fn new(person: &str, agent: &str, folder: &Path) -> Result<Self, PrincipalError> {
        let lineage = Lineage::of(Human::new(person)?);
        let agent = Agent::new(agent)?;
        let agent_name = agent.name().to_owned();
        Ok(Self {
            // One agent is never too many.
            lineage: lineage.clone().spawn(agent).unwrap_or(lineage),
            agent_name,
            work_item: None,
            workspace: workspace(folder),
            toolset_mode: "require_approval".to_owned(),
            agent_says: None,
            trace: None,
        })
    }
}

/// The folder with its links resolved, and what it is right now.
pub(crate) fn workspace(folder: &Path) -> Workspace {
    let root = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    Workspace {
        identity: identity(&root),
        root: root.to_string_lossy().into_owned(),
    }
}

#[cfg(unix)]
fn identity(folder: &Path) -> Option<FolderIdentity> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = std::fs::metadata(folder).ok()?;
    Some(FolderIdentity {
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<FolderIdentity> {
    None
}
