//! For people who write policies: what a file holds, where it is wrong, and its unit tests.
//!
//! A unit test is a rule `test_…` of a test file. It passes if it is `true`; undefined, anything
//! else and an error are failures. Tests may call no more than policies may.

mod branches;
mod cases;
mod fault;
mod outline;

pub use cases::{Case, CaseError, cases};
pub use fault::Fault;
pub use outline::{Outline, Rule, outline, unknown_calls};

use std::collections::BTreeSet;
use std::time::Duration;

use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Value};

use super::bundle::{BundleError, CHECK_INTERVAL, Source};
use super::inspect;
use super::object;
use super::text;
use crate::capability;
use crate::manifest::Manifest;

/// What the tests of some policies gave.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Tested {
    /// Every test, in the order of the files.
    pub tests: Vec<Test>,
    /// Which lines of the policies the tests reached, file by file.
    pub coverage: Vec<Coverage>,
}

/// One test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Its file.
    pub file: String,
    /// Its line.
    pub line: u64,
    /// Its name.
    pub name: String,
    /// Why it failed.
    pub failure: Option<String>,
}

/// The lines of one policy file that hold something to evaluate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// The file.
    pub file: String,
    /// Lines that were evaluated.
    pub covered: BTreeSet<u64>,
    /// Lines that were not.
    pub missed: BTreeSet<u64>,
}

/// Runs every test. A manifest stands in `data.manifest` as it does for the built-in rules.
pub fn run(
    policies: &[Source],
    tests: &[Source],
    manifest: Option<&Manifest>,
) -> Result<Tested, BundleError> {
    let suite = Suite::of(tests, manifest)?;
    // Said of the policies as they are written.
    drop(engine(policies.iter().chain(tests))?);
    let conditioned: Vec<Source> = policies.iter().map(branches::with_conditions).collect();
    let (tests, engine) = suite.run(&conditioned)?;
    let mut coverage = coverage(policies, &engine)?;
    for (at, (policy, covered)) in policies.iter().zip(&mut coverage).enumerate() {
        for (line, without) in branches::without_defaults(policy) {
            let others = policies.iter().enumerate();
            let others = others.map(|(number, other)| match number == at {
                true => without.clone(),
                false => other.clone(),
            });
            let others: Vec<Source> = others.collect();
            let missed = suite.run(&others).is_ok_and(|(again, _)| again == tests);
            let (to, from) = match missed {
                true => (&mut covered.missed, &mut covered.covered),
                false => (&mut covered.covered, &mut covered.missed),
            };
            from.remove(&line);
            to.insert(line);
        }
    }
    Ok(Tested { tests, coverage })
}

/// The same, for whoever only wants to know whether they pass: what they reach takes much longer to tell.
pub fn results(
    policies: &[Source],
    tests: &[Source],
    manifest: Option<&Manifest>,
) -> Result<Vec<Test>, BundleError> {
    let (tests, _) = Suite::of(tests, manifest)?.run(policies)?;
    Ok(tests)
}

/// Tests, to be run with one set of policies after the other.
struct Suite<'t> {
    tests: &'t [Source],
    outlines: Vec<Outline>,
    manifest: Option<&'t Manifest>,
}

impl<'t> Suite<'t> {
    fn of(tests: &'t [Source], manifest: Option<&'t Manifest>) -> Result<Self, BundleError> {
        Ok(Self {
            tests,
            outlines: tests.iter().map(outline).collect::<Result<_, _>>()?,
            manifest,
        })
    }

    fn run(&self, policies: &[Source]) -> Result<(Vec<Test>, Engine), BundleError> {
        let mut engine = engine(policies.iter().chain(self.tests))?;
        if let Some(manifest) = self.manifest {
            let data = object([("manifest", capability::index(Some(manifest)))]);
            engine
                .add_data(data)
                .map_err(|error| BundleError::Data(error.to_string()))?;
        }
        let outlines = self.outlines.iter();
        let tests = outlines.flat_map(|outline| run_file(outline, &self.outlines, &mut engine));
        Ok((tests.collect(), engine))
    }
}

fn engine<'s>(sources: impl Iterator<Item = &'s Source>) -> Result<Engine, BundleError> {
    let mut engine = Engine::new();
    engine.set_rego_v0(false);
    engine.set_strict_builtin_errors(true);
    engine.set_gather_prints(true);
    engine.set_enable_coverage(true);
    engine.set_execution_timer_config(ExecutionTimerConfig {
        limit: TIME_LIMIT,
        check_interval: CHECK_INTERVAL,
    });
    for source in sources {
        text::add(source, &mut engine)?;
    }
    let tree = engine.get_ast_as_json().ok();
    let syntax = tree.and_then(|tree| inspect::syntax(&tree));
    let syntax = syntax.ok_or_else(|| BundleError::Compile(UNREADABLE.to_owned()))?;
    syntax.check()?;
    Ok(engine)
}

fn run_file(outline: &Outline, all: &[Outline], engine: &mut Engine) -> Vec<Test> {
    let tests = outline.rules.iter().filter(|rule| rule.is_test());
    let count = |name: &str| {
        let together = all.iter().filter(|other| other.package == outline.package);
        together
            .flat_map(|other| &other.rules)
            .filter(|rule| rule.name == name)
            .count()
    };
    let mut failure = |name: &str| match count(name) {
        1 => failure(engine.eval_rule(format!("{}.{name}", outline.package))),
        // Together they would pass if one of them does.
        _ => Some("the name is used more than once".to_owned()),
    };
    let test = |rule: &Rule| Test {
        file: outline.file.clone(),
        line: rule.line,
        name: rule.name.clone(),
        failure: failure(&rule.name),
    };
    tests.map(test).collect()
}

fn failure(result: Result<Value, impl ToString>) -> Option<String> {
    match result {
        Ok(Value::Bool(true)) => None,
        Ok(Value::Undefined) => Some("it is undefined".to_owned()),
        Ok(Value::Bool(false)) => Some("it is false".to_owned()),
        Ok(_) => Some("it is not a boolean".to_owned()),
        Err(error) => Some(Fault::in_text(&error.to_string()).to_string()),
    }
}

fn coverage(policies: &[Source], engine: &Engine) -> Result<Vec<Coverage>, BundleError> {
    let report = engine
        .get_coverage_report()
        .map_err(|error| BundleError::Compile(error.to_string()))?;
    let lines = |lines: &BTreeSet<u32>| lines.iter().copied().map(u64::from).collect();
    policies
        .iter()
        .map(|policy| {
            let file = policy.name.clone();
            match report.files.iter().find(|file| file.path == policy.name) {
                Some(found) => Ok(Coverage {
                    file,
                    covered: lines(&found.covered),
                    missed: lines(&found.not_covered),
                }),
                // A file that nothing reached is left out of the report, which would hide it.
                None => Ok(Coverage {
                    file,
                    covered: BTreeSet::new(),
                    missed: outline(policy)?
                        .rules
                        .iter()
                        .map(|rule| rule.line)
                        .collect(),
                }),
            }
        })
        .collect()
}

const UNREADABLE: &str = "the syntax tree cannot be read";
/// Longer than a decision may take: a test may try many.
const TIME_LIMIT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
