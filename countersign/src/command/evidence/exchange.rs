//! `countersign evidence export --format cloudevents|assay-bundle`

use std::io::Write as _;
use std::path::PathBuf;

use countersign_event::Scope;
use countersign_evidence::Event;
use countersign_evidence::cloudevents::{CloudEvent, Converter, Producer, bundle};
use countersign_redact::Redactor;

use super::session::{Session, Signer};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::folder;
use crate::output;

/// A format of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// CloudEvents 1.0, one event a line.
    CloudEvents,
    /// An archive that the tools of Assay verify.
    AssayBundle,
}

/// The events of a session, in a format of others.
pub(super) struct Export {
    pub(super) session: Session,
    /// A new file instead of standard output.
    pub(super) out: Option<PathBuf>,
}

impl Export {
    pub(super) fn run(self, exchange: Exchange) -> Result<Exit, Failure> {
        let producer = Signer::open(&self.session.folder()?)?.producer();
        let events = convert(&self.session.scope()?, &self.session.events()?, &producer)?;
        let bytes = match exchange {
            Exchange::AssayBundle => bundle(&events, &producer)
                .map_err(|error| Failure::new(Code::Bundle, error.to_string()))?,
            Exchange::CloudEvents => lines(&events)?,
        };
        match &self.out {
            None if exchange == Exchange::AssayBundle => output::binary(&bytes)?,
            None => {
                let mut out = output::stdout();
                out.write_all(&bytes)?;
                out.flush()?;
            }
            Some(path) => folder::create(path, &bytes)?,
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
