//! How somebody shows that they mean it: by a code that they were shown, or by typing a word.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use countersign_approval::Envelope;

use crate::errors::{Code, Failure};
use crate::input;

/// Whoever gives the code has seen this very plan.
pub(crate) fn check_code(given: &str, envelope: &Envelope) -> Result<(), Failure> {
    let plan = envelope.plan();
    let wanted = match plan.is_irreversible() {
        true => plan.hash().typed(),
        false => plan.hash().short(),
    };
    match given == wanted {
        true => Ok(()),
        false if plan.is_irreversible() && wanted.starts_with(given) => Err(unconfirmed(format!(
            "this cannot be undone: give all {} digits of the code",
            wanted.len()
        ))),
        false => Err(unconfirmed(format!(
            "`{given}` is not the code of this plan"
        ))),
    }
}

/// Shows something in the terminal, and goes on only if exactly the wanted word is typed then.
pub(crate) fn ask(shown: &str, question: &str, wanted: &str) -> Result<(), Failure> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(unconfirmed(
            "there is no terminal to ask in: give the code of the plan with --code".to_owned(),
        ));
    }
    say(&format!("{shown}\n\n"))?;
    drop_typed_ahead()?;
    say(&format!("{question}: "))?;
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| unconfirmed(format!("cannot read the answer: {error}")))?;
    match is_confirmed(&answer, wanted) {
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

/// The whole word; the end of the input is no answer.
fn is_confirmed(answer: &str, wanted: &str) -> bool {
    !wanted.is_empty() && answer.ends_with('\n') && answer.trim() == wanted
}

fn drop_typed_ahead() -> Result<(), Failure> {
    input::drop_typed_ahead()
        .map_err(|error| unconfirmed(format!("cannot drop what was typed before: {error}")))
}

pub(super) fn unconfirmed(message: String) -> Failure {
    Failure::new(Code::Unconfirmed, message)
}

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
            assert!(!is_confirmed(answer, "approve"), "{answer:?}");
        }
        assert!(is_confirmed("approve\n", "approve"));
        assert!(!is_confirmed("approve\n", "0123456789abcdef"));
        assert!(!is_confirmed("\n", ""));
    }
}
