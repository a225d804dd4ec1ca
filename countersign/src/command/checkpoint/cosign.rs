//! `countersign checkpoint cosign`

use clap::Args;
use countersign_tlog::{Kind, Note};

use super::{json, public, text};
use crate::cli::DataFolder;
use crate::command::trust::Trust;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
A witness looks at a log from time to time and signs that it has only grown. The file is a checkpoint
of this log with the lines that witnesses added; the keys file says whose lines count, one key a line.

Examples:
  countersign checkpoint cosign cosigned.checkpoint --trust witnesses.keys")]
pub(crate) struct Cosign {
    /// The checkpoint with the signatures of witnesses
    file: String,
    /// The keys of the witnesses, one `name+hint+key` a line; each of them must have signed
    #[arg(long, value_name = "KEYS")]
    trust: String,
    #[command(flatten)]
    data: DataFolder,
}

impl Cosign {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let trust = Trust::read(&self.trust)?;
        let witnesses: Vec<_> = trust.of_kind(Kind::Cosignature).cloned().collect();
        if witnesses.is_empty() {
            let message = format!("`{}` holds no key of a witness", self.trust);
            return Err(Failure::new(Code::Trust, message));
        }
        let note = Note::read(&input::file(&self.file, MAX_NOTE)?);
        let note = note
            .map_err(|error| Failure::new(Code::Checkpoint, format!("`{}`: {error}", self.file)))?;
        self.data.reader()?;
        let store = self.data.store()?;
        let published = store.add_cosignatures(&note, &witnesses)?;
        let key = public(&store.reader().log_signer()?);
        match format {
            Format::Text => output::text(&text(&published))?,
            Format::Json => output::json(&json(&published, &key))?,
        }
        Ok(Exit::Done)
    }
}

const MAX_NOTE: usize = 1 << 20;
