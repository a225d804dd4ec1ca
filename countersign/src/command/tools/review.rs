//! `countersign tools review`

use std::io::{self, BufRead as _, IsTerminal as _};

use clap::Args;
use countersign_canon::Digest;
use countersign_mcp::tools::{Book, Definition, Origin, Waiting};
use countersign_store::Store;

use super::diff::{described, said_of};
use crate::acceptance::{self, AcceptedTool, By};
use crate::books::Books;
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
Shows one tool after the other that nobody has looked at, or that has changed, and asks what it is: one
that only reads, whose calls run without a human where there is no manifest; one whose calls are to wait;
or one to leave as it is. Each answer is recorded and holds at once, for the definition that was shown.
It is for people; scripts use `countersign tools accept`, which takes the digest of what was looked at.

Examples:
  countersign tools review
  countersign tools review files")]
pub(crate) struct Review {
    #[command(flatten)]
    data: DataFolder,
    /// Only tools of this server
    server: Option<String>,
}

/// A tool that somebody is to look at.
struct Unseen {
    server: String,
    definition: Definition,
    /// What is shown of it.
    shown: String,
}

/// What somebody says about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Reads,
    Waits,
    Leave,
    Stop,
}

impl Review {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        if format == Format::Json || !io::stdin().is_terminal() || !output::is_watched() {
            let text = "somebody has to be at the terminal to review tools";
            return Err(Failure::new(Code::Unwatched, text));
        }
        let books = Books::new(self.data.folder()?.path());
        let unseen = self.unseen(&books)?;
        if unseen.is_empty() {
            output::text(
                "nothing waits to be looked at; a tool is known once a client has listed it, and `countersign tools list` shows all",
            )?;
            return Ok(Exit::Done);
        }
        let store = self.data.store()?;
        let (mut accepted, mut reading) = (0, 0);
        for (number, tool) in unseen.iter().enumerate() {
            let place = format!("{} of {}", number + 1, unseen.len());
            output::text(&format!("\n── {place} ──\n{}", tool.shown))?;
            let word = ask()?;
            match word {
                Word::Stop => break,
                Word::Leave => continue,
                Word::Reads | Word::Waits => {}
            }
            if keep(&store, &books, tool, word == Word::Reads)? {
                accepted += 1;
                reading += usize::from(word == Word::Reads);
            }
        }
        output::text(&format!(
            "\naccepted {accepted} of {}, {reading} of them as tools that only read",
            unseen.len()
        ))?;
        if accepted > 0 {
            output::stderr(super::OPEN_SESSIONS);
        }
        Ok(Exit::Done)
    }

    fn unseen(&self, books: &Books) -> Result<Vec<Unseen>, Failure> {
        let (all, unread) = books.all()?;
        if let Some(unread) = unread.into_iter().next() {
            return Err(unread.failure);
        }
        let wanted = |book: &&Book| {
            let server = self.server.as_deref();
            server.is_none_or(|server| server == book.server())
        };
        if let Some(server) = &self.server
            && !all.iter().any(|book| book.server() == server)
        {
            let text = format!("there is no server `{server}`");
            return Err(Failure::new(Code::NoTool, text));
        }
        all.iter()
            .filter(wanted)
            .map(|book| of_book(book, &all))
            .collect::<Result<Vec<_>, _>>()
            .map(|all| all.into_iter().flatten().collect())
    }
}

/// What waits of a server, and what was pinned when it was first seen. What acceptance changes nothing about is
/// left out.
fn of_book(book: &Book, all: &[Book]) -> Result<Vec<Unseen>, Failure> {
    let fresh = book.pins().iter().filter(|(name, pin)| {
        pin.origin == Origin::FirstSight && !book.proposed().contains_key(*name)
    });
    let fresh = fresh.filter_map(|(_, pin)| pin.definition.clone());
    let fresh = fresh.map(|definition| {
        Definition::from_json(definition)
            .map_err(|error| Failure::new(Code::Book, error.to_string()))
    });
    let waiting = book.proposed().values().cloned().map(Ok);
    let tools = fresh.chain(waiting).map(|definition| {
        let definition = definition?;
        if book.waiting(definition.name()) == Some(Waiting::Method) {
            return Ok(None);
        }
        Ok(Some(Unseen {
            server: book.server().to_owned(),
            shown: shown(book, &definition, all),
            definition,
        }))
    });
    tools.filter_map(Result::transpose).collect()
}

fn shown(book: &Book, definition: &Definition, all: &[Book]) -> String {
    let name = definition.name();
    let mut lines = vec![format!("{} of {}", inline(name), inline(book.server()))];
    lines.extend(described(book, definition));
    if definition.claims_read_only() {
        lines.push("the server says that it only reads, which proves nothing".to_owned());
    }
    if let Some(why) = book.waiting(name) {
        lines.extend(said_of(why, book, name, all));
    }
    lines.join("\n")
}

/// Asks until somebody says something that is known. Whoever leaves stops.
fn ask() -> Result<Word, Failure> {
    loop {
        input::drop_typed_ahead()?;
        output::text(
            "[r] it only reads   [w] accept, its calls wait for a human   [Enter] leave it   [q] stop",
        )?;
        let mut said = String::new();
        let count = io::stdin().lock().read_line(&mut said)?;
        match said.trim() {
            _ if count == 0 => return Ok(Word::Stop),
            "r" => return Ok(Word::Reads),
            "w" => return Ok(Word::Waits),
            "" => return Ok(Word::Leave),
            "q" => return Ok(Word::Stop),
            _ => {}
        }
    }
}

/// Keeps what was said about exactly what was shown; `false` if that is not there any more.
fn keep(store: &Store, books: &Books, tool: &Unseen, reads: bool) -> Result<bool, Failure> {
    let turn = books.turn()?;
    let mut book = turn.of(&tool.server)?;
    let (name, digest): (_, Digest) = (tool.definition.name(), tool.definition.digest());
    if !book.accept_seen(name, digest, reads) {
        output::stderr("countersign: the server has shown something else meanwhile; review again");
        return Ok(false);
    }
    let accepted = AcceptedTool {
        tool: name,
        definition: digest,
        reads,
    };
    acceptance::keep_tool(store, &turn, &book, &accepted, By::Account)?;
    Ok(true)
}
