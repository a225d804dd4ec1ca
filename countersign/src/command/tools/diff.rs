//! `countersign tools diff`

use clap::Args;
use countersign_canon::Json;
use countersign_mcp::tools::{Book, Definition, Origin, Waiting, diff, flags};

use crate::books::Books;
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
Shows every member that was added (+), removed (-) or changed (~), in ASCII, and what in the
new text looks as if it were meant for the model. The absence of a flag means nothing. A tool
that was pinned when it was first seen, and that nobody has looked at, is shown as a whole.

Examples:
  countersign tools diff files read_file")]
pub(crate) struct Diff {
    #[command(flatten)]
    data: DataFolder,
    /// The server
    server: String,
    /// The tool
    tool: String,
}

impl Diff {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let books = Books::new(self.data.folder()?.path());
        let (before, definition) = self.both(&books)?;
        let changes = diff(&before, definition.value());
        match format {
            Format::Text => {
                let mut lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
                lines.extend(flagged(&definition));
                lines.push(String::new());
                lines.extend(self.next(&books, &definition)?);
                output::text(&lines.join("\n"))?;
            }
            Format::Json => {
                let changes = changes.iter().map(|change| {
                    Json::object([
                        ("after", Json::from(shown(change.after.as_ref()))),
                        ("before", Json::from(shown(change.before.as_ref()))),
                        ("pointer", Json::from(change.pointer.as_str())),
                    ])
                });
                let flags = flagged(&definition).map(Json::from);
                output::json(&Json::object([
                    ("changes", Json::Array(changes.collect())),
                    ("digest", Json::from(definition.digest().to_string())),
                    ("flags", Json::Array(flags.collect())),
                ]))?;
            }
        }
        Ok(Exit::Done)
    }

    /// What is pinned and what waits. What was pinned when it was first seen, and nobody has looked at, is
    /// shown as a whole.
    fn both(&self, books: &Books) -> Result<(Json, Definition), Failure> {
        let nothing = Json::object::<String>([]);
        let book = books.of(&self.server)?;
        let pin = book.pins().get(&self.tool);
        let pinned = pin.and_then(|pin| pin.definition.clone());
        let is_unseen = pin.is_some_and(|pin| pin.origin == Origin::FirstSight);
        match (pinned, book.proposed().get(&self.tool)) {
            (_, Some(definition)) => Ok((before(&book, definition), definition.clone())),
            (Some(pinned), None) if is_unseen => Definition::from_json(pinned)
                .map(|definition| (nothing, definition))
                .map_err(|error| Failure::new(Code::Book, error.to_string())),
            _ => Err(Failure::new(
                Code::NoTool,
                format!("nothing waits for `{}` of `{}`", self.tool, self.server),
            )),
        }
    }

    fn next(&self, books: &Books, definition: &Definition) -> Result<Vec<String>, Failure> {
        let digest = definition.digest().to_string();
        let which = output::words([self.server.as_str(), &self.tool, &digest]);
        let data = self.data.option();
        let (all, _) = books.all()?;
        let book = books.of(&self.server)?;
        let read = book.pins().get(&self.tool).is_some_and(|pin| pin.reads);
        let waiting = book.waiting(&self.tool);
        let mut lines = waiting.map_or_else(Vec::new, |why| said_of(why, &book, &self.tool, &all));
        if lines.is_empty() {
            // Nobody is made to say so again without looking.
            let note = match read {
                true => "it was accepted as a tool that only reads: if it still does, add --reads",
                false => {
                    "if it only reads, add --reads; without it, and without a manifest, its calls wait for a human"
                }
            };
            lines.push(note.to_owned());
        }
        lines.push(format!("next: countersign tools accept{data} {which}"));
        Ok(lines)
    }
}

/// What a definition is compared with: what somebody has accepted. What was only seen first, nobody has looked at.
pub(crate) fn before(book: &Book, definition: &Definition) -> Json {
    let pin = book.pins().get(definition.name());
    let pin = pin.filter(|pin| pin.origin == Origin::Accepted);
    let pinned = pin.and_then(|pin| pin.definition.clone());
    pinned.unwrap_or_else(|| Json::object::<String>([]))
}

/// What is to see of a definition that nobody has looked at.
pub(super) fn described(book: &Book, definition: &Definition) -> Vec<String> {
    let changes = diff(&before(book, definition), definition.value());
    let changes = changes.iter().map(ToString::to_string);
    changes.chain(flagged(definition)).collect()
}

/// What whoever accepts it should know.
pub(super) fn said_of(why: Waiting, book: &Book, tool: &str, all: &[Book]) -> Vec<String> {
    let text = match why {
        Waiting::Changed => return Vec::new(),
        Waiting::NotOfManifest => {
            "a manifest names another digest: where it holds, calls stay refused until its `definition` is \
             changed too"
                .to_owned()
        }
        Waiting::Method => {
            "it is called like a method of the protocol: calls of it stay refused, also when it is accepted"
                .to_owned()
        }
        Waiting::Posing => {
            let others = all.iter().filter(|other| other.server() != book.server());
            let first = others.filter(|other| other.pins().contains_key(tool));
            let first: Vec<_> = first.map(|other| inline(other.server()).to_string()).collect();
            match first.is_empty() {
                true => "its name looks like that of another tool, or of a method".to_owned(),
                false => format!("another server has a tool of this name: {}", first.join(", ")),
            }
        }
    };
    vec![text]
}

/// A value as text, because a definition may hold numbers that other readers would round.
fn shown(value: Option<&Json>) -> Option<String> {
    value.map(|value| String::from_utf8_lossy(&value.to_sorted_ascii()).into_owned())
}

fn flagged(definition: &Definition) -> impl Iterator<Item = String> {
    flags(definition.value())
        .into_iter()
        .map(|flag| format!("! {}: {}", inline(&flag.pointer), flag.suspicion.as_str()))
}
