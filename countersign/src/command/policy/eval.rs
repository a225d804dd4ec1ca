//! `countersign policy eval`

use clap::Args;
use countersign_canon::Json;

use super::call::{self, Call};
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
Nothing is recorded and nothing runs. Paths are judged by their letters: links are not followed.
Exit code: 0 allow, 2 deny, 4 held for a human.

Examples:
  countersign policy eval --manifest m.yaml --tool read_file --args '{\"path\":\"/data/a\"}'
  countersign policy eval --manifest m.yaml --tool exec --args @args.json \\
      --snapshot '{\"is_tainted\":true}'")]
pub(crate) struct Eval {
    #[command(flatten)]
    call: Call,
}

impl Eval {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let (judgement, opinions) = self.call.judge()?;
        match format {
            Format::Text => {
                let mut lines = vec![self.call.headline(&judgement)];
                lines.extend(call::spoken(&opinions));
                output::text(&visible(&lines.join("\n")))?;
            }
            Format::Json => output::json(&Json::Object(call::members(&judgement, &opinions)))?,
        }
        Ok(judgement.verdict.decision().into())
    }
}
