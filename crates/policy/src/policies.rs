//! The policies in force: the capability rules, and others beside them.

use std::sync::Arc;

use countersign_canon::{Digest, Json};

use crate::capability::{Capability, Judgement};
use crate::facts::Facts;
use crate::manifest::Manifest;
use crate::rego::{BundleError, Source, object, testing, to_value};
use crate::{Decision, Hearing, Point, Verdict};

mod beside;
mod user;

pub use beside::{Appeal, Beside, Called, Finding, Identities, Moment};
pub use user::{Mode, Opinion, UserPolicy};

/// Everything that has a say about an action.
pub struct Policies {
    capability: Capability,
    others: Vec<Arc<UserPolicy>>,
    beside: Vec<Arc<dyn Beside>>,
    digest: Digest,
    /// Whether everything is allowed, and what would have been said is recorded only.
    observing: bool,
}

/// Why files are not put in force.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// They do not compile.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A policy has no rule that answers.
    #[error("`{0}`: no rule `verdict` answers")]
    Silent(String),
    /// A unit test of theirs fails.
    #[error("`{file}`:{line}: `{name}` fails: {failure}")]
    Test {
        /// The file of the test.
        file: String,
        /// Its line.
        line: u64,
        /// Its name.
        name: String,
        /// Why.
        failure: String,
    },
}

/// Files of policy, as an operator lays them out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicySources {
    /// Rules in the place of the built-in ones.
    pub rules: Option<Source>,
    /// Policies beside the rules, whose verdicts count.
    pub enforced: Vec<Source>,
    /// Policies beside the rules, whose verdicts are recorded only.
    pub shadow: Vec<Source>,
    /// Unit tests of all of them.
    pub tests: Vec<Source>,
}

impl Policies {
    /// The capability rules alone.
    pub fn new(capability: Capability) -> Self {
        let digest = capability.digest();
        Self {
            capability,
            others: Vec::new(),
            beside: Vec::new(),
            digest,
            observing: false,
        }
    }

    /// Compiles files and runs their tests. Files that do not compile, do not answer or fail a test
    /// never get into force.
    pub fn load(
        sources: &PolicySources,
        capability: impl FnOnce(Option<Source>) -> Result<Capability, BundleError>,
    ) -> Result<Self, LoadError> {
        let mut policies = Self::new(capability(sources.rules.clone())?);
        for (files, mode) in [
            (&sources.enforced, Mode::Enforce),
            (&sources.shadow, Mode::Shadow),
        ] {
            for policy in UserPolicy::all(files, mode)? {
                policies = policies.with(policy);
            }
        }
        policies.pass(sources)?;
        Ok(policies)
    }

    /// Adds a policy.
    #[must_use = "gives the changed policies back"]
    pub fn with(self, policy: UserPolicy) -> Self {
        self.joined_by(Arc::new(policy))
    }

    fn joined_by(mut self, policy: Arc<UserPolicy>) -> Self {
        self.digest = Digest::of_parts(&[
            self.digest.as_bytes(),
            policy.name().as_bytes(),
            b"\0",
            policy.mode().as_str().as_bytes(),
            policy.digest().as_bytes(),
        ]);
        self.others.push(policy);
        self
    }

    /// The same policies for another manifest.
    pub fn for_manifest(&self, manifest: Option<Manifest>) -> Result<Self, BundleError> {
        let mut policies = Self::new(self.capability.for_manifest(manifest)?);
        for policy in &self.others {
            policies = policies.joined_by(Arc::clone(policy));
        }
        for beside in &self.beside {
            policies = policies.with_beside(Arc::clone(beside));
        }
        Ok(match self.observing {
            true => policies.observing(),
            false => policies,
        })
    }

    /// Adds somebody else who has a say.
    #[must_use = "gives the changed policies back"]
    pub fn with_beside(mut self, beside: Arc<dyn Beside>) -> Self {
        self.digest = Digest::of_parts(&[
            self.digest.as_bytes(),
            beside.name().as_bytes(),
            b"\0beside",
            beside.digest().as_bytes(),
        ]);
        self.beside.push(beside);
        self
    }

    /// The same policies, all of them in the shadow: every action is allowed, and what they would have
    /// said is recorded. For finding out what a roll-out would stop; it stops nothing.
    #[must_use = "gives the changed policies back"]
    pub fn observing(mut self) -> Self {
        self.observing = true;
        self.digest = Digest::of_parts(&[self.digest.as_bytes(), b"\0observe"]);
        self
    }

    /// Whether they stop nothing.
    pub fn is_observing(&self) -> bool {
        self.observing
    }

    /// The capability rules.
    pub fn capability(&self) -> &Capability {
        &self.capability
    }

    /// The policies beside them.
    pub fn others(&self) -> &[Arc<UserPolicy>] {
        &self.others
    }

    /// Who else has a say.
    pub fn beside(&self) -> &[Arc<dyn Beside>] {
        &self.beside
    }

    /// Over everything that has a say.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether anybody is meant to be asked at a point.
    pub fn attends(&self, point: Point) -> bool {
        self.beside.iter().any(|one| one.attends(point))
    }

    /// Whether a verdict may wait for somebody outside of this process.
    pub fn asks_others(&self) -> bool {
        self.beside.iter().any(|one| one.asks_others())
    }

    /// The strictest verdict, and what each policy beside the capability rules said. `session` is
    /// asked for only if there is such a policy.
    pub fn judge(
        &self,
        facts: &Facts,
        args: &Json,
        agent: Option<&str>,
        session: &dyn Fn() -> Json,
        hearing: &Hearing,
    ) -> (Judgement, Vec<Opinion>) {
        let (judgement, mut opinions) = self.said(facts, args, agent, session, hearing);
        if !self.observing {
            return (judgement, opinions);
        }
        opinions.push(Opinion {
            policy: OBSERVED.to_owned(),
            mode: Mode::Shadow,
            verdict: judgement.verdict.clone(),
            explanation: judgement.explanation.clone(),
            identities: None,
        });
        let judgement = Judgement {
            verdict: Verdict::new(Decision::Allow, OBSERVED),
            constraints: Some(self.capability.constraints()),
            ..judgement
        };
        (judgement, opinions)
    }

    /// What counts at a point, and what would have counted if nothing is stopped. Where nobody is
    /// meant to be asked, the answer is no.
    pub fn finding(&self, moment: &Moment<'_>, hearing: &Hearing) -> (Finding, Option<Decision>) {
        let findings = self.beside.iter().map(|one| one.finding(moment, hearing));
        let found = findings
            .reduce(stricter)
            .unwrap_or_else(|| Finding::nobody(moment.point));
        if !self.observing {
            return (found, None);
        }
        let would = found.verdict.decision();
        let found = Finding {
            verdict: Verdict::new(Decision::Allow, OBSERVED),
            changed: None,
            ..found
        };
        (found, Some(would))
    }

    /// What all of them want when people are asked: the shortest time, the fewest requests.
    pub fn appeal(&self) -> Appeal {
        let appeals = self.beside.iter().map(|one| one.appeal());
        appeals
            .reduce(|one, other| Appeal {
                decide_within_ms: [one.decide_within_ms, other.decide_within_ms]
                    .into_iter()
                    .flatten()
                    .min(),
                stays_open: one.stays_open && other.stays_open,
                fatigue: [one.fatigue, other.fatigue].into_iter().flatten().min(),
            })
            .unwrap_or_default()
    }

    fn said(
        &self,
        facts: &Facts,
        args: &Json,
        agent: Option<&str>,
        session: &dyn Fn() -> Json,
        hearing: &Hearing,
    ) -> (Judgement, Vec<Opinion>) {
        let mut judgement = self.capability.judge(facts);
        if self.others.is_empty() && self.beside.is_empty() {
            return (judgement, Vec::new());
        }
        let session = session();
        let input = object([
            (
                "action",
                object([
                    ("tool", facts.tool.as_str().into()),
                    ("args", to_value(args)),
                ]),
            ),
            ("facts", facts.to_value()),
            ("session", to_value(&session)),
        ]);
        let called = Called {
            agent,
            tool: &facts.tool,
            args,
            session: &session,
        };
        let others = self.others.iter().map(|policy| policy.opinion(&input));
        let beside = self.beside.iter();
        let beside = beside.map(|other| other.opinion(&called, hearing));
        let opinions: Vec<Opinion> = others.chain(beside).collect();
        for opinion in opinions.iter().filter(|one| one.mode == Mode::Enforce) {
            let held = opinion.verdict.decision() == Decision::Escalate;
            judgement.irreversible |= held && self.capability.raises(facts);
            judgement = self.joined(judgement, opinion);
        }
        (judgement, opinions)
    }

    /// A stricter opinion takes the place of the verdict, with its own grounds.
    fn joined(&self, judgement: Judgement, opinion: &Opinion) -> Judgement {
        let before = judgement.verdict.decision();
        let verdict: Verdict = judgement.verdict.strictest(opinion.verdict.clone());
        match verdict.decision() == before {
            true => Judgement {
                verdict,
                ..judgement
            },
            false => Judgement {
                constraints: judgement
                    .constraints
                    .filter(|_| verdict.decision().permits()),
                explanation: opinion.explanation.clone(),
                verdict,
                ..judgement
            },
        }
    }

    fn pass(&self, sources: &PolicySources) -> Result<(), LoadError> {
        if sources.tests.is_empty() {
            return Ok(());
        }
        let policies: Vec<Source> = sources
            .rules
            .iter()
            .chain(&sources.enforced)
            .chain(&sources.shadow)
            .cloned()
            .collect();
        let tests = testing::results(&policies, &sources.tests, self.capability.manifest())?;
        let failed = tests
            .into_iter()
            .find_map(|test| Some((test.failure?, test.file, test.line, test.name)));
        match failed {
            None => Ok(()),
            Some((failure, file, line, name)) => Err(LoadError::Test {
                file,
                line,
                name,
                failure,
            }),
        }
    }
}

/// The stricter of two findings. FAIL-CLOSED: of two changes one would be lost.
fn stricter(one: Finding, other: Finding) -> Finding {
    let is_other = other.verdict.decision() > one.verdict.decision();
    let verdict = one.verdict.clone().strictest(other.verdict.clone());
    let chosen = if is_other { other } else { one };
    Finding {
        changed: chosen
            .changed
            .filter(|_| verdict.decision() == Decision::Transform),
        verdict,
        ..chosen
    }
}

/// The name of the verdict that would have counted, and the reason of the one that does.
const OBSERVED: &str = "observed";

#[cfg(test)]
mod tests;
