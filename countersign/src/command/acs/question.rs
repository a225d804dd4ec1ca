//! What both `acs eval` and `acs explain` are asked.

use clap::{Args, ValueEnum};
use countersign_acs::{Evaluation, Mode, Offline, Point, Runtime};
use countersign_callout::Remote;
use countersign_canon::{Digest, Hash, Json, Limits};

use crate::errors::{Code, Failure};
use crate::input;

#[derive(Args)]
pub(super) struct Question {
    /// The manifest: a file, or an https address with --sha256
    #[arg(value_name = "MANIFEST")]
    manifest: String,
    /// Where the agent is: agent_startup, input, pre_model_call, post_model_call, pre_tool_call,
    /// post_tool_call, output or agent_shutdown
    #[arg(long, value_name = "POINT")]
    point: String,
    /// What it sees there, as JSON: text, @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    snapshot: String,
    /// Whether the verdict would count
    #[arg(long, value_enum, default_value = "enforce")]
    mode: ModeName,
    /// The digest of the manifest, if it is at an address
    #[arg(long, value_name = "HEX")]
    sha256: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModeName {
    /// The verdict counts, and a change is applied
    Enforce,
    /// The same verdict; a change is checked and not applied
    EvaluateOnly,
}

/// A question with everything that it needs to be answered.
pub(super) struct Asked {
    runtime: Runtime,
    point: Point,
    snapshot: Json,
    mode: Mode,
}

impl Question {
    pub(super) fn ask(&self) -> Result<Asked, Failure> {
        let point = self
            .point
            .parse()
            .map_err(|error| Failure::new(Code::Point, format!("`{}` is {error}", self.point)))?;
        let manifest = super::manifest(&self.manifest, self.digest()?)?;
        let policies = super::policies(&manifest)?.with_adapter("http", Remote);
        let snapshot = input::json_argument_within(&self.snapshot, &SNAPSHOT)?;
        Ok(Asked {
            runtime: Runtime::new(manifest, policies)
                .with_annotators(Offline::default().or(Remote)),
            point,
            snapshot,
            mode: match self.mode {
                ModeName::Enforce => Mode::Enforce,
                ModeName::EvaluateOnly => Mode::EvaluateOnly,
            },
        })
    }

    fn digest(&self) -> Result<Option<Hash>, Failure> {
        let Some(hex) = &self.sha256 else {
            return Ok(None);
        };
        let digest: Digest = format!("sha256:{hex}")
            .parse()
            .map_err(|_| Failure::new(Code::Hash, format!("`{hex}` is not a digest")))?;
        Ok(Some(Hash::from_bytes(*digest.as_bytes())))
    }
}

impl Asked {
    pub(super) fn answer(&self) -> Evaluation<'_> {
        self.runtime.evaluate(self.point, &self.snapshot, self.mode)
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }
}

/// One line that says it all.
pub(super) fn headline(found: &Evaluation<'_>) -> String {
    let verdict = found.verdict();
    let word = match verdict.decision() {
        countersign_policy::Decision::Allow => "ALLOW ✓",
        countersign_policy::Decision::Warn => "WARN !",
        countersign_policy::Decision::Transform => "TRANSFORM ↻",
        countersign_policy::Decision::Escalate => "HOLD ⏸",
        countersign_policy::Decision::Deny => "DENY ✗",
    };
    let reason = verdict.reason().map(|reason| format!("  {reason}"));
    format!("{word}  {}{}", found.point(), reason.unwrap_or_default())
}

/// Deeper and larger than any snapshot may be, so that it is the runtime that refuses it.
const SNAPSHOT: Limits = Limits {
    max_bytes: 4 << 20,
    max_depth: 128,
    ..Limits::plan()
};
