//! `countersign acs test`

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use countersign_acs::Case;
use countersign_canon::{Json, Limits};

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::folder::{self, Extent};
use crate::input;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
Runs cases of the form in which the specification gives its own: a manifest, a snapshot at a point,
what the policy and the annotators say, and what must come out. A *.json file holds one case or an
array of them; in folders, files whose names end in .schema.json are left out. Nobody else is asked.
Exit code: 5 if a case fails, 3 if there is none or one cannot be read.

Examples:
  countersign acs test corpus/acs
  countersign acs test refunds.json --format json")]
pub(crate) struct Test {
    /// Files of cases, or folders of them
    #[arg(value_name = "FILE|DIR", required = true)]
    paths: Vec<String>,
}

/// One case, and everything that is not as it expects.
struct Tested {
    file: String,
    id: String,
    failures: Vec<String>,
}

impl Test {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let mut tested = Vec::new();
        for file in files(&self.paths)? {
            tested.extend(test(&file)?);
        }
        if tested.is_empty() {
            return Err(Failure::new(Code::AgentControlCases, "there is no case"));
        }
        let failed = tested.iter().filter(|one| !one.failures.is_empty()).count();
        match format {
            Format::Text => output::text(&text(&tested, failed))?,
            Format::Json => output::json(&json(&tested, failed))?,
        }
        Ok(match failed {
            0 => Exit::Done,
            _ => {
                let message = format!("{failed} of {} case(s) failed", tested.len());
                Failure::new(Code::AgentControlTests, message).report()
            }
        })
    }
}

/// Every file once, those of folders in byte order.
fn files(paths: &[String]) -> Result<BTreeSet<String>, Failure> {
    let mut files = BTreeSet::new();
    for path in paths {
        if !Path::new(path).is_dir() {
            files.insert(path.clone());
            continue;
        }
        let folder = path.strip_suffix('/').unwrap_or(path);
        let found = folder::walk(Path::new(path), Extent::Sources)?.files;
        let is_case = |file: &String| file.ends_with(".json") && !file.ends_with(".schema.json");
        let found = found.into_iter().filter(is_case);
        files.extend(found.map(|file| format!("{folder}/{file}")));
    }
    Ok(files)
}

fn test(file: &str) -> Result<Vec<Tested>, Failure> {
    let unusable =
        |problem: String| Failure::new(Code::AgentControlCases, format!("`{file}`: {problem}"));
    let document = Json::admit(&input::file(file, LIMITS.max_bytes)?, &LIMITS)
        .map_err(|error| unusable(error.to_string()))?;
    let cases = match &document {
        Json::Array(cases) => cases.as_slice(),
        case => std::slice::from_ref(case),
    };
    let cases = cases.iter().map(|case| Case::read(case).map_err(unusable));
    let tested = cases.map(|case| {
        let case = case?;
        Ok(Tested {
            file: file.to_owned(),
            id: case.id().to_owned(),
            failures: case.failures(),
        })
    });
    tested.collect()
}

fn text(tested: &[Tested], failed: usize) -> String {
    let line = |one: &Tested| match one.failures.is_empty() {
        true => format!("PASSED ✓  {}", one.id),
        false => {
            let failures = one.failures.join("\n").replace('\n', "\n  ");
            format!("FAILED ✗  {}  {}\n  {failures}", one.id, one.file)
        }
    };
    let lines: Vec<String> = tested.iter().map(line).collect();
    let passed = tested.len() - failed;
    format!(
        "{}\n{passed} passed, {failed} failed",
        visible(&lines.join("\n"))
    )
}

fn json(tested: &[Tested], failed: usize) -> Json {
    let cases = tested.iter().map(|one| {
        let failures = one.failures.iter().map(|text| Json::from(text.as_str()));
        Json::object([
            ("file", Json::from(one.file.as_str())),
            ("id", Json::from(one.id.as_str())),
            ("ok", Json::from(one.failures.is_empty())),
            ("failures", Json::Array(failures.collect())),
        ])
    });
    Json::object([
        ("cases", Json::Array(cases.collect())),
        ("passed", Json::from((tested.len() - failed) as u64)),
        ("failed", Json::from(failed as u64)),
    ])
}

const LIMITS: Limits = Limits {
    max_bytes: 16 << 20,
    ..Limits::plan()
};
