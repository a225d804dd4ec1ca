//! `countersign evidence export`

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use countersign_event::Scope;
use countersign_evidence::Event;
use countersign_evidence::cloudevents::{CloudEvent, Converter, Producer, bundle};
use countersign_redact::Redactor;

use super::session::{Session, Signer};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output;

/// A format of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// CloudEvents 1.0, one event a line.
    CloudEvents,
    /// An archive that the tools of Assay verify.
    AssayBundle,
}

#[derive(Args)]
#[command(after_help = "\
--format cloudevents (the default here) writes CloudEvents 1.0, one event a line. --format assay-bundle
writes an archive with a manifest, which `assay evidence verify` checks. The same events give the same
bytes. Names and digests leave as they are, arguments and messages without secrets and generalised;
prompts, results, tokens and what people signed do not leave, and `data.dropped` names them.

Examples:
  countersign evidence export --session s1 --format cloudevents > s1.ndjson
  countersign evidence export --session s1 --format assay-bundle --out s1.tar.gz")]
pub(crate) struct Export {
    #[command(flatten)]
    session: Session,
    /// Write to a new file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Export {
    pub(crate) fn run(self, exchange: Option<Exchange>) -> Result<Exit, Failure> {
        let producer = Signer::open(&self.session.folder()?)?.producer();
        let events = convert(&self.session.scope()?, &self.session.events()?, &producer)?;
        let bytes = match exchange {
            Some(Exchange::AssayBundle) => bundle(&events, &producer)
                .map_err(|error| Failure::new(Code::Bundle, error.to_string()))?,
            Some(Exchange::CloudEvents) | None => lines(&events)?,
        };
        match &self.out {
            None => {
                let mut out = output::stdout();
                out.write_all(&bytes)?;
                out.flush()?;
            }
            Some(path) => {
                let written = File::create_new(path).and_then(|mut file| file.write_all(&bytes));
                written.map_err(|error| {
                    let message = format!("cannot write `{}`: {error}", path.display());
                    Failure::new(Code::Output, message)
                })?;
            }
        }
        Ok(Exit::Done)
    }
}

/// The events of a session as CloudEvents.
pub(super) fn convert(
    scope: &Scope,
    events: &[Event],
    producer: &Producer,
) -> Result<Vec<CloudEvent>, Failure> {
    let mut converter = Converter::new(scope, producer.clone(), Redactor::default());
    let mut converted = Vec::with_capacity(events.len() + 1);
    for event in events {
        converted.extend(converter.convert(event)?);
    }
    Ok(converted)
}

fn lines(events: &[CloudEvent]) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    for event in events {
        event.to_json().write_jcs(&mut text)?;
        text.push(b'\n');
    }
    Ok(text)
}
