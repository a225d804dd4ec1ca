//! `countersign approval show`

use clap::Args;
use countersign_approval::State;
use countersign_canon::Json;
use countersign_display::{Rendering, View};
use countersign_engine::Desk;

use super::card::Card;
use super::find::find;
use super::sweep::sweep;
use crate::cli::DataFolder;
use crate::command::approver::key::KeyOption;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
Lines that begin with │ are the plan, character by character; what would not show as itself is
written as ⟨U+XXXX⟩. Lines that begin with ┆ are what the agent says, and nobody has checked it.
That an approver has looked at a request is noted in the audit.

Examples:
  countersign approval show apr_1f2e
  countersign approval show apr_1f2e --full")]
pub(crate) struct Show {
    /// The approval; the beginning of its id is enough
    #[arg(value_name = "ID")]
    id: String,
    /// Show long texts in full
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    key: KeyOption,
    #[command(flatten)]
    data: DataFolder,
}

impl Show {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let desk = self.data.desk()?;
        sweep(&desk)?;
        let card = Card::new(find(&self.id, &desk)?, &desk)?;
        self.note(&card, &desk)?;
        let view = match self.full {
            true => View::Full,
            false => View::Summary,
        };
        let rendering = card.rendering(view)?;
        match format {
            Format::Text => output::text(&text(&card, &rendering, view))?,
            Format::Json => output::json(&json(&card, &rendering, view))?,
        }
        Ok(Exit::Done)
    }

    /// That an approver has looked at what is held is worth knowing. Others may look too.
    fn note(&self, card: &Card, desk: &Desk) -> Result<(), Failure> {
        let file = self.key.file(self.data.folder()?.path());
        let approvers = desk.approvers()?;
        match file.and_then(|file| file.open(&approvers)) {
            Ok(key) if card.standing.row.state == State::Pending => {
                Ok(desk.note_view(&card.standing, &key.person)?)
            }
            _ => Ok(()),
        }
    }
}

/// Everything that is shown, as text. Nothing in it needs escaping: each part is made for a terminal.
pub(super) fn text(card: &Card, rendering: &Rendering, view: View) -> String {
    let mut text = card.facts(rendering.is_complete()).join("\n");
    text.push_str("\n\n");
    text.push_str(rendering.text());
    if let Some(said) = card.said(view) {
        text.push('\n');
        text.push_str(said.text());
    }
    text.trim_end().to_owned()
}

fn json(card: &Card, rendering: &Rendering, view: View) -> Json {
    let (envelope, row) = (&card.standing.envelope, &card.standing.row);
    let votes = card.tally.votes.iter().map(|vote| {
        let approved = vote.decisions.iter().all(|it| it.is_approved());
        let reason = vote.decisions.iter().find_map(|it| it.reason());
        Json::object([
            ("approver", Json::from(vote.approver.to_string())),
            ("approved", Json::from(approved)),
            (
                "reason",
                reason.map_or(Json::Null, |reason| Json::from(reason.as_str())),
            ),
            ("at_ms", Json::from(vote.at.get())),
        ])
    });
    let hash = envelope.plan().hash();
    let said = card.said(view);
    Json::object([
        ("approval_id", Json::from(envelope.id().to_string())),
        ("state", Json::from(row.state.as_str())),
        ("plan_hash", Json::from(hash.to_string())),
        ("short_code", Json::from(hash.short())),
        ("irreversible", Json::from(card.is_irreversible())),
        ("complete", Json::from(rendering.is_complete())),
        ("why", card.why.as_deref().map_or(Json::Null, Json::from)),
        (
            "display_sha256",
            Json::from(rendering.display_sha256().to_string()),
        ),
        ("display", Json::from(rendering.text())),
        (
            "agent_says_unverified",
            said.map_or(Json::Null, |said| Json::from(said.text())),
        ),
        ("votes", Json::Array(votes.collect())),
        ("required", Json::from(card.tally.required as u64)),
        // As text: what reads it must not round its numbers.
        (
            "envelope",
            Json::from(String::from_utf8_lossy(&envelope.to_text()).as_ref()),
        ),
    ])
}
