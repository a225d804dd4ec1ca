//! `countersign prove`

use clap::Args;
use countersign_canon::Json;
use countersign_store::{Published, Reader, Stored};
use countersign_tlog::ProofFile;

use super::log::view;
use crate::cli::{DataFolder, Tenant};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
Prints the path from the event to the root of a signed checkpoint, as a tlog-proof file that others can
check too: the entry of the log is the event's hash, 32 bytes. The event must be covered by a
checkpoint: `countersign checkpoint publish` makes one.

Examples:
  countersign prove 3f2a91c4d0 > event.tlog-proof
  countersign prove --session s1 --seq 4 --format json")]
pub(crate) struct Prove {
    /// The hash of the event, or at least its first 8 digits
    #[arg(conflicts_with_all = ["session", "seq"])]
    hash: Option<String>,
    #[command(flatten)]
    tenant: Tenant,
    /// The session
    #[arg(long, value_name = "SESSION", requires = "seq")]
    session: Option<String>,
    /// The sequence number in the session
    #[arg(long, value_name = "N", requires = "session")]
    seq: Option<u64>,
    #[command(flatten)]
    data: DataFolder,
}

impl Prove {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let reader = self.data.reader()?;
        let event = self.find(&reader)?;
        let (published, proof) = prove(&event, &reader)?;
        match format {
            Format::Text => output::text(proof.to_string().trim_end())?,
            Format::Json => output::json(&json(&event, &published, &proof)?)?,
        }
        Ok(Exit::Done)
    }

    fn find(&self, reader: &Reader) -> Result<Stored, Failure> {
        match (&self.session, self.seq) {
            (Some(session), Some(seq)) => {
                let found = reader.event(&self.tenant.scope(session)?, seq)?;
                let message = format!("session `{session}` has no event {seq}");
                found.ok_or_else(|| Failure::new(Code::NoEvent, message))
            }
            _ => super::log::by_prefix(self.hash.as_deref(), reader),
        }
    }
}

/// The proof against the newest checkpoint.
fn prove(event: &Stored, reader: &Reader) -> Result<(Published, ProofFile), Failure> {
    let published = reader.last_checkpoint()?;
    let published = published.filter(|last| last.checkpoint.size >= event.id);
    let published = published.ok_or_else(|| {
        let message = "no checkpoint covers this event yet";
        Failure::new(Code::Unpublished, message)
    })?;
    let index = event.id.saturating_sub(1);
    let path = reader.prove_inclusion(index, published.checkpoint.size)?;
    let proof = ProofFile {
        extra: None,
        index,
        path,
        note: published.note.clone(),
    };
    Ok((published, proof))
}

fn json(event: &Stored, published: &Published, proof: &ProofFile) -> Result<Json, Failure> {
    let path = proof.path.iter().map(|hash| Json::from(hash.to_string()));
    Ok(Json::object([
        ("event", Json::from(view::read(event)?.hash.to_string())),
        ("index", Json::from(proof.index)),
        ("size", Json::from(published.checkpoint.size)),
        ("root", Json::from(published.checkpoint.root.to_string())),
        ("path", Json::Array(path.collect())),
        ("checkpoint", Json::from(published.note.to_string())),
    ]))
}
