//! `countersign manifest validate`

use clap::Args;
use countersign_canon::{Digest, Json};
use countersign_policy::manifest::{Manifest, ManifestError};

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
Reads JSON or YAML of both schemas and lists everything that is wrong, one problem a line, each with
a JSON pointer to its place. Exit code: 3 if a manifest is not valid. A warning on standard error
changes nothing about that.

Examples:
  countersign manifest validate manifest.yaml
  countersign manifest validate */countersign-manifest.yaml --format json")]
pub(crate) struct Validate {
    /// The manifests, or - for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

/// One file: its digest, or what is wrong.
struct Validated<'a> {
    file: &'a str,
    result: Result<(Digest, Option<String>), Vec<Problem>>,
}

/// One thing that is wrong.
struct Problem {
    /// For people, with its place.
    text: String,
    /// A pointer to its place, if there is one.
    pointer: Option<String>,
    message: String,
}

impl Validate {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let validated: Vec<Validated<'_>> = self.files.iter().map(|file| validate(file)).collect();
        match format {
            Format::Text => {
                let lines: Vec<String> = validated.iter().flat_map(text).collect();
                output::text(&lines.join("\n"))?;
            }
            Format::Json => {
                let manifests = validated.iter().map(json).collect();
                output::json(&Json::object([("manifests", Json::Array(manifests))]))?;
            }
        }
        for one in &validated {
            if let Ok((_, Some(doubts))) = &one.result {
                output::stderr(&visible(&format!("warning: {}: {doubts}", one.file)));
            }
        }
        let invalid = validated.iter().filter(|one| one.result.is_err()).count();
        Ok(match invalid {
            0 => Exit::Done,
            _ => {
                let message = format!("{invalid} of {} manifest(s) not valid", validated.len());
                Failure::new(Code::Manifest, message).report()
            }
        })
    }
}

fn validate(file: &str) -> Validated<'_> {
    let result = match super::text(file) {
        Err(failure) => Err(vec![whole(failure.message())]),
        Ok(text) => Manifest::read(&text)
            .map(|manifest| (manifest.digest(), super::doubts(&manifest)))
            .map_err(|error| problems(&error)),
    };
    Validated { file, result }
}

fn problems(error: &ManifestError) -> Vec<Problem> {
    match error.problems() {
        [] => vec![whole(&error.to_string())],
        problems => problems
            .iter()
            .map(|problem| Problem {
                text: problem.to_string(),
                pointer: Some(problem.pointer().to_owned()),
                message: problem.message().to_owned(),
            })
            .collect(),
    }
}

/// A problem of the whole file.
fn whole(message: &str) -> Problem {
    Problem {
        text: message.to_owned(),
        pointer: None,
        message: message.to_owned(),
    }
}

fn text(validated: &Validated<'_>) -> Vec<String> {
    let file = validated.file;
    match &validated.result {
        Ok((digest, _)) => vec![visible(&format!("VALID ✓  {file}  {digest}"))],
        Err(problems) => problems
            .iter()
            .map(|problem| visible(&format!("INVALID ✗  {file}: {}", problem.text)))
            .collect(),
    }
}

fn json(validated: &Validated<'_>) -> Json {
    let problems = match &validated.result {
        Ok(_) => &[],
        Err(problems) => problems.as_slice(),
    };
    let problems = problems.iter().map(|problem| {
        let pointer = problem.pointer.as_deref();
        Json::object([
            ("pointer", pointer.map_or(Json::Null, Json::from)),
            ("message", Json::from(problem.message.as_str())),
        ])
    });
    let digest = validated.result.as_ref().ok().map(|(digest, _)| digest);
    Json::object([
        ("file", Json::from(validated.file)),
        ("ok", Json::from(digest.is_some())),
        (
            "digest",
            digest.map_or(Json::Null, |digest| Json::from(digest.to_string())),
        ),
        ("problems", Json::Array(problems.collect())),
    ])
}
