//! `countersign checkpoint`

use clap::Subcommand;
use countersign_canon::Json;
use countersign_store::Published;
use countersign_tlog::{Key, Kind, Statement};

use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

mod cosign;
mod publish;
mod rotate;
mod show;
mod write;

pub(crate) use write::Folder;

/// Checkpoints: what the log signs, and what others keep to notice if it changes.
#[derive(Subcommand)]
pub(crate) enum Checkpoint {
    /// Show the last checkpoint and the public key of the log
    Show(show::Show),
    /// Sign a checkpoint of everything that is recorded, and write it out with its tiles
    Publish(publish::Publish),
    /// Give the log a new key
    Rotate(rotate::Rotate),
    /// Add signatures of witnesses to a checkpoint
    Cosign(cosign::Cosign),
}

impl Checkpoint {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Show(show) => show.run(format),
            Self::Publish(publish) => publish.run(format),
            Self::Rotate(rotate) => rotate.run(format),
            Self::Cosign(cosign) => cosign.run(format),
        }
    }
}

/// The note itself, which is what people keep.
fn text(published: &Published) -> String {
    published.note.to_string().trim_end().to_owned()
}

fn json(published: &Published, key: &Key) -> Json {
    let checkpoint = &published.checkpoint;
    let statement = Statement::of(checkpoint);
    let said = |value: Option<String>| value.map_or(Json::Null, Json::from);
    let count = |count: Option<u64>| count.map_or(Json::Null, Json::from);
    let witnesses = published.note.signatures().iter();
    let witnesses = witnesses.filter(|line| line.name != key.name());
    Json::object([
        ("origin", Json::from(checkpoint.origin.as_str())),
        ("size", Json::from(checkpoint.size)),
        ("root", Json::from(checkpoint.root.to_string())),
        (
            "durability",
            said(statement.map(|it| it.durability.to_string())),
        ),
        ("sessions", count(statement.map(|it| it.sessions.count))),
        ("audit_entries", count(statement.map(|it| it.audit.count))),
        (
            "witnesses",
            Json::Array(
                witnesses
                    .map(|line| Json::from(line.name.as_str()))
                    .collect(),
            ),
        ),
        ("note", Json::from(published.note.to_string())),
        ("key", Json::from(key.to_string())),
    ])
}

/// The public key of a log from its private one.
fn public(signer: &countersign_tlog::Signer) -> Key {
    signer.key(Kind::Note)
}
