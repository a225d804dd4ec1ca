//! `countersign approval approve`

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::Args;
use countersign_approval::Decision;
use countersign_display::View;

use super::card::{Card, check_open};
use super::find::find;
use super::{show, sign};
use crate::cli::DataFolder;
use crate::command::approver::key::KeyOption;
use crate::errors::{Code, Failure};
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
        desk.sweep()?;
        let key = file.open(&desk.approvers()?)?;
        let card = Card::new(find(&self.id, &desk)?, &desk)?;
        check_open(&card.standing)?;
        match &self.code {
            Some(code) => check_code(code, &card)?,
            None => ask(&card)?,
        }
        let decision = Decision::Approved;
        let voted = sign::decide(&decision, &card.standing, &key, &desk)?;
        sign::print(&decision, &voted, &key, format)?;
        Ok(Exit::Done)
    }
}

/// Whoever gives the code has seen this very plan.
fn check_code(given: &str, card: &Card) -> Result<(), Failure> {
    let wanted = card.code();
    match given == wanted {
        true => Ok(()),
        false if card.is_irreversible() && wanted.starts_with(given) => Err(unconfirmed(format!(
            "this cannot be undone: give all {} digits of the code",
            wanted.len()
        ))),
        false => Err(unconfirmed(format!(
            "`{given}` is not the code of this plan"
        ))),
    }
}

fn ask(card: &Card) -> Result<(), Failure> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(unconfirmed(
            "there is no terminal to ask in: give the code of the plan with --code".to_owned(),
        ));
    }
    let rendering = card.rendering(View::Full)?;
    // FAIL-CLOSED: nobody approves what was not shown.
    if !rendering.is_complete() {
        return Err(unconfirmed("the plan cannot be shown in full".to_owned()));
    }
    let shown = show::text(card, &rendering, View::Full);
    let (question, wanted) = question(card);
    say(&format!("{shown}\n\n"))?;
    drop_typed_ahead()?;
    say(&format!("{question}: "))?;
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| unconfirmed(format!("cannot read the answer: {error}")))?;
    match is_confirmed(&answer, &wanted) {
        true => Ok(()),
        false => Err(unconfirmed("not approved".to_owned())),
    }
}

fn say(text: &str) -> Result<(), Failure> {
    let mut terminal = io::stderr().lock();
    let said = terminal
        .write_all(text.as_bytes())
        .and_then(|()| terminal.flush());
    said.map_err(|error| unconfirmed(format!("cannot ask: {error}")))
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

/// The whole word; the end of the input is no answer.
fn is_confirmed(answer: &str, wanted: &str) -> bool {
    !wanted.is_empty() && answer.ends_with('\n') && answer.trim() == wanted
}

/// What was typed before the question was there is no answer to it.
#[cfg(unix)]
fn drop_typed_ahead() -> Result<(), Failure> {
    rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush)
        .map_err(|error| unconfirmed(format!("cannot drop what was typed before: {error}")))
}

/// FAIL-CLOSED: where it cannot be dropped, there is no question.
#[cfg(not(unix))]
fn drop_typed_ahead() -> Result<(), Failure> {
    Err(unconfirmed(
        "give the code of the plan with --code".to_owned(),
    ))
}

fn unconfirmed(message: String) -> Failure {
    Failure::new(Code::Unconfirmed, message)
}

const WORD: &str = "approve";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p01_only_the_whole_word_approves() {
        for answer in [
            "",
            "\n",
            " \n",
            "y\n",
            "yes\n",
            "a\n",
            "APPROVE\n",
            "approve",
        ] {
            assert!(!is_confirmed(answer, WORD), "{answer:?}");
        }
        assert!(is_confirmed("approve\n", WORD));
        assert!(!is_confirmed("approve\n", "0123456789abcdef"));
        assert!(!is_confirmed("\n", ""));
    }
}
