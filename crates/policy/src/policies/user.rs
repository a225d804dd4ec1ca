//! A policy that somebody added beside the built-in rules.

use countersign_canon::{Digest, Json};

use super::{Identities, LoadError};
use crate::capability::Explanation;
use crate::rego::testing::{Outline, outline};
use crate::rego::{Bundle, BundleError, Source, Value, from_value};
use crate::{Decision, Verdict};

/// A policy with one rule that answers.
pub struct UserPolicy {
    name: String,
    bundle: Bundle,
    mode: Mode,
    file: String,
    line: usize,
}

/// Whether a policy is obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Its verdict counts.
    Enforce,
    /// Its verdict is recorded, and nothing else.
    Shadow,
}

/// What one policy said.
#[derive(Debug, Clone)]
pub struct Opinion {
    /// The policy.
    pub policy: String,
    /// Whether it counts.
    pub mode: Mode,
    /// What it said.
    pub verdict: Verdict,
    /// Where it stands, what it looked at, and what would change its mind.
    pub explanation: Explanation,
    /// What was judged and what may be done, from those who tell.
    pub identities: Option<Identities>,
}

impl Mode {
    /// The word in digests and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
        }
    }
}

impl UserPolicy {
    /// Compiles a policy whose rule `entry`, as in `data.example.verdict`, answers with a verdict.
    pub fn compile(
        name: impl Into<String>,
        sources: &[Source],
        entry: &str,
        mode: Mode,
    ) -> Result<Self, BundleError> {
        let bundle = Bundle::compile(sources, Value::new_object(), entry)?;
        let outlines = sources.iter().map(outline).collect::<Result<Vec<_>, _>>()?;
        let (file, line) = place(entry, &outlines);
        Ok(Self {
            name: name.into(),
            bundle,
            mode,
            file,
            line,
        })
    }

    /// Every policy in these files: each rule `verdict` is one, named after its package. The files
    /// see one another.
    pub(super) fn all(sources: &[Source], mode: Mode) -> Result<Vec<Self>, LoadError> {
        let outlines = sources.iter().map(outline).collect::<Result<Vec<_>, _>>()?;
        let mut packages: Vec<&str> = outlines
            .iter()
            .filter(|outline| outline.rules.iter().any(|rule| rule.name == ANSWER))
            .map(|outline| outline.package.as_str())
            .collect();
        packages.sort_unstable();
        packages.dedup();
        if let (true, Some(first)) = (packages.is_empty(), sources.first()) {
            return Err(LoadError::Silent(first.name.clone()));
        }
        let policy = |package: &&str| {
            let name = package.strip_prefix("data.").unwrap_or(package);
            Self::compile(name, sources, &format!("{package}.{ANSWER}"), mode)
        };
        Ok(packages.iter().map(policy).collect::<Result<_, _>>()?)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it counts.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Its files.
    pub fn sources(&self) -> &[Source] {
        self.bundle.sources()
    }

    /// The rule that answers.
    pub fn entry(&self) -> &str {
        self.bundle.entry()
    }

    /// Over its files and the rule that answers.
    pub fn digest(&self) -> Digest {
        self.bundle.digest()
    }

    pub(super) fn opinion(&self, input: &Value) -> Opinion {
        let verdict = self.verdict(input);
        Opinion {
            policy: self.name.clone(),
            mode: self.mode,
            explanation: self.explanation(&verdict, input),
            verdict,
            identities: None,
        }
    }

    /// FAIL-CLOSED: a policy that gives no verdict denies.
    fn verdict(&self, input: &Value) -> Verdict {
        let answer = match self.bundle.evaluate(input) {
            Ok(answer) => from_value(&answer).unwrap_or(Json::Null),
            Err(error) => return denied(error.reason(), &error),
        };
        match Verdict::from_policy(&answer) {
            Ok(verdict) => verdict,
            Err(error) => denied(error.reason(), &error),
        }
    }

    fn explanation(&self, verdict: &Verdict, input: &Value) -> Explanation {
        let facts = self.bundle.inputs().filter_map(|path| {
            let found = path
                .split('.')
                .try_fold(input, |value, name| Some(&value[name]))?;
            Some((path.to_owned(), from_value(found)?))
        });
        Explanation {
            rule: self.name.clone(),
            file: self.file.clone(),
            line: self.line,
            facts: Json::object(facts),
            change: match verdict.decision() {
                Decision::Allow | Decision::Warn => "nothing has to change".to_owned(),
                _ => format!(
                    "ask the owner of the policy `{}`, or change what it looked at",
                    self.name
                ),
            },
        }
    }
}

fn denied(reason: &str, error: &dyn ToString) -> Verdict {
    Verdict::new(Decision::Deny, reason).with_message(error.to_string())
}

/// Where the rule that answers begins.
fn place(entry: &str, outlines: &[Outline]) -> (String, usize) {
    let begins = |outline: &Outline| {
        let name = entry
            .strip_prefix(outline.package.as_str())?
            .strip_prefix('.')?;
        let rule = outline.rules.iter().find(|rule| rule.name == name)?;
        Some((outline.file.clone(), usize::try_from(rule.line).ok()?))
    };
    outlines.iter().find_map(begins).unwrap_or_default()
}

/// The rule that answers, by convention.
const ANSWER: &str = "verdict";
