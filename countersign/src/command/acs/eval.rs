//! `countersign acs eval`

use clap::Args;
use countersign_canon::Json;

use super::question::{self, Question};
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
Nothing is recorded and nothing runs, but annotators and adapters of the manifest are asked. With
--format json: the verdict, the changed target, the policy input and the identities.
Exit code: 0 allow, warn or transform, 2 deny, 4 held for a human, 3 if the manifest is not valid.

Examples:
  countersign acs eval agent.yaml --point input --snapshot '{\"input\":{\"text\":\"hello\"}}'
  countersign acs eval agent.yaml --point pre_tool_call --snapshot @call.json --format json")]
pub(crate) struct Eval {
    #[command(flatten)]
    question: Question,
}

impl Eval {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let asked = self.question.ask()?;
        let found = asked.answer();
        match format {
            Format::Text => {
                let mut lines = vec![question::headline(&found)];
                lines.extend(found.verdict().message().map(|text| format!("  {text}")));
                if let Some(target) = found.transformed() {
                    lines.push(format!("  becomes {}", inline(target)));
                }
                output::text(&visible(&lines.join("\n")))?;
            }
            Format::Json => output::text(&inline(&found.to_json()))?,
        }
        Ok(found.verdict().decision().into())
    }
}

/// In its canonical text, which keeps integers of any size.
pub(super) fn inline(json: &Json) -> String {
    String::from_utf8_lossy(&json.to_sorted()).into_owned()
}
