//! `countersign tools list`

use clap::Args;
use countersign_canon::Json;
use countersign_display::unseen;
use countersign_mcp::tools::{Book, Waiting, flags};

use crate::books::{Books, Unread};
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, Table, inline};

#[derive(Args)]
#[command(after_help = "\
FLAGS counts what in a definition looks as if it were meant for the model; `countersign tools diff` shows it.
A tool is `first-sight` when it was pinned and nobody has looked at it, `accepted` when somebody has; what
waits is refused until then: `countersign tools review` goes through both.

Examples:
  countersign tools list
  countersign tools list --server files")]
pub(crate) struct List {
    #[command(flatten)]
    data: DataFolder,
    /// Only tools of this server
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
}

struct Row {
    server: String,
    tool: String,
    state: &'static str,
    /// Why it waits, if it does.
    waiting: Option<Waiting>,
    /// Whether a person said that it only reads.
    reads: bool,
    digest: String,
    flags: usize,
}

impl List {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let (books, unread) = Books::new(self.data.folder()?.path()).all()?;
        let wanted = |book: &&Book| {
            let server = self.server.as_deref();
            server.is_none_or(|server| server == book.server())
        };
        self.check_known(&books, &unread)?;
        let rows: Vec<Row> = books.iter().filter(wanted).flat_map(rows).collect();
        let commands: Vec<_> = books.iter().filter(wanted).flat_map(commands).collect();
        match format {
            Format::Text if rows.is_empty() && commands.is_empty() && unread.is_empty() => {
                output::text("no tool was seen yet")?;
            }
            Format::Text => {
                let mut table = Table::new(&["SERVER", "TOOL", "STATE", "FLAGS", "DIGEST"]);
                for row in rows {
                    let (state, flags) = (row.words(), row.flags.to_string());
                    table.row([seen(row.server), seen(row.tool), state, flags, row.digest]);
                }
                output::text(&table.text())?;
                let data = self.data.option();
                for (server, command) in commands {
                    let which = output::words([server.as_str(), &command]);
                    output::text(&format!(
                        "\nanother command came under the name {}: no tool counts there as one that only reads. If it is \
                         the same server:\n  countersign tools accept-command{data} {which}",
                        inline(&server)
                    ))?;
                }
            }
            Format::Json => {
                let tools = rows.into_iter().map(|row| {
                    Json::object([
                        ("digest", Json::from(row.digest)),
                        ("flags", Json::from(row.flags as u64)),
                        ("reads", Json::from(row.reads)),
                        ("server", Json::from(row.server)),
                        ("state", Json::from(row.state)),
                        ("tool", Json::from(row.tool)),
                        ("waiting", Json::from(row.waiting.map(Waiting::as_str))),
                    ])
                });
                let commands = commands.into_iter().map(|(server, command)| {
                    Json::object([
                        ("server", Json::from(server)),
                        ("command", Json::from(command)),
                    ])
                });
                output::json(&Json::object([
                    ("tools", Json::Array(tools.collect())),
                    ("waiting_commands", Json::Array(commands.collect())),
                ]))?;
            }
        }
        // What can be read is shown, and it is said that it is not all.
        match unread.into_iter().next() {
            Some(unread) => Err(unread.failure),
            None => Ok(Exit::Done),
        }
    }
}

impl List {
    /// A name that is misspelt has no tools either.
    fn check_known(&self, books: &[Book], unread: &[Unread]) -> Result<(), Failure> {
        let Some(server) = &self.server else {
            return Ok(());
        };
        // One that cannot be read may be this one.
        match !unread.is_empty() || books.iter().any(|book| book.server() == server) {
            true => Ok(()),
            false => Err(Failure::new(
                Code::NoTool,
                format!("there is no server `{server}`"),
            )),
        }
    }
}

impl Row {
    fn words(&self) -> String {
        match (self.reads, self.waiting) {
            (true, _) => format!("{}, only reads", self.state),
            (false, Some(why)) => format!("{}, {}", self.state, why.as_str()),
            (false, None) => self.state.to_owned(),
        }
    }
}

/// A name in quotes and in ASCII, as `tools diff` shows it, where it could be taken for another one or has quotes
/// of its own.
fn seen(name: String) -> String {
    match !name.is_ascii() || unseen(&name).is_some() || name.contains('"') {
        true => String::from_utf8_lossy(&Json::from(name).to_sorted_ascii()).into_owned(),
        false => name,
    }
}

/// What is accepted, then what waits.
fn rows(book: &Book) -> Vec<Row> {
    let row = |tool: &str, (state, reads), digest: String, definition: Option<&Json>| Row {
        server: book.server().to_owned(),
        tool: tool.to_owned(),
        state,
        waiting: book.waiting(tool).filter(|_| state == WAITS),
        reads,
        digest,
        flags: definition.map_or(0, |definition| flags(definition).len()),
    };
    let accepted = book.pins().iter().map(|(tool, pin)| {
        let digest = pin.digest.to_string();
        let state = (pin.origin.as_str(), pin.reads);
        row(tool, state, digest, pin.definition.as_ref())
    });
    let proposed = book.proposed().iter().map(|(tool, definition)| {
        let digest = definition.digest().to_string();
        row(tool, (WAITS, false), digest, Some(definition.value()))
    });
    accepted.chain(proposed).collect()
}

/// The commands of a server that wait.
fn commands(book: &Book) -> Vec<(String, String)> {
    let waiting = book.waiting_commands().iter();
    let named = waiting.map(|command| (book.server().to_owned(), command.to_string()));
    named.collect()
}

const WAITS: &str = "waiting";
