//! `countersign evidence compare`

use clap::Args;
use countersign_canon::Json;
use countersign_evidence::state::{Comparability, Sides, StateDigest, compare_with};

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
Each argument is what `countersign evidence state` prints: digest, state_digest_kind and
state_digest_coverage, as JSON, @FILE or - for standard input. The answer is one of three: comparable, not
comparable (why), comparable under a named assumption (which).

Examples:
  countersign evidence compare @one.json @other.json
  countersign evidence compare @before.json @after.json --before-and-after")]
pub(crate) struct Compare {
    /// One digest
    one: String,
    /// The other
    other: String,
    /// They are before and after one action, not the same side of two records
    #[arg(long)]
    before_and_after: bool,
    /// Accept that this vendor says when two states of its kind are equal
    #[arg(long, value_name = "NAMESPACE@VERSION")]
    vendor: Vec<String>,
}

impl Compare {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let sides = match self.before_and_after {
            true => Sides::BeforeAndAfter,
            false => Sides::Same,
        };
        let (one, other) = (state(&self.one)?, state(&self.other)?);
        let vendors: Result<Vec<_>, Failure> = self.vendor.iter().map(|it| vendor(it)).collect();
        let found = compare_with(&one, &other, sides, &vendors?);
        let (word, reasons): (&str, Vec<String>) = match &found {
            Comparability::Comparable => ("comparable", Vec::new()),
            Comparability::NotComparable(why) => (
                "not comparable",
                why.iter().map(ToString::to_string).collect(),
            ),
            Comparability::Under(assumptions) => {
                let assumptions = assumptions.iter().map(ToString::to_string);
                ("comparable under an assumption", assumptions.collect())
            }
        };
        // Equal digests of what is not comparable say nothing.
        let equal = match &found {
            Comparability::NotComparable(_) => None,
            _ => Some(one.digest == other.digest),
        };
        match format {
            Format::Text => {
                let equal = equal.map_or("", |equal| if equal { ", equal" } else { ", different" });
                let mut lines = vec![format!("{word}{equal}")];
                lines.extend(reasons.iter().map(|reason| format!("  {reason}")));
                output::text(&lines.join("\n"))?;
            }
            Format::Json => output::json(&Json::object([
                ("answer", Json::from(word)),
                (
                    "because",
                    Json::Array(reasons.into_iter().map(Json::from).collect()),
                ),
                ("equal", Json::from(equal)),
                ("rule", Json::from(sides.as_str())),
            ]))?,
        }
        Ok(Exit::Done)
    }
}

fn vendor(argument: &str) -> Result<(&str, &str), Failure> {
    argument.split_once('@').ok_or_else(|| {
        let message = format!("--vendor: `{argument}` is not NAMESPACE@VERSION");
        Failure::new(Code::State, message)
    })
}

fn state(argument: &str) -> Result<StateDigest, Failure> {
    let json = input::json_argument(argument)?;
    let digest = json.get("digest").and_then(Json::as_str);
    let digest = digest.ok_or_else(|| Failure::new(Code::State, "there is no `digest`"))?;
    let (state, problems) = StateDigest::read(
        digest,
        json.get("state_digest_kind"),
        json.get("state_digest_coverage"),
    );
    match problems.first() {
        None => Ok(state),
        Some(problem) => Err(Failure::new(Code::State, problem.to_string())),
    }
}
