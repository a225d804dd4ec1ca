//! `countersign evidence aep`

use std::io::Write as _;

use clap::Args;
use countersign_evidence::aep::{self, Form, Run};

use super::session::{Session, Signer};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output;

#[derive(Args)]
#[command(after_help = "\
One record a line, one action a record, each linked to the one before it: which authority was
available (policies, leases, approval), which was exercised, and what changed between approval and
execution. Arguments and results appear as digests. The same events give the same bytes.

The key is made in the data folder at the first use (evidence.key); its name and public half are
printed on standard error, as `countersign evidence check --key` takes them.

Examples:
  countersign evidence aep --session s1 > s1.aep.jsonl
  countersign evidence aep --session s1 --dsse
  countersign evidence aep --session s1 --unsigned | countersign evidence check -")]
pub(crate) struct Aep {
    #[command(flatten)]
    session: Session,
    /// Sign as DSSE envelopes (aep/v0.4) instead of inside the record (aep/v0.3)
    #[arg(long, conflicts_with = "unsigned")]
    dsse: bool,
    /// Do not sign
    #[arg(long)]
    unsigned: bool,
}

impl Aep {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let events = self.session.events()?;
        let session = aep::session(&self.session.session, &events);
        let form = match self.dsse {
            true => Form::Dsse,
            false => Form::Inline,
        };
        let signer = match self.unsigned {
            true => None,
            false => Some(Signer::open(&self.session.folder()?)?),
        };
        let mut run = Run::new(self.session.session.as_str(), form);
        let mut out = output::stdout();
        for (action, surroundings) in &session.actions {
            let unwritten = |error: aep::WriteError| Failure::new(Code::Damaged, error.to_string());
            let record = run.record(action, surroundings).map_err(unwritten)?;
            let record = match &signer {
                Some(signer) => record
                    .sign(&signer.key, &signer.key_id)
                    .map_err(unwritten)?,
                None => record.into_json(),
            };
            let mut line = record.to_jcs()?;
            line.push(b'\n');
            out.write_all(&line)?;
        }
        out.flush()?;
        if let Some(signer) = &signer {
            output::stderr(&format!("signed by {}", signer.public()));
        }
        Ok(Exit::Done)
    }
}
