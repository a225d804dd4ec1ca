//! The policies in force: the capability rules, and others beside them.

use countersign_canon::{Digest, Json};
use countersign_policy::capability::{Capability, Judgement};
use countersign_policy::facts::Facts;
use countersign_policy::rego::{Bundle, BundleError, Source, Value, from_value, to_value};
use countersign_policy::{Decision, Verdict};

/// Everything that has a say about an action.
pub struct Policies {
    capability: Capability,
    others: Vec<UserPolicy>,
    digest: Digest,
}

/// A policy that somebody added beside the built-in rules.
pub struct UserPolicy {
    name: String,
    bundle: Bundle,
    mode: Mode,
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
}

impl UserPolicy {
    /// Compiles a policy whose rule `entry` answers with a verdict.
    pub fn compile(
        name: impl Into<String>,
        sources: &[Source],
        entry: &str,
        mode: Mode,
    ) -> Result<Self, BundleError> {
        let bundle = Bundle::compile(sources, Value::new_object(), entry)?;
        Ok(Self {
            name: name.into(),
            bundle,
            mode,
        })
    }

    fn opinion(&self, input: &Value) -> Opinion {
        Opinion {
            policy: self.name.clone(),
            mode: self.mode,
            verdict: self.verdict(input),
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
}

fn denied(reason: &str, error: &dyn ToString) -> Verdict {
    Verdict::new(Decision::Deny, reason).with_message(error.to_string())
}

impl Policies {
    /// The capability rules alone.
    pub fn new(capability: Capability) -> Self {
        let digest = capability.digest();
        Self {
            capability,
            others: Vec::new(),
            digest,
        }
    }

    /// Adds a policy.
    #[must_use = "gives the changed policies back"]
    pub fn with(mut self, policy: UserPolicy) -> Self {
        let mode: &[u8] = if policy.mode == Mode::Enforce {
            b"enforce"
        } else {
            b"shadow"
        };
        let bundle = policy.bundle.digest();
        self.digest = Digest::of_parts(&[
            self.digest.as_bytes(),
            policy.name.as_bytes(),
            b"\0",
            mode,
            bundle.as_bytes(),
        ]);
        self.others.push(policy);
        self
    }

    /// The capability rules.
    pub fn capability(&self) -> &Capability {
        &self.capability
    }

    /// Over everything that has a say.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The strictest verdict, and what each policy beside the capability rules said.
    pub(crate) fn judge(
        &self,
        facts: &Facts,
        args: &Json,
        session: &dyn Fn() -> Json,
    ) -> (Judgement, Vec<Opinion>) {
        let mut judgement = self.capability.judge(facts);
        if self.others.is_empty() {
            return (judgement, Vec::new());
        }
        let input = to_value(&Json::object([
            (
                "action",
                Json::object([
                    ("tool", Json::from(facts.tool.as_str())),
                    ("args", args.clone()),
                ]),
            ),
            ("session", session()),
        ]));
        let opinions: Vec<Opinion> = self
            .others
            .iter()
            .map(|policy| policy.opinion(&input))
            .collect();
        for opinion in opinions
            .iter()
            .filter(|opinion| opinion.mode == Mode::Enforce)
        {
            judgement.verdict = judgement.verdict.strictest(opinion.verdict.clone());
        }
        (judgement, opinions)
    }
}
