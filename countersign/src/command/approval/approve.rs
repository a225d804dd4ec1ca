//! `countersign approval approve`

use clap::Args;
use countersign_approval::Decision;
use countersign_display::View;

use super::card::{Card, check_open};
use super::confirm::{check_code, unconfirmed};
use super::find::find;
use super::sweep::sweep;
use super::{confirm, show, sign};
use crate::cli::DataFolder;
use crate::command::approver::key::KeyOption;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::Format;

#[derive(Args)]
#[command(after_help = "\
In a terminal the whole request is shown first, and then the word `approve` has to be typed; what
was typed before the question appeared is dropped, and Enter alone approves nothing. What cannot
be undone needs its code of 16 digits typed back. Without a terminal --code must give the code
that `countersign approval show` shows: 8 digits, or 16 for what cannot be undone.

Examples:
  countersign approval approve apr_1f2e
  countersign approval approve apr_1f2e --code 9c1d33b0")]
pub(crate) struct Approve {
    /// The approval; the beginning of its id is enough
    #[arg(value_name = "ID")]
    id: String,
    /// The code of the plan, as it was shown to you
    #[arg(long, value_name = "HEX")]
    code: Option<String>,
    #[command(flatten)]
    key: KeyOption,
    #[command(flatten)]
    data: DataFolder,
}

impl Approve {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let file = self.key.file(self.data.folder()?.path())?;
        let desk = self.data.desk()?;
        sweep(&desk)?;
        let key = file.open(&desk.approvers()?)?;
        let card = Card::new(find(&self.id, &desk)?, &desk)?;
        check_open(&card.standing)?;
        match &self.code {
            Some(code) => check_code(code, &card.standing.envelope)?,
            None => {
                desk.note_view(&card.standing, &key.person)?;
                ask(&card)?;
            }
        }
        let decision = Decision::Approved;
        let voted = sign::decide(&decision, &card.standing, &key, &desk)?;
        sign::print(&decision, &voted, &key, format)?;
        Ok(Exit::Done)
    }
}

fn ask(card: &Card) -> Result<(), Failure> {
    let rendering = card.rendering(View::Full)?;
    // FAIL-CLOSED: nobody approves what was not shown.
    if !rendering.is_complete() {
        return Err(unconfirmed("the plan cannot be shown in full".to_owned()));
    }
    let shown = show::text(card, &rendering, View::Full);
    let (question, wanted) = question(card);
    confirm::ask(&shown, &question, &wanted)
}

fn question(card: &Card) -> (String, String) {
    match card.is_irreversible() {
        true => {
            let question = "this cannot be undone; type its code to approve".to_owned();
            (question, card.code())
        }
        false => {
            let question = format!("type `{WORD}` to approve, anything else leaves it");
            (question, WORD.to_owned())
        }
    }
}

const WORD: &str = "approve";
