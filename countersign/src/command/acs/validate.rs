//! `countersign acs validate`

use clap::Args;
use countersign_canon::Json;

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
Reads a manifest with everything that it extends, then reads and compiles the policies that its
points name. Nothing is evaluated. Exit code: 3 if something is not valid.

Examples:
  countersign acs validate agent.yaml
  countersign acs validate */agent.yaml --format json")]
pub(crate) struct Validate {
    /// The manifests
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

/// One manifest: what it governs, or what is wrong.
struct Validated<'a> {
    file: &'a str,
    result: Result<Valid, String>,
}

struct Valid {
    digest: String,
    points: Vec<String>,
}

impl Validate {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let validated: Vec<Validated<'_>> = self.files.iter().map(|file| validate(file)).collect();
        match format {
            Format::Text => {
                let lines: Vec<String> = validated.iter().map(text).collect();
                output::text(&visible(&lines.join("\n")))?;
            }
            Format::Json => {
                let manifests = validated.iter().map(json).collect();
                output::json(&Json::object([("manifests", Json::Array(manifests))]))?;
            }
        }
        let invalid = validated.iter().filter(|one| one.result.is_err()).count();
        Ok(match invalid {
            0 => Exit::Done,
            _ => {
                let message = format!("{invalid} of {} manifest(s) not valid", validated.len());
                Failure::new(Code::AgentControl, message).report()
            }
        })
    }
}

fn validate(file: &str) -> Validated<'_> {
    let valid = || {
        let manifest = super::manifest(file, None)?;
        super::policies(&manifest)?;
        let points = manifest.points().iter();
        Ok::<_, Failure>(Valid {
            digest: manifest.digest().to_string(),
            points: points
                .map(|(point, config)| format!("{point} ({})", config.policy.id))
                .collect(),
        })
    };
    Validated {
        file,
        result: valid().map_err(|failure| failure.message().to_owned()),
    }
}

fn text(validated: &Validated<'_>) -> String {
    match &validated.result {
        Ok(valid) => format!(
            "VALID ✓  {}  {}\n  {}",
            validated.file,
            valid.digest,
            valid.points.join(", ")
        ),
        Err(problem) => {
            let problem = problem.replace('\n', "\n  ");
            format!("INVALID ✗  {}\n  {problem}", validated.file)
        }
    }
}

fn json(validated: &Validated<'_>) -> Json {
    let texts = |texts: Vec<&str>| Json::Array(texts.into_iter().map(Json::from).collect());
    let (digest, points, problems) = match &validated.result {
        Ok(valid) => (
            Json::from(valid.digest.as_str()),
            valid.points.iter().map(String::as_str).collect(),
            Vec::new(),
        ),
        Err(problem) => (Json::Null, Vec::new(), problem.lines().collect()),
    };
    Json::object([
        ("file", Json::from(validated.file)),
        ("ok", validated.result.is_ok().into()),
        ("digest", digest),
        ("points", texts(points)),
        ("problems", texts(problems)),
    ])
}
