//! `countersign policy explain`

use clap::Args;
use countersign_canon::Json;
use countersign_policy::Opinion;
use countersign_policy::capability::{Explanation, Judgement, RULES};

use super::call::{self, Call};
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
Takes the same arguments as `countersign policy eval`, and ends with the same exit code.

Examples:
  countersign policy explain --manifest m.yaml --tool mcp.https.post \\
      --args '{\"url\":\"https://example.com/\"}'")]
pub(crate) struct Explain {
    #[command(flatten)]
    call: Call,
}

impl Explain {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let (judgement, opinions) = self.call.judge()?;
        match format {
            Format::Text => {
                let headline = self.call.headline(&judgement);
                output::text(&visible(&text(&headline, &judgement, &opinions)?))?;
            }
            Format::Json => output::json(&json(&judgement, &opinions))?,
        }
        Ok(judgement.verdict.decision().into())
    }
}

fn text(headline: &str, judgement: &Judgement, opinions: &[Opinion]) -> Result<String, Failure> {
    let explanation = &judgement.explanation;
    let mut lines = vec![headline.to_owned(), String::new()];
    lines.push(format!(
        "rule    {}, {}:{}",
        explanation.rule, explanation.file, explanation.line
    ));
    lines.extend(code(explanation).map(|code| format!("        {code}")));
    let mut label = "facts";
    for (name, value) in explanation.facts.as_object().into_iter().flatten() {
        let value = String::from_utf8_lossy(&value.to_jcs()?).into_owned();
        lines.push(format!("{label:6}  {name} = {value}"));
        label = "";
    }
    lines.push(format!("change  {}", explanation.change));
    if !opinions.is_empty() {
        lines.push("beside the rules:".to_owned());
        lines.extend(call::spoken(opinions));
    }
    Ok(lines.join("\n"))
}

/// The line that spoke.
fn code(explanation: &Explanation) -> Option<String> {
    let line = explanation.line.checked_sub(1)?;
    let text = match explanation.file.as_str() {
        "capability.rego" => RULES.to_owned(),
        file => std::fs::read_to_string(file).ok()?,
    };
    text.lines().nth(line).map(str::to_owned)
}

fn json(judgement: &Judgement, opinions: &[Opinion]) -> Json {
    let explanation = &judgement.explanation;
    let mut members = call::members(judgement, opinions);
    let more = [
        ("file", Json::from(explanation.file.as_str())),
        ("line", Json::from(explanation.line as u64)),
        ("facts", explanation.facts.clone()),
        ("change", Json::from(explanation.change.as_str())),
    ];
    for (name, value) in more {
        members.insert(name.to_owned(), value);
    }
    Json::Object(members)
}
