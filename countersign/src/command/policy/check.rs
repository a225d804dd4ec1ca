//! `countersign policy check`

use clap::Args;
use countersign_canon::{Digest, Json};
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_policy::rego::testing::{Fault, Outline, outline, unknown_calls};
use countersign_policy::rego::{Bundle, NotAdmitted, Source, Value};

use super::{selection, source};
use crate::command::manifest;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
Compiles the built-in rules with the manifest, and your policies. A policy of the package
countersign.capability stands in the place of the built-in rules. Other policies answer at their
rules `decision` and `verdict`, or where --entry says.

The quicker machine evaluates only what it was tried with; everything else is interpreted.

Examples:
  countersign policy check
  countersign policy check policies/ --manifest manifest.yaml
  countersign policy check mine.rego --entry data.mine.allow")]
pub(crate) struct Check {
    /// Policies, or folders of them
    #[arg(value_name = "FILE|DIR")]
    paths: Vec<String>,
    /// The manifest that the rules look things up in
    #[arg(long, value_name = "FILE")]
    manifest: Option<String>,
    /// A rule that answers, as in data.example.verdict
    #[arg(long, value_name = "RULE")]
    entry: Vec<String>,
}

/// One rule that answers, compiled.
struct Compiled {
    name: String,
    entry: String,
    digest: Digest,
    not_admitted: Option<NotAdmitted>,
}

impl Check {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let manifest = self.manifest.as_deref().map(manifest::read).transpose()?;
        let mut compiled = vec![built_in(manifest.as_ref())?];
        let mut faults = Vec::new();
        self.compile(manifest.as_ref(), &mut compiled, &mut faults)?;
        match format {
            Format::Text => output::text(&visible(&text(&compiled, &faults)))?,
            Format::Json => output::json(&json(&compiled, &faults))?,
        }
        Ok(match faults.len() {
            0 => Exit::Done,
            many => {
                Failure::new(Code::Policy, format!("{many} problem(s) in the policies")).report()
            }
        })
    }

    fn compile(
        &self,
        manifest: Option<&Manifest>,
        compiled: &mut Vec<Compiled>,
        faults: &mut Vec<Fault>,
    ) -> Result<(), Failure> {
        let selection = selection::select(&self.paths)?;
        let mut others = Vec::new();
        let mut outlines = Vec::new();
        for path in &selection.policies {
            let source = source(path)?;
            let found = match outline(&source) {
                Ok(found) => found,
                Err(error) => {
                    faults.push(Fault::of(&error, &[source]));
                    continue;
                }
            };
            outlines.push(found.clone());
            if found.package != CAPABILITY {
                others.push((source, found));
                continue;
            }
            match Capability::with_rules(source.clone(), manifest.cloned()) {
                Ok(capability) => compiled.push(of(path.clone(), &capability)),
                Err(error) => faults.push(Fault::of(&error, &[source])),
            }
        }
        for path in &selection.tests {
            let source = source(path)?;
            match outline(&source) {
                Err(error) => faults.push(Fault::of(&error, &[source])),
                Ok(found) => outlines.push(found),
            }
        }
        // With a file missing, the others would be blamed for it.
        if faults.is_empty() {
            faults.extend(unknown_calls(&outlines));
        }
        if faults.is_empty() && !others.is_empty() {
            self.compile_together(&others, compiled, faults);
        }
        Ok(())
    }

    fn compile_together(
        &self,
        files: &[(Source, Outline)],
        compiled: &mut Vec<Compiled>,
        faults: &mut Vec<Fault>,
    ) {
        let sources: Vec<Source> = files.iter().map(|(source, _)| source.clone()).collect();
        let entries = match self.entry.is_empty() {
            true => entries(files),
            false => self
                .entry
                .iter()
                .map(|entry| (entry.clone(), String::new()))
                .collect(),
        };
        if entries.is_empty() {
            faults.extend(files.first().map(|(source, _)| Fault {
                file: source.name.clone(),
                line: 1,
                message:
                    "no rule `decision` or `verdict` answers: name one with --entry".to_owned(),
            }));
        }
        for (entry, file) in entries {
            match Bundle::compile(&sources, Value::new_object(), &entry) {
                Err(error) => faults.push(match Fault::of(&error, &sources) {
                    fault if fault.file.is_empty() => Fault {
                        file: entry,
                        ..fault
                    },
                    fault => fault,
                }),
                Ok(mut bundle) => {
                    // Nobody has said what these policies will be asked.
                    let admission = bundle.admit_machine(&[]);
                    compiled.push(Compiled {
                        name: if file.is_empty() { entry.clone() } else { file },
                        entry,
                        digest: bundle.digest(),
                        not_admitted: admission.err(),
                    });
                }
            }
        }
    }
}

fn built_in(manifest: Option<&Manifest>) -> Result<Compiled, Failure> {
    let capability = Capability::new(manifest.cloned())
        .map_err(|error| Failure::new(Code::Policy, error.to_string()))?;
    Ok(of("the built-in rules".to_owned(), &capability))
}

fn of(name: String, capability: &Capability) -> Compiled {
    Compiled {
        name,
        entry: format!("{CAPABILITY}.decision"),
        digest: capability.digest(),
        not_admitted: capability.not_admitted().cloned(),
    }
}

/// The rules that answer, each with its file.
fn entries(files: &[(Source, Outline)]) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    for (source, outline) in files {
        let answers = outline
            .rules
            .iter()
            .filter(|rule| ANSWERS.contains(&rule.name.as_str()));
        for rule in answers {
            let entry = format!("{}.{}", outline.package, rule.name);
            if entries.iter().all(|(known, _)| *known != entry) {
                entries.push((entry, source.name.clone()));
            }
        }
    }
    entries
}

fn text(compiled: &[Compiled], faults: &[Fault]) -> String {
    let mut lines = Vec::new();
    for one in compiled {
        lines.push(format!("COMPILED ✓  {}", one.name));
        lines.push(format!("  entry    {}", one.entry));
        lines.push(format!("  digest   {}", one.digest));
        lines.push(match &one.not_admitted {
            None => "  machine  admitted".to_owned(),
            Some(reason) => format!("  machine  not used, interpreted: {reason}"),
        });
    }
    lines.extend(faults.iter().map(|fault| format!("FAILED ✗  {fault}")));
    lines.join("\n")
}

fn json(compiled: &[Compiled], faults: &[Fault]) -> Json {
    let reason = |reason: &NotAdmitted| Json::from(reason.to_string());
    let compiled = compiled.iter().map(|one| {
        Json::object([
            ("name", Json::from(one.name.as_str())),
            ("entry", Json::from(one.entry.as_str())),
            ("digest", Json::from(one.digest.to_string())),
            ("machine", Json::from(one.not_admitted.is_none())),
            (
                "not_admitted",
                one.not_admitted.as_ref().map_or(Json::Null, reason),
            ),
        ])
    });
    let problems = faults.iter().map(|fault| {
        Json::object([
            ("file", Json::from(fault.file.as_str())),
            ("line", Json::from(fault.line)),
            ("message", Json::from(fault.message.as_str())),
        ])
    });
    Json::object([
        ("ok", Json::from(faults.is_empty())),
        ("compiled", Json::Array(compiled.collect())),
        ("problems", Json::Array(problems.collect())),
    ])
}

const CAPABILITY: &str = "data.countersign.capability";
const ANSWERS: [&str; 2] = ["decision", "verdict"];
