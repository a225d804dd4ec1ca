//! `countersign log export`

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use countersign_event::{SessionId, TenantId};
use countersign_store::Filter;

use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input::{to_standard_output, uncreated};
use crate::output;

#[derive(Args)]
#[command(after_help = "\
Each line is the canonical JSON of one event: exactly the hashed fields plus `hash`. Sealed members
appear as commitments; no content leaves the log. Check an export with `countersign verify FILE`.

Examples:
  countersign log export --session s1 > s1.jsonl
  countersign log export --out everything.jsonl")]
pub(crate) struct Export {
    #[command(flatten)]
    data: DataFolder,
    /// Only events of this tenant [default: `default` with --session, else all]
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Only events of this session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Write to a new file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Export {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let filter = self.filter()?;
        let reader = self.data.reader()?;
        if let Some(session) = &self.session
            && reader.last(&filter, 1)?.is_empty()
        {
            let message = format!("no session `{session}`");
            return Err(Failure::new(Code::NoSession, message));
        }
        let mut out = self.output()?;
        reader.each(&filter, 0, |event| {
            out.write_all(&event.line)?;
            Ok::<_, Failure>(out.write_all(b"\n")?)
        })?;
        out.flush()?;
        Ok(Exit::Done)
    }

    fn filter(&self) -> Result<Filter, Failure> {
        let default = self.session.is_some().then(|| "default".to_owned());
        Ok(Filter {
            tenant: self
                .tenant
                .clone()
                .or(default)
                .map(TenantId::new)
                .transpose()?,
            session: self.session.clone().map(SessionId::new).transpose()?,
            ..Filter::default()
        })
    }

    /// Never writes over a file: what is there may be somebody's only copy.
    fn output(&self) -> Result<Box<dyn Write>, Failure> {
        match self.out.as_deref().filter(|out| !to_standard_output(out)) {
            None => Ok(Box::new(output::stdout())),
            Some(path) => {
                let file = File::create_new(path).map_err(|error| uncreated(path, &error))?;
                Ok(Box::new(BufWriter::new(file)))
            }
        }
    }
}
