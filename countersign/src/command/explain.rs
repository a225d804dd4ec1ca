//! `countersign explain`

use clap::Args;
use countersign_canon::Json;

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, Table};

mod reasons;

use reasons::{REASONS, Reason};

#[derive(Args)]
#[command(after_help = "\
Error codes are what commands of this program end with; reasons are what agents and people read when a call does
not run. A policy of your own can give reasons that are not in the list.

Examples:
  countersign explain C0201
  countersign explain TOOL_CHANGED
  countersign explain")]
pub(crate) struct Explain {
    /// The code or the reason, for example C0201 or TOOL_CHANGED; without one, all are listed
    code: Option<String>,
}

impl Explain {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let wanted = self.code.map(|code| code.to_ascii_uppercase());
        let is_wanted = |text: &str| wanted.as_deref().is_none_or(|wanted| text == wanted);
        let codes = Code::ALL.iter().copied();
        let codes: Vec<Code> = codes.filter(|code| is_wanted(code.text())).collect();
        let reasons = REASONS.iter();
        let reasons: Vec<_> = reasons.filter(|reason| is_wanted(reason.name)).collect();
        if codes.is_empty() && reasons.is_empty() {
            let code = wanted.unwrap_or_default();
            let text = format!("`{code}` is no error code, and no reason of ours");
            return Err(Failure::new(Code::Unknown, text));
        }
        match format {
            Format::Text => output::text(&shown(&codes, &reasons))?,
            Format::Json => {
                let codes = codes.into_iter().map(describe).collect();
                let reasons = reasons.into_iter().map(describe_reason).collect();
                output::json(&Json::object([
                    ("codes", Json::Array(codes)),
                    ("reasons", Json::Array(reasons)),
                ]))?;
            }
        }
        Ok(Exit::Done)
    }
}

fn shown(codes: &[Code], reasons: &[&Reason]) -> String {
    let mut tables = Vec::new();
    if !codes.is_empty() {
        let mut table = Table::new(&["CODE", "EXIT", "WHAT TO DO"]);
        for code in codes {
            let exit = code.exit().code().to_string();
            table.own([code.text().to_owned(), exit, code.hint().to_owned()]);
        }
        tables.push(table.text());
    }
    if !reasons.is_empty() {
        let mut lines = vec![format!("{:<WIDTH$}WHY, AND WHAT TO DO", "REASON")];
        for reason in reasons {
            lines.push(format!("{:<WIDTH$}{}", reason.name, reason.why));
            lines.push(format!("{:<WIDTH$}{}", "", reason.hint));
        }
        tables.push(lines.join("\n"));
    }
    tables.join("\n\n")
}

fn describe_reason(reason: &Reason) -> Json {
    Json::object([
        ("reason", Json::from(reason.name)),
        ("why", Json::from(reason.why)),
        ("hint", Json::from(reason.hint)),
    ])
}

fn describe(code: Code) -> Json {
    Json::object([
        ("code", Json::from(code.text())),
        ("exit", Json::from(u64::from(code.exit().code()))),
        ("hint", Json::from(code.hint())),
    ])
}

/// Where what is said about a reason begins.
const WIDTH: usize = 24;
