//! The capability rules, ready for one manifest.

use countersign_canon::Digest;
use regorus::Value;

use crate::facts::Facts;
use crate::manifest::{Approval, Manifest, Schema, SideEffect};
use crate::matcher::HostPattern;
use crate::rego::{
    Bundle, BundleError, EvalError, Machine, NotAdmitted, Source, digest_of, from_value, object,
};
use crate::{Decision, Verdict};

mod explain;
mod memory;
mod trials;

pub use explain::Explanation;
use explain::Places;
use memory::{Answer, Memory, Recollection};

/// The built-in rules.
pub const RULES: &str = include_str!("../../../policies/capability.rego");

/// The rules with a manifest, compiled once.
pub struct Capability {
    bundle: Bundle,
    rules: Source,
    manifest: Option<Manifest>,
    places: Places,
    not_admitted: Option<NotAdmitted>,
    /// Of the built-in rules only: what other rules look at is not known.
    memory: Option<Memory>,
}

/// What an allowed call must keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constraints {
    /// The most that its result may have.
    pub max_output_bytes: u64,
    /// The longest that it may take.
    pub timeout_ms: u64,
}

/// A verdict of the capability rules with its grounds.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What the call must keep to, if it may run.
    pub constraints: Option<Constraints>,
    /// Whether the hold is of the class that cannot be undone.
    pub irreversible: bool,
    /// What the call can change, as far as that is certain.
    pub side_effect: SideEffect,
    /// Which rule spoke, and why.
    pub explanation: Explanation,
}

impl Capability {
    /// The built-in rules for a manifest, or for none: then every tool is known and nothing is
    /// known about any.
    pub fn new(manifest: Option<Manifest>) -> Result<Self, BundleError> {
        let rules = Source {
            name: "capability.rego".to_owned(),
            text: RULES.to_owned(),
        };
        Self::with_rules(rules, manifest)
    }

    /// Other rules in the place of the built-in ones: they answer at the same name, from the same
    /// facts.
    pub fn with_rules(rules: Source, manifest: Option<Manifest>) -> Result<Self, BundleError> {
        Self::prepare(rules, manifest, Bundle::admit_machine)
    }

    /// The same without the look at the syntax: to show what becomes of a machine that errs later.
    #[doc(hidden)]
    pub fn with_unseen_rules(
        rules: Source,
        manifest: Option<Manifest>,
    ) -> Result<Self, BundleError> {
        Self::prepare(rules, manifest, Bundle::try_machine)
    }

    fn prepare(
        rules: Source,
        manifest: Option<Manifest>,
        admit: impl FnOnce(&mut Bundle, &[Value]) -> Result<(), NotAdmitted>,
    ) -> Result<Self, BundleError> {
        let data = object([("manifest", index(manifest.as_ref()))]);
        let mut bundle = Bundle::compile(std::slice::from_ref(&rules), data, ENTRY)?;
        let admission = admit(&mut bundle, &trials::inputs(manifest.as_ref()));
        Ok(Self {
            bundle,
            manifest,
            places: Places::of(&rules),
            memory: (rules.text == RULES).then(Memory::default),
            rules,
            not_admitted: admission.err(),
        })
    }

    /// The same rules for another manifest.
    pub fn for_manifest(&self, manifest: Option<Manifest>) -> Result<Self, BundleError> {
        Self::with_rules(self.rules.clone(), manifest)
    }

    /// The same rules, by the interpreter alone.
    #[must_use = "gives the changed rules back"]
    pub fn interpreted(mut self) -> Self {
        self.bundle.dismiss_machine();
        self.forgetful()
    }

    /// The same rules, asked about every action: what they said before does not count.
    #[must_use = "gives the changed rules back"]
    pub fn forgetful(mut self) -> Self {
        self.memory = None;
        self
    }

    /// The verdict about one action.
    pub fn judge(&self, facts: &Facts) -> Judgement {
        match self.answer(facts) {
            Ok(Answer { rule, verdict }) => self.judgement(&rule, verdict, facts),
            // FAIL-CLOSED: no answer is a denial, whatever the reason.
            Err(error) => {
                let verdict = Verdict::new(Decision::Deny, error.reason());
                self.judgement("runtime", verdict.with_message(error.to_string()), facts)
            }
        }
    }

    /// The manifest.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// The file of the rules.
    pub fn sources(&self) -> &[Source] {
        self.bundle.sources()
    }

    /// The rule that answers.
    pub fn entry(&self) -> &str {
        self.bundle.entry()
    }

    /// Over the rules and the whole manifest: also what the rules do not look at by themselves, such as
    /// roots of paths, decides something.
    pub fn digest(&self) -> Digest {
        let manifest = self.manifest.as_ref().map(|it| it.digest().to_string());
        let manifest = manifest.as_deref().unwrap_or_default();
        digest_of(self.bundle.sources(), manifest, self.bundle.entry())
    }

    /// Who evaluates.
    pub fn machine(&self) -> Machine {
        self.bundle.machine()
    }

    /// Why the interpreter serves alone: slower, and right.
    pub fn not_admitted(&self) -> Option<&NotAdmitted> {
        self.not_admitted.as_ref()
    }

    fn answer(&self, facts: &Facts) -> Result<Answer, EvalError> {
        let memory = self.memory.as_ref();
        // What an evaluator said that has erred since does not count.
        let memory = memory.filter(|_| self.bundle.machine() != Machine::Demoted);
        let Some(memory) = memory else {
            return self.ask(facts, Bundle::evaluate);
        };
        let question = memory::question(facts, self.manifest());
        match memory.recall(&question) {
            Recollection::Certain(answer) => Ok(answer),
            Recollection::Doubted(before) => {
                let answer = self.ask(facts, Bundle::confirm);
                if answer.as_ref().ok() == Some(&before) {
                    return answer;
                }
                memory.distrust();
                // FAIL-CLOSED: nobody knows which of the two is right for this action.
                Err(answer.err().unwrap_or(EvalError::Inconstant))
            }
            Recollection::None => {
                let answer = self.ask(facts, Bundle::evaluate)?;
                memory.keep(question, answer.clone());
                Ok(answer)
            }
        }
    }

    fn ask(
        &self,
        facts: &Facts,
        how: impl FnOnce(&Bundle, &Value) -> Result<Value, EvalError>,
    ) -> Result<Answer, EvalError> {
        let answer = how(&self.bundle, &facts.to_value())?;
        let malformed = || EvalError::Failed("the rules gave a malformed answer".to_owned());
        let answer = from_value(&answer).ok_or_else(malformed)?;
        let rule = answer
            .get("rule")
            .and_then(|rule| rule.as_str())
            .ok_or_else(malformed)?;
        let verdict =
            Verdict::from_policy(&answer).map_err(|error| EvalError::Failed(error.to_string()))?;
        Ok(Answer {
            rule: rule.to_owned(),
            verdict,
        })
    }

    fn judgement(&self, rule: &str, verdict: Verdict, facts: &Facts) -> Judgement {
        // A hold that there would be even if somebody had said what the tool does.
        let held = facts.approval == Approval::Required
            || verdict.decision() == Decision::Escalate && rule != SIDE_EFFECT;
        Judgement {
            constraints: verdict.decision().permits().then(|| self.constraints()),
            irreversible: facts.irreversible || (held && self.raises(facts)),
            side_effect: facts.side_effect,
            explanation: Explanation::new(rule, facts, self.manifest(), &self.places),
            verdict,
        }
    }

    /// What an allowed call must keep to.
    pub fn constraints(&self) -> Constraints {
        let budgets = self
            .manifest
            .as_ref()
            .map(|manifest| manifest.permissions().budgets);
        let budgets = budgets.unwrap_or_default();
        Constraints {
            max_output_bytes: budgets.max_output_bytes,
            timeout_ms: budgets.timeout_ms,
        }
    }

    /// Whether a call needs approval one level higher because nobody has declared what it does: an
    /// allow becomes a hold, and a hold one of the irreversible class.
    pub(crate) fn raises(&self, facts: &Facts) -> bool {
        facts.side_effect == SideEffect::Unknown && !self.is_classic()
    }

    fn is_classic(&self) -> bool {
        self.manifest
            .as_ref()
            .is_some_and(|manifest| manifest.schema() == Schema::Aegis)
    }
}

/// The manifest as the rules look things up in it.
pub(crate) fn index(manifest: Option<&Manifest>) -> Value {
    let Some(manifest) = manifest else {
        return object([
            ("open", Value::Bool(true)),
            ("classic", Value::Bool(false)),
            ("limits", object([])),
        ]);
    };
    let permissions = manifest.permissions();
    let patterns: Vec<HostPattern> = permissions.net.domains.patterns().collect();
    let hosts = patterns.iter().filter_map(|pattern| match pattern {
        HostPattern::Exact(host) => Some(host.to_string()),
        HostPattern::Below(_) => None,
    });
    let suffixes = patterns.iter().filter_map(|pattern| match pattern {
        HostPattern::Below(suffix) => Some(suffix.clone()),
        HostPattern::Exact(_) => None,
    });
    let listed = permissions.approval_required.iter().cloned();
    let marked = permissions
        .tools
        .iter()
        .filter(|(_, tool)| tool.approval == Approval::Required)
        .map(|(name, _)| name.clone());
    object([
        ("open", Value::Bool(false)),
        ("classic", Value::Bool(manifest.schema() == Schema::Aegis)),
        ("tools", members(permissions.tools.keys().cloned())),
        ("hosts", members(hosts)),
        ("host_suffixes", members(suffixes)),
        (
            "programs",
            members(permissions.exec.allowed_bins.iter().cloned()),
        ),
        ("approval", members(listed.chain(marked))),
        ("limits", limits(manifest)),
    ])
}

fn limits(manifest: &Manifest) -> Value {
    let budgets = &manifest.permissions().budgets;
    let mut limits = vec![
        ("steps", Value::from(budgets.max_steps)),
        ("tool_calls", Value::from(budgets.max_tool_calls)),
        ("wall_time_ms", Value::from(budgets.max_wall_time_ms)),
    ];
    limits.extend(
        budgets
            .max_model_calls
            .map(|limit| ("model_calls", Value::from(limit))),
    );
    object(limits)
}

/// Names as an object, because looking up a member is quicker than searching.
fn members(names: impl Iterator<Item = String>) -> Value {
    let names: Vec<String> = names.collect();
    object(names.iter().map(|name| (name.as_str(), Value::Bool(true))))
}

const ENTRY: &str = "data.countersign.capability.decision";
/// The rule that holds a call for this reason alone.
const SIDE_EFFECT: &str = "side-effect";

#[cfg(test)]
mod tests;
