//! `countersign policy test`

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use countersign_canon::{Json, Limits};
use countersign_policy::manifest::Manifest;
use countersign_policy::rego::Source;
use countersign_policy::rego::testing::{self, Case, Coverage, Fault};
use countersign_policy::whatif::Desk;

use super::selection::{self, Selection};
use super::{MAX_BYTES, source};
use crate::command::manifest;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format};

mod report;

use report::{Report, Result as Outcome};

#[derive(Args)]
#[command(after_help = "\
Runs every rule test_… of *_test.rego, with the policies that stand in the same folder and those
that are named, and every case of *.json files of the form
  {\"cases\":[{\"id\":\"c1\",\"request\":{\"event\":…,\"snapshot\":…,\"manifest\":…},
             \"expect\":{\"outcome\":\"deny\",\"outcome_not\":\"allow\",\"reason\":…,\"constraints\":…}}]}
A test passes if it is true. Cases are decided by the built-in rules, or by the policy of the
package countersign.capability that stands beside them. Coverage counts the lines of policies that
the rules test_… reach.

Exit code: 3 if a test fails, there is none, or coverage is below the threshold.

Examples:
  countersign policy test policies/ --threshold 95
  countersign policy test mine.rego mine_test.rego cases.json --manifest manifest.yaml
  countersign policy test support/rules --library patterns --library redaction")]
pub(crate) struct Test {
    /// Policies, tests and cases, or folders of them
    #[arg(value_name = "FILE|DIR", default_value = ".")]
    paths: Vec<String>,
    /// Stands in data.manifest, and in cases that bring none
    #[arg(long, value_name = "FILE")]
    manifest: Option<String>,
    /// A module of the policy library that the policies ask for, as an Agent Control manifest names it
    #[arg(long, value_name = "MODULE")]
    library: Vec<String>,
    /// The least part of the lines that must be covered, in per cent
    #[arg(long, value_name = "PCT", value_parser = percentage)]
    threshold: Option<f64>,
}

impl Test {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let report = report(&self.paths, self.manifest.as_deref(), &self.library)?;
        match format {
            Format::Text => output::text(&report.text())?,
            Format::Json => output::json(&report.json())?,
        }
        Ok(match report.verdict(self.threshold) {
            Ok(()) => Exit::Done,
            Err(problem) => Failure::new(Code::Tests, problem).report(),
        })
    }
}

/// Runs the tests of these files, as the command does; tells what it would.
pub(crate) fn tested(paths: &[String], manifest: Option<&str>) -> Result<Json, Failure> {
    Ok(report(paths, manifest, &[])?.json())
}

fn report(paths: &[String], manifest: Option<&str>, library: &[String]) -> Result<Report, Failure> {
    let manifest = manifest.map(manifest::read).transpose()?;
    let selection = selection::select(paths)?;
    let library =
        countersign_acs::library(library).map_err(|problem| Failure::new(Code::Policy, problem))?;
    let mut report = Report::default();
    run_tests(&selection, manifest.as_ref(), &library, &mut report)?;
    run_cases(&selection, manifest.as_ref(), &mut report)?;
    Ok(report)
}

fn run_tests(
    selection: &Selection,
    manifest: Option<&Manifest>,
    library: &[Source],
    report: &mut Report,
) -> Result<(), Failure> {
    let mut groups: BTreeMap<BTreeSet<String>, BTreeSet<&String>> = BTreeMap::new();
    for test in &selection.tests {
        let mut policies = selection::beside(test)?;
        policies.extend(selection.policies.iter().cloned());
        groups.entry(policies).or_default().insert(test);
    }
    for (policies, tests) in groups {
        let mut policies = policies
            .iter()
            .map(|path| source(path))
            .collect::<Result<Vec<_>, _>>()?;
        policies.extend(library.iter().cloned());
        let tests = tests
            .into_iter()
            .map(|path| source(path))
            .collect::<Result<Vec<_>, _>>()?;
        let tested = testing::run(&policies, &tests, manifest).map_err(|error| {
            let fault = Fault::of(&error, &[policies, tests].concat());
            Failure::new(Code::Policy, fault.to_string())
        })?;
        report
            .results
            .extend(tested.tests.into_iter().map(|test| Outcome {
                place: format!("{}:{}", test.file, test.line),
                name: test.name,
                failure: test.failure,
            }));
        // The library has tests of its own.
        let is_own = |file: &Coverage| library.iter().all(|module| module.name != file.file);
        let coverage = tested.coverage.into_iter().filter(is_own);
        coverage.for_each(|file| report.cover(file));
    }
    // A policy without any test is not covered.
    for path in &selection.policies {
        if report.coverage.iter().all(|file| file.file != *path) {
            report.cover(untested(&source(path)?)?);
        }
    }
    Ok(())
}

fn untested(policy: &Source) -> Result<Coverage, Failure> {
    let outline = testing::outline(policy).map_err(|error| {
        let fault = Fault::of(&error, std::slice::from_ref(policy));
        Failure::new(Code::Policy, fault.to_string())
    })?;
    Ok(Coverage {
        file: policy.name.clone(),
        covered: BTreeSet::new(),
        missed: outline.rules.iter().map(|rule| rule.line).collect(),
    })
}

fn run_cases(
    selection: &Selection,
    manifest: Option<&Manifest>,
    report: &mut Report,
) -> Result<(), Failure> {
    for path in selection.cases.iter().chain(&selection.perhaps_cases) {
        let text = input::file(path, MAX_BYTES)?;
        let limits = Limits {
            max_bytes: MAX_BYTES,
            max_depth: 160,
            ..Limits::plan()
        };
        let document = Json::admit(&text, &limits);
        let named = selection.cases.contains(path);
        let holds_cases = document
            .as_ref()
            .is_ok_and(|json| json.get("cases").is_some());
        if !named && !holds_cases {
            continue;
        }
        let malformed = |problem: String| Failure::new(Code::Cases, format!("`{path}`: {problem}"));
        let document = document.map_err(|error| malformed(error.to_string()))?;
        let cases = testing::cases(&document).map_err(|error| malformed(error.to_string()))?;
        let mut desk = desk(path)?;
        report.results.extend(cases.into_iter().map(|case| Outcome {
            place: path.clone(),
            failure: case.failure(&desk.decide(&request(&case, manifest))),
            name: case.id,
        }));
    }
    Ok(())
}

/// The rules that stand beside the cases, or the built-in ones.
fn desk(path: &str) -> Result<Desk, Failure> {
    for policy in selection::beside(path)? {
        let policy = source(&policy)?;
        let is_rules = testing::outline(&policy)
            .is_ok_and(|outline| outline.package == "data.countersign.capability");
        if is_rules {
            return Ok(Desk::with_rules(policy));
        }
    }
    Ok(Desk::default())
}

fn request(case: &Case, manifest: Option<&Manifest>) -> Json {
    let mut request = case.request.clone();
    if let (Some(members), Some(manifest)) = (request.as_object_mut(), manifest)
        && !members.contains_key("manifest")
    {
        members.insert("manifest".to_owned(), manifest.source().clone());
    }
    request
}

fn percentage(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(percentage) if (0.0..=100.0).contains(&percentage) => Ok(percentage),
        _ => Err("not a percentage from 0 to 100".to_owned()),
    }
}
