//! Where a plan runs.

use countersign_canon::Json;
use countersign_event::Scope as Chain;

use crate::form::{Fields, FormError, wrong};
use crate::id::WorkItemId;
use crate::trust::Trust;

/// Where a plan runs. The plan hash covers all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The tenant and the session.
    pub chain: Chain,
    /// The piece of work.
    pub work_item: WorkItemId,
    /// The folder that the agent works in.
    pub workspace: Workspace,
    /// How the set of tools is gated, such as `require_write_approval`.
    pub toolset_mode: String,
    /// The name of the agent, as its host calls it.
    pub agent_name: String,
    /// How far the agent is trusted.
    pub trust: Trust,
}

/// A folder: its resolved path, and what the path stood for when it was resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Absolute, without links. The caller resolves it.
    pub root: String,
    /// The folder itself, so that another one under the same path is noticed.
    pub identity: Option<FolderIdentity>,
}

/// What tells one folder from another under the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderIdentity {
    /// The device.
    pub device: u64,
    /// The inode on it.
    pub inode: u64,
}

impl Scope {
    pub(crate) fn to_json(&self) -> Json {
        let identity = self.workspace.identity;
        Json::object([
            ("agent_name", Json::from(self.agent_name.as_str())),
            ("session_id", Json::from(self.chain.session.as_str())),
            ("tenant_id", Json::from(self.chain.tenant.as_str())),
            ("toolset_mode", Json::from(self.toolset_mode.as_str())),
            ("trust", Json::from(self.trust.as_str())),
            ("work_item_id", Json::from(self.work_item.as_str())),
            ("workspace_device", Json::from(identity.map(|it| it.device))),
            ("workspace_inode", Json::from(identity.map(|it| it.inode))),
            ("workspace_root", Json::from(self.workspace.root.as_str())),
        ])
    }

    pub(crate) fn read(json: Json) -> Result<Self, FormError> {
        let mut fields = Fields::of("scope", json)?;
        let chain = Chain {
            tenant: fields.parsed("tenant_id")?,
            session: fields.parsed("session_id")?,
        };
        let device = fields.nullable_count("workspace_device")?;
        let inode = fields.nullable_count("workspace_inode")?;
        let identity = match (device, inode) {
            (Some(device), Some(inode)) => Some(FolderIdentity { device, inode }),
            (None, None) => None,
            _ => return Err(wrong("workspace_inode", "given with the device")),
        };
        let scope = Self {
            chain,
            work_item: fields.parsed("work_item_id")?,
            workspace: Workspace {
                root: fields.text("workspace_root")?,
                identity,
            },
            toolset_mode: fields.text("toolset_mode")?,
            agent_name: fields.text("agent_name")?,
            trust: fields.parsed("trust")?,
        };
        fields.end()?;
        Ok(scope)
    }

    /// The names of the parts that differ, as the plan hash calls them.
    pub(crate) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let folder = self.workspace.root != other.workspace.root;
        let parts = [
            ("tenant_id", self.chain.tenant != other.chain.tenant),
            ("session_id", self.chain.session != other.chain.session),
            ("work_item_id", self.work_item != other.work_item),
            ("workspace_root", folder),
            (
                "workspace_identity",
                self.workspace.identity != other.workspace.identity,
            ),
            ("toolset_mode", self.toolset_mode != other.toolset_mode),
            ("agent_name", self.agent_name != other.agent_name),
            ("trust", self.trust != other.trust),
        ];
        let differing = parts.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(name, _)| name).collect()
    }
}
