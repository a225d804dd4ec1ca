//! `countersign canon`

use std::io::Write as _;

use clap::{Args, ValueEnum};
use countersign_canon::{Hash, Json, Limits};

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::{input, output};

/// Prints the canonical form of JSON, for checking a hash by hand.
#[derive(Args)]
#[command(after_help = "\
Examples:
  echo '{\"b\":1, \"a\":[1.0,1e2]}' | countersign canon
  countersign canon --form ascii --hash plan.json
  countersign canon --lines < values.jsonl")]
pub(crate) struct Canon {
    /// The file, or - for standard input
    #[arg(default_value = "-")]
    file: String,
    /// Which canonical form
    #[arg(long, value_enum, default_value = "jcs")]
    form: Form,
    /// Print the SHA-256 of the form instead of the form
    #[arg(long)]
    hash: bool,
    /// Read one value a line, and print one line for each
    #[arg(long)]
    lines: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// RFC 8785, used for events
    Jcs,
    /// Sorted keys, ASCII only, exact integers; used for plans and audit entries
    Ascii,
}

impl Canon {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut source = input::lines(&self.file)?;
        let mut out = output::stdout();
        if self.lines {
            let limit = Limits::event().max_bytes;
            while let Some(line) = input::next_line(&mut *source, limit)? {
                out.write_all(&self.canonical(&line)?)?;
                out.write_all(b"\n")?;
            }
        } else {
            let limit = Limits::event().max_bytes;
            let text = countersign_canon::read_bounded(source, limit)
                .map_err(|error| Failure::new(Code::TooLarge, format!("the input is {error}")))?;
            out.write_all(&self.canonical(&text)?)?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn canonical(&self, text: &[u8]) -> Result<Vec<u8>, Failure> {
        let form = match self.form {
            Form::Jcs => Json::admit(text, &Limits::event())?.to_jcs()?,
            Form::Ascii => Json::admit(text, &Limits::plan())?.to_sorted_ascii(),
        };
        Ok(if self.hash {
            Hash::of(&form).to_string().into_bytes()
        } else {
            form
        })
    }
}
