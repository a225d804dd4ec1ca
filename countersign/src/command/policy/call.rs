//! One call, as `eval` and `explain` ask about it.

use std::path::PathBuf;

use clap::Args;
use countersign_canon::{Digest, Json, Object};
use countersign_engine::{PolicyFiles, PolicyFilesError};
use countersign_event::fetching;
use countersign_policy::capability::{Capability, Judgement};
use countersign_policy::facts::Action;
use countersign_policy::manifest::signature::TrustMode;
use countersign_policy::whatif::{self, Answer};
use countersign_policy::{Decision, Offered, Opinion, Policies};

use crate::command::manifest::{self, Trust};
use crate::errors::{Code, Failure};
use crate::input;

#[derive(Args)]
pub(super) struct Call {
    /// The manifest [default: none, so every tool is known and nothing is known about it]
    #[arg(long, value_name = "FILE")]
    manifest: Option<String>,
    #[command(flatten)]
    trust: Trust,
    /// A policy of your own, or a folder of them with their tests
    #[arg(long, value_name = "FILE|DIR")]
    policy: Vec<PathBuf>,
    /// A policy that speaks and does not count
    #[arg(long, value_name = "FILE|DIR")]
    shadow: Vec<PathBuf>,
    /// The state of the session [default: a session that has done nothing]
    #[arg(long, value_name = "JSON|FILE")]
    snapshot: Option<String>,
    /// The tool
    #[arg(long, value_name = "NAME")]
    tool: String,
    /// Its arguments: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", default_value = "{}")]
    args: String,
    /// The server that offers the tool [default: none does]
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// The digest of the tool's definition, as `countersign tools list` shows it
    #[arg(long, value_name = "DIGEST", requires = "server")]
    definition: Option<Digest>,
    /// The key of the sanitised text that the call carries
    #[arg(long, value_name = "KEY")]
    sanitizer_key: Option<String>,
}

impl Call {
    pub(super) fn judge(&self) -> Result<(Judgement, Vec<Opinion>), Failure> {
        let policies = self.policies()?;
        let snapshot = self.snapshot()?;
        let args = input::json_argument(&self.args)?;
        let action = Action {
            tool_name: &self.tool,
            args: &args,
            sanitizer_key: self.sanitizer_key.as_deref(),
        };
        let fetched = fetching(&self.tool);
        // A method is offered by the protocol, whichever the server is.
        let server = self.server.as_deref().or(fetched.map(|_| ""));
        let offered = server.map(|server| Offered {
            server,
            tool: &self.tool,
            definition: self
                .definition
                .or(fetched)
                .unwrap_or_else(|| Digest::of(b"")),
        });
        whatif::judge(&action, offered.as_ref(), &snapshot, &policies)
            .map_err(|error| Failure::new(Code::Snapshot, error.to_string()))
    }

    fn policies(&self) -> Result<Policies, Failure> {
        // Said first, because it lists every problem of a manifest.
        let manifest = self.manifest.as_deref().map(manifest::read).transpose()?;
        let refused = |error: &dyn ToString| Failure::new(Code::Untrusted, error.to_string());
        match (&manifest, self.trust.mode()) {
            (Some(manifest), mode) => manifest
                .accept(mode, &self.trust.publishers()?)
                .map_err(|error| refused(&error))?,
            (None, TrustMode::Prod) => return Err(refused(&PolicyFilesError::NoManifest)),
            (None, TrustMode::Dev) => {}
        }
        if self.policy.is_empty() && self.shadow.is_empty() {
            return Capability::new(manifest)
                .map(Policies::new)
                .map_err(|error| Failure::new(Code::Policy, error.to_string()));
        }
        let files = PolicyFiles {
            manifest: self.manifest.as_ref().map(PathBuf::from),
            enforced: self.policy.clone(),
            shadow: self.shadow.clone(),
            trust: self.trust.mode(),
            publishers: self.trust.list(),
            ..PolicyFiles::default()
        };
        Ok(files.load()?)
    }

    fn snapshot(&self) -> Result<Json, Failure> {
        let snapshot = match self.snapshot.as_deref() {
            None => return Ok(Json::Object(Object::new())),
            Some(text) if text.trim_start().starts_with('{') => input::json_argument(text)?,
            Some(path) if path.starts_with('@') => input::json_argument(path)?,
            Some(path) => input::json_argument(&format!("@{path}"))?,
        };
        let names = snapshot.as_object().into_iter().flatten();
        match names
            .map(|(name, _)| name)
            .find(|name| !MEMBERS.contains(name))
        {
            // A name that is misspelt would change the answer without a word.
            Some(unknown) => Err(Failure::new(
                Code::Snapshot,
                format!("`{unknown}` is not a member of a snapshot"),
            )),
            None => Ok(snapshot),
        }
    }

    /// `DENY ✗  read_file: PATH_DENY`
    pub(super) fn headline(&self, judgement: &Judgement) -> String {
        let verdict = &judgement.verdict;
        let mut line = format!(
            "{}  {}: {}",
            word(verdict.decision()),
            self.tool,
            verdict.reason().unwrap_or_default()
        );
        if let Some(message) = verdict.message() {
            line.push_str(&format!(" ({message})"));
        }
        if let Some(constraints) = judgement.constraints {
            line.push_str(&format!(
                ", at most {} bytes in {} ms",
                constraints.max_output_bytes, constraints.timeout_ms
            ));
        }
        line
    }
}

/// What each policy beside the rules said, a line each.
pub(super) fn spoken(opinions: &[Opinion]) -> Vec<String> {
    let line = |opinion: &Opinion| {
        let verdict = &opinion.verdict;
        format!(
            "        {}  {}: {} ({})",
            word(verdict.decision()),
            opinion.policy,
            verdict.reason().unwrap_or("no reason given"),
            opinion.mode.as_str()
        )
    };
    opinions.iter().map(line).collect()
}

/// The verdict for programs.
pub(super) fn members(judgement: &Judgement, opinions: &[Opinion]) -> Object {
    let opinion = |opinion: &Opinion| {
        let reason = opinion.verdict.reason();
        Json::object([
            ("policy", Json::from(opinion.policy.as_str())),
            ("mode", Json::from(opinion.mode.as_str())),
            ("decision", Json::from(opinion.verdict.decision().as_str())),
            ("reason", reason.map_or(Json::Null, Json::from)),
        ])
    };
    let answer = Answer::from(judgement.clone()).to_json();
    let mut members = answer.into_object().unwrap_or_default();
    let more = [
        (
            "decision",
            Json::from(judgement.verdict.decision().as_str()),
        ),
        ("irreversible", Json::from(judgement.irreversible)),
        ("rule", Json::from(judgement.explanation.rule.as_str())),
        (
            "opinions",
            Json::Array(opinions.iter().map(opinion).collect()),
        ),
    ];
    for (name, value) in more {
        members.insert(name.to_owned(), value);
    }
    members
}

fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "ALLOW ✓",
        Decision::Warn => "WARN ✓",
        Decision::Transform => "TRANSFORM ✓",
        Decision::Escalate => "HOLD ⏸",
        Decision::Deny => "DENY ✗",
    }
}

const MEMBERS: [&str; 8] = [
    "is_tainted",
    "labels",
    "loop_violation",
    "model_calls_consumed",
    "sanitized_keys",
    "steps_consumed",
    "tool_calls_consumed",
    "wall_time_ms",
];
