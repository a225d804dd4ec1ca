//! `countersign evidence`

use clap::Subcommand;

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

pub(crate) use exchange::Exchange;
pub(crate) use export::session_pack;
pub(crate) use state::{Observed, States};

mod account;
mod aep;
mod check;
mod compare;
mod disclose;
mod envelope;
mod exchange;
mod export;
mod pack;
mod push;
mod session;
mod state;
mod trust;

/// Evidence.
#[derive(Subcommand)]
pub(crate) enum Evidence {
    /// Print what a session did as records of the Agent Evidence Protocol
    Aep(aep::Aep),
    /// Check records of the Agent Evidence Protocol, ours or anybody's
    Check(check::Check),
    /// Write an evidence pack, or the events of a session in a format of others
    Export(export::Export),
    /// Send the events of a session to an endpoint for CloudEvents
    Push(push::Push),
    /// Print the decision envelope of each action of records
    Envelope(envelope::Envelope),
    /// Digest a state with its coverage, for records
    #[command(subcommand)]
    State(state::State),
    /// Say whether two digests of state may be held against each other
    Compare(compare::Compare),
    /// Score how far the run of some records can be trusted
    Trust(trust::Trust),
}

impl Evidence {
    pub(crate) fn run(self, format: Format, exchange: Option<Exchange>) -> Result<Exit, Failure> {
        match self {
            Self::Aep(aep) => aep.run(),
            Self::Check(check) => check.run(format),
            Self::Export(export) => export.run(format, exchange),
            Self::Push(push) => push.run(format),
            Self::Envelope(envelope) => envelope.run(),
            Self::State(state) => state.run(),
            Self::Compare(compare) => compare.run(format),
            Self::Trust(trust) => trust.run(format),
        }
    }
}
