//! `countersign acs explain`

use clap::Args;
use countersign_acs::{Evaluation, Runtime};
use countersign_canon::{Json, Object};

use super::eval::inline;
use super::question::{self, Question};
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
Takes the same arguments as `countersign acs eval`, and ends with the same exit code.

Examples:
  countersign acs explain agent.yaml --point output --snapshot '{\"response\":{\"content\":\"hi\"}}'")]
pub(crate) struct Explain {
    #[command(flatten)]
    question: Question,
}

impl Explain {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let asked = self.question.ask()?;
        let found = asked.answer();
        let facts = facts(asked.runtime(), &found);
        match format {
            Format::Text => {
                let mut lines = vec![question::headline(&found), String::new()];
                let facts = facts.iter().map(|(name, value)| {
                    let value = value.as_str().map_or_else(|| inline(value), str::to_owned);
                    format!("{name:10}  {value}")
                });
                lines.extend(facts);
                output::text(&visible(&lines.join("\n")))?;
            }
            Format::Json => {
                let mut members = match found.to_json() {
                    Json::Object(members) => members,
                    _ => Object::new(),
                };
                let facts = facts.into_iter();
                let facts = facts.map(|(name, value)| (name.to_owned(), value));
                members.insert("explanation".to_owned(), Json::object(facts));
                output::text(&inline(&Json::Object(members)))?;
            }
        }
        Ok(found.verdict().decision().into())
    }
}

/// What was asked, what was seen, and who spoke.
fn facts(runtime: &Runtime, found: &Evaluation<'_>) -> Vec<(&'static str, Json)> {
    let mut facts = Vec::new();
    let mut add = |name, value: Option<Json>| facts.extend(value.map(|value| (name, value)));
    let config = runtime.manifest().points().get(&found.point());
    add("target", config.map(|config| config.target.as_str().into()));
    let input = found.input();
    add("value", input.map(|input| input.target().clone()));
    let tool = input.map(|input| input.tool());
    add("tool", tool.filter(|tool| !tool.is_null()).cloned());
    for (name, said) in input.into_iter().flat_map(|input| input.annotations()) {
        add(
            "annotator",
            Some(format!("{name} = {}", inline(said)).into()),
        );
    }
    let policy = config.and_then(|config| {
        let id = config.policy.id.as_str();
        let policy = runtime.manifest().policies().get(id)?;
        Some(Json::from(format!("{id} ({})", policy.kind())))
    });
    add("policy", policy);
    let verdict = found.verdict();
    add("message", verdict.message().map(Json::from));
    add("problem", found.detail().map(Json::from));
    add("becomes", found.transformed().cloned());
    let labels = verdict.result_labels();
    let labels = (!labels.is_empty()).then(|| labels.join(", ").into());
    add("labels", labels);
    if let Some(both) = found.identities() {
        add("judged", Some(both.input.to_string().into()));
        add("enforced", Some(both.enforced.to_string().into()));
    }
    facts
}
