//! `countersign conformance list`

use clap::Args;
use countersign_canon::Json;
use countersign_conformance::{BUILT_IN, Pack};

use super::pack;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign conformance list
  countersign conformance list --pack approvals")]
pub(crate) struct List {
    /// Only this pack, by its name or from a file
    #[arg(long, value_name = "PACK")]
    pack: Vec<String>,
}

impl List {
    pub(super) fn run(self, format: Format) -> Result<Exit, Failure> {
        let names: Vec<&str> = match self.pack.is_empty() {
            true => BUILT_IN.iter().map(|(name, _)| *name).collect(),
            false => self.pack.iter().map(String::as_str).collect(),
        };
        let packs = names.into_iter().map(pack);
        let packs = packs.collect::<Result<Vec<_>, _>>()?;
        match format {
            Format::Text => {
                let texts: Vec<_> = packs.iter().map(text).collect();
                output::text(&texts.join("\n\n"))?;
            }
            Format::Json => output::json(&Json::Array(packs.iter().map(json).collect()))?,
        }
        Ok(Exit::Done)
    }
}

fn text(pack: &Pack) -> String {
    let (name, about) = (inline(&pack.name), inline(&pack.description));
    let mut lines = vec![format!("{name}: {about} ({} cases)", pack.cases.len())];
    let requirements = pack.requirements.iter();
    lines.extend(requirements.map(|(id, words)| format!("  {id:<8} {}", inline(words))));
    lines.join("\n")
}

fn json(pack: &Pack) -> Json {
    let words = |(id, words): (&String, &String)| (id.clone(), Json::from(words.as_str()));
    let cases = pack.cases.iter().map(|case| {
        Json::object([
            ("id", Json::from(case.id.as_str())),
            ("req_id", Json::from(case.req_id.as_str())),
            ("description", Json::from(case.description.as_str())),
            (
                "expected_failure",
                Json::from(case.expected_failure.clone()),
            ),
        ])
    });
    Json::object([
        ("pack", Json::from(pack.name.as_str())),
        ("version", Json::from(pack.version.as_str())),
        ("description", Json::from(pack.description.as_str())),
        (
            "requirements",
            Json::object(pack.requirements.iter().map(words)),
        ),
        ("tests", Json::Array(cases.collect())),
    ])
}
