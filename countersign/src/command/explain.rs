//! `countersign explain`

use clap::Args;
use countersign_canon::Json;

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, Table};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign explain C0201
  countersign explain")]
pub(crate) struct Explain {
    /// The code, for example C0201; without one, all codes are listed
    code: Option<String>,
}

impl Explain {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let wanted = self.code.map(|code| code.to_ascii_uppercase());
        let codes: Vec<Code> = Code::ALL
            .iter()
            .copied()
            .filter(|code| wanted.as_deref().is_none_or(|wanted| code.text() == wanted))
            .collect();
        if codes.is_empty() {
            let code = wanted.unwrap_or_default();
            return Err(Failure::new(
                Code::Unknown,
                format!("there is no error code `{code}`"),
            ));
        }
        match format {
            Format::Text => {
                let mut table = Table::new(&["CODE", "EXIT", "WHAT TO DO"]);
                for code in codes {
                    let exit = code.exit().code().to_string();
                    table.own([code.text().to_owned(), exit, code.hint().to_owned()]);
                }
                output::text(&table.text())?;
            }
            Format::Json => {
                let codes = codes.into_iter().map(describe).collect();
                output::json(&Json::object([("codes", Json::Array(codes))]))?;
            }
        }
        Ok(Exit::Done)
    }
}

fn describe(code: Code) -> Json {
    Json::object([
        ("code", Json::from(code.text())),
        ("exit", Json::from(u64::from(code.exit().code()))),
        ("hint", Json::from(code.hint())),
    ])
}
