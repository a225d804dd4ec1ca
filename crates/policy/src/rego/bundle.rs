//! Policies that were parsed, checked and made ready once.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_canon::Digest;
use regorus::rvm::program::Program;
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Value};

use super::evaluate::Evaluator;
use super::inspect::{self, Syntax};
use super::text;

/// One file of policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name, for messages.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A set of policies with one rule that answers.
pub struct Bundle {
    pub(super) prototype: Engine,
    pub(super) data: Value,
    pub(super) entry: String,
    pub(super) syntax: Syntax,
    pub(super) program: Option<Arc<Program>>,
    pub(super) idle: Mutex<Vec<Evaluator>>,
    pub(super) demoted: AtomicBool,
    pub(super) evaluations: AtomicU64,
    sources: Vec<Source>,
    digest: Digest,
}

/// Why policies cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// A file does not parse.
    #[error("`{file}`: {problem}")]
    Parse {
        /// The file.
        file: String,
        /// Where and why.
        problem: String,
    },
    /// The files do not fit together.
    #[error("the policies do not compile: {0}")]
    Compile(String),
    /// A policy calls what a policy must not.
    #[error("policies must not call `{0}`: a verdict may depend on its input only")]
    Forbidden(String),
    /// A policy calls something that could take all memory or all time.
    #[error("policies may not call `{name}` like this, because it could take all memory: {why}")]
    Unbounded {
        /// What it calls.
        name: String,
        /// What is asked of such a call.
        why: &'static str,
    },
    /// A function calls itself, which could end the process.
    #[error("`{0}` can call itself: policies must not recurse")]
    Recursive(String),
    /// The data cannot be used.
    #[error("the policy data cannot be used: {0}")]
    Data(String),
}

impl Bundle {
    /// Parses and compiles the files. `entry` is the rule that answers, as in
    /// `data.example.verdict`.
    pub fn compile(sources: &[Source], data: Value, entry: &str) -> Result<Self, BundleError> {
        let mut engine = Engine::new();
        engine.set_rego_v0(false);
        engine.set_strict_builtin_errors(true);
        engine.set_execution_timer_config(time_limit());
        for source in sources {
            text::add(source, &mut engine)?;
        }
        let syntax = engine
            .get_ast_as_json()
            .ok()
            .and_then(|tree| inspect::syntax(&tree))
            .ok_or_else(|| BundleError::Compile("the syntax tree cannot be read".to_owned()))?;
        syntax.check()?;
        let digest = digest(sources, &data, entry);
        engine
            .add_data(data.clone())
            .map_err(|error| BundleError::Data(error.to_string()))?;
        engine
            .compile_with_entrypoint(&entry.into())
            .map_err(|error| BundleError::Compile(error.to_string()))?;
        Ok(Self {
            prototype: engine,
            data,
            entry: entry.to_owned(),
            syntax,
            program: None,
            idle: Mutex::default(),
            demoted: AtomicBool::new(false),
            evaluations: AtomicU64::new(0),
            sources: sources.to_vec(),
            digest,
        })
    }

    /// The parts of the input that the policies look at by name, as in `action.tool`.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.syntax.inputs.iter().map(String::as_str)
    }

    /// The files.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The rule that answers.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Over the files, the data and the answering rule.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

fn digest(sources: &[Source], data: &Value, entry: &str) -> Digest {
    let data = data.to_json_str().unwrap_or_default();
    digest_of(sources, &data, entry)
}

/// Over files, the text of data and the answering rule.
pub(crate) fn digest_of(sources: &[Source], data: &str, entry: &str) -> Digest {
    let mut parts: Vec<&str> = vec![entry, data];
    for source in sources {
        parts.extend([source.name.as_str(), source.text.as_str()]);
    }
    // Each part with its length, so that moving a character to the next part changes the digest.
    let lengths: Vec<[u8; 8]> = parts
        .iter()
        .map(|part| (part.len() as u64).to_be_bytes())
        .collect();
    let framed: Vec<&[u8]> = lengths
        .iter()
        .zip(&parts)
        .flat_map(|(length, part)| [length.as_slice(), part.as_bytes()])
        .collect();
    Digest::of_parts(&framed)
}

fn time_limit() -> ExecutionTimerConfig {
    ExecutionTimerConfig {
        limit: TIME_LIMIT,
        check_interval: CHECK_INTERVAL,
    }
}

pub(super) const TIME_LIMIT: Duration = Duration::from_millis(250);
pub(super) const CHECK_INTERVAL: NonZeroU32 = NonZeroU32::MIN.saturating_add(255);
