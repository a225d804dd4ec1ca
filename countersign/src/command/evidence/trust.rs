//! `countersign evidence trust`

use clap::Args;
use countersign_evidence::aep;
use countersign_evidence::trust::{Inputs, Score, score};

use super::check::{MAX_FILE, keys, records};
use super::envelope::wrong;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format, Table};

#[derive(Args)]
#[command(after_help = "\
Twelve dimensions from 0 to 1; overall is the geometric mean of those that are known. Evidence that is not
signed by a key that you give, that contradicts itself, or whose chain is not intact is not graded. A
denial that held costs nothing. What no record holds is missing unless you give it with --input.

Examples:
  countersign evidence trust records.jsonl --key node-1=… --input task_success=1")]
pub(crate) struct Trust {
    /// The file, or - for standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// A public key that you trust, by the name that records use
    #[arg(long = "key", value_name = "KEY_ID=HEX")]
    keys: Vec<String>,
    /// A dimension that no record holds
    #[arg(long = "input", value_name = "DIMENSION=VALUE")]
    inputs: Vec<String>,
}

impl Trust {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let keys = keys(&self.keys)?;
        let mut inputs = Inputs::default();
        for argument in &self.inputs {
            let (name, value) = argument.split_once('=').ok_or_else(|| wrong(argument))?;
            let value = value.parse().map_err(|_| wrong(argument))?;
            inputs
                .add(name, value)
                .map_err(|error| Failure::new(Code::SideDocument, error.to_string()))?;
        }
        let text = input::file(&self.file, MAX_FILE)?;
        let records = records(&self.file, &text);
        let score = score(&records, &aep::check(&records, &keys), &inputs);
        match format {
            Format::Text => output::text(&describe(&score))?,
            Format::Json => output::json(&score.to_json())?,
        }
        Ok(Exit::Done)
    }
}

fn describe(score: &Score) -> String {
    let mut table = Table::new(&["DIMENSION", "VALUE"]);
    for (dimension, value) in &score.dimensions {
        let value = value.map_or("missing".to_owned(), |value| format!("{value:.4}"));
        table.row([dimension.to_string(), value]);
    }
    let overall = score.overall;
    let overall = overall.map_or("none".to_owned(), |overall| format!("{overall:.4}"));
    let mut lines = vec![table.text(), String::new()];
    lines.push(format!("grade {}, overall {overall}", score.grade));
    lines.extend(score.against.iter().map(|reason| format!("  ✗ {reason}")));
    lines.join("\n")
}
