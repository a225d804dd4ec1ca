//! The parts of a manifest, the same for both schemas.

use std::collections::{BTreeMap, BTreeSet};

use countersign_canon::{Digest, Hash};

use super::pointer::Pointer;
use crate::matcher::{self, ArgPatterns, HostRules, NormalPath};

/// Which rules a manifest was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// `aegis.dev/manifest/v0.1`
    Aegis,
    /// `countersign/manifest/v1`
    Countersign,
}

/// What a manifest allows. What is not here is denied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The tools by name. Use [`Manifest::tool`](super::Manifest::tool) to look one up.
    pub tools: BTreeMap<String, Tool>,
    /// Files.
    pub fs: Fs,
    /// Hosts.
    pub net: Net,
    /// Names of secrets.
    pub secrets: BTreeSet<String>,
    /// Programs.
    pub exec: Exec,
    /// Tools that need a human's approval, whatever else is said about them.
    pub approval_required: BTreeSet<String>,
    /// What a session may use up.
    pub budgets: Budgets,
}

/// A tool that may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The server that offers it; any server if `None`.
    pub server: Option<String>,
    /// What a call can change.
    pub side_effect: SideEffect,
    /// Whether tainted sessions must keep away from it; by its name if `None`.
    pub sink: Option<bool>,
    /// What happens to a call from a tainted session if the tool is a sink.
    pub on_taint: OnTaint,
    /// Whether its results leave a session untainted.
    pub trusted_output: bool,
    /// Where its arguments name hosts, paths and programs.
    pub arguments: Arguments,
    /// The highest information label it may see.
    pub clearance: Option<String>,
    /// The information labels of its results.
    pub labels: BTreeSet<String>,
    /// Whether a human has to approve each call.
    pub approval: Approval,
    /// The digest its definition must have.
    pub definition: Option<Digest>,
    /// Whether what it does cannot be undone.
    pub irreversible: bool,
    /// The state that it changes, in the words of `countersign evidence state`; empty if it does not say.
    pub state: Vec<String>,
}

impl Tool {
    /// What a tool is whose entry says nothing.
    pub(super) fn plain(schema: Schema) -> Self {
        Self {
            server: None,
            side_effect: SideEffect::Unknown,
            sink: None,
            on_taint: match schema {
                Schema::Aegis => OnTaint::Deny,
                Schema::Countersign => OnTaint::Hold,
            },
            trusted_output: false,
            arguments: Arguments::default(),
            clearance: None,
            labels: BTreeSet::new(),
            approval: Approval::Unstated,
            definition: None,
            irreversible: false,
            state: Vec::new(),
        }
    }

    /// Whether a call under this name is a high-risk sink.
    pub fn is_sink(&self, called: &str) -> bool {
        self.sink.unwrap_or_else(|| matcher::is_sink(called))
    }
}

/// What a call can change, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SideEffect {
    /// Nothing.
    Read,
    /// The sandbox or the local machine.
    MutateLocal,
    /// A service elsewhere.
    MutateExternal,
    /// Data may leave.
    NetworkEgress,
    /// Nobody has said; worse than anything that was said.
    Unknown,
}

impl SideEffect {
    /// The name in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::MutateLocal => "mutate-local",
            Self::MutateExternal => "mutate-external",
            Self::NetworkEgress => "network-egress",
            Self::Unknown => "unknown",
        }
    }
}

/// What happens to a call of a sink from a tainted session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTaint {
    /// It is denied.
    Deny,
    /// It is held for a human.
    Hold,
}

/// What a manifest says about a human's approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Each call needs one.
    Required,
    /// The manifest asks for none.
    NotRequired,
    /// The manifest is silent.
    Unstated,
}

/// Where the arguments of a tool name what it touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Hosts or URLs.
    pub host: Vec<Pointer>,
    /// Paths.
    pub path: Vec<Pointer>,
    /// Programs.
    pub binary: Vec<Pointer>,
}

/// Files that may be touched. A list that is `None` was not given; one that is empty allows no file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fs {
    /// Folders to read from.
    pub read_roots: Option<Vec<NormalPath>>,
    /// Folders to write to.
    pub write_roots: Option<Vec<NormalPath>>,
}

/// Hosts that may be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Net {
    /// Their patterns; none of them, no host.
    pub domains: HostRules,
}

/// Programs that may be run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exec {
    /// Their names or paths, letter by letter; none of them, no program.
    pub allowed_bins: BTreeSet<String>,
    /// What their arguments have to look like; none of them, anything.
    pub arg_patterns: ArgPatterns,
}

/// What a session may use up. A limit of 0 is a limit: nothing may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Model calls and tool calls together.
    pub max_steps: u64,
    /// Tool calls.
    pub max_tool_calls: u64,
    /// Model calls; without limit if `None`.
    pub max_model_calls: Option<u64>,
    /// Bytes of one result.
    pub max_output_bytes: u64,
    /// Milliseconds of one call.
    pub timeout_ms: u64,
    /// Milliseconds of the session.
    pub max_wall_time_ms: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            max_steps: 24,
            max_tool_calls: 12,
            max_model_calls: None,
            max_output_bytes: 1 << 20,
            timeout_ms: 30_000,
            max_wall_time_ms: 120_000,
        }
    }
}

/// When a session counts as going in circles. A number of 0 switches its rule off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loops {
    /// How often one tool may come with the same arguments until it is a loop.
    pub identical_calls: u32,
    /// How many steps may change nothing until it is a loop.
    pub no_progress_steps: u32,
    /// The shortest sequence of tools that must not come twice in a row.
    pub sequence_min: u32,
    /// The longest.
    pub sequence_max: u32,
    /// Tools that are meant to be called again and again.
    pub polling_tools: BTreeSet<String>,
}

impl Default for Loops {
    fn default() -> Self {
        Self {
            identical_calls: 2,
            no_progress_steps: 3,
            sequence_min: 3,
            sequence_max: 7,
            polling_tools: BTreeSet::new(),
        }
    }
}

/// Where tools have to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Whether they may run only in a sandbox.
    pub required: bool,
    /// The image of the sandbox.
    pub image: Option<String>,
    /// What is mounted into it.
    pub mounts: Vec<String>,
}

/// Which files belong to a manifest, and who signed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Integrity {
    /// SHA-256 of files by relative path.
    pub files: BTreeMap<String, Hash>,
    /// SHA-256 over all files.
    pub tree_sha256: Option<Hash>,
    /// The signature as it was written; [`signature`](super::signature) reads it.
    pub signature: Option<String>,
}
