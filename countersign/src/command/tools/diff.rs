//! `countersign tools diff`

use clap::Args;
use countersign_canon::Json;
use countersign_mcp::tools::{Definition, Origin, Waiting, diff, flags};

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
                lines.push(self.next(&books, &definition)?);
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
            (pinned, Some(definition)) => Ok((pinned.unwrap_or(nothing), definition.clone())),
            (Some(pinned), None) if is_unseen => Definition::from_json(pinned)
                .map(|definition| (nothing, definition))
                .map_err(|error| Failure::new(Code::Book, error.to_string())),
            _ => Err(Failure::new(
                Code::NoTool,
                format!("nothing waits for `{}` of `{}`", self.tool, self.server),
            )),
        }
    }

    fn next(&self, books: &Books, definition: &Definition) -> Result<String, Failure> {
        let digest = definition.digest().to_string();
        let which = output::words([self.server.as_str(), &self.tool, &digest]);
        let book = books.of(&self.server)?;
        let read = book.pins().get(&self.tool).is_some_and(|pin| pin.reads);
        // Nobody is made to say so again without looking.
        let note = match (book.waiting(&self.tool), read) {
            (Some(why @ (Waiting::Posing | Waiting::Method | Waiting::NotOfManifest)), _) => {
                said_of(why)
            }
            (_, true) => {
                "it was accepted as a tool that only reads: if it still does, add --reads\n"
            }
            (_, false) => "",
        };
        Ok(format!("{note}next: countersign tools accept {which}"))
    }
}

/// What whoever accepts it should know.
pub(super) fn said_of(why: Waiting) -> &'static str {
    match why {
        Waiting::Changed => "",
        Waiting::NotOfManifest => {
            "a manifest names another digest: where it holds, calls stay refused until its `definition` is \
             changed too\n"
        }
        Waiting::Method => {
            "it is called like a method of the protocol: calls of it stay refused, also when it is accepted\n"
        }
        Waiting::Posing => {
            "nothing was accepted under this name: another server has a tool of this name, or another tool \
             or a method has a name that looks like it\n"
        }
    }
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
