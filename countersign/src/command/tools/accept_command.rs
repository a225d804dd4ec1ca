//! `countersign tools accept-command`

use clap::Args;
use countersign_canon::{Digest, Json};

use crate::acceptance::{self, By};
use crate::books::Books;
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
A server is known by the command that started it first. When another command comes under its name, what
was said about tools that only read does not count for it; `countersign mcp` then prints the digest that
goes here. Connections that are open hold until they are made again.

Examples:
  countersign tools accept-command files sha256:9c1d33b0…")]
pub(crate) struct AcceptCommand {
    #[command(flatten)]
    data: DataFolder,
    /// The server
    server: String,
    /// The digest of the command
    digest: String,
}

impl AcceptCommand {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let books = Books::new(self.data.folder()?.path());
        let digest: Digest = self
            .digest
            .parse()
            .map_err(|error| Failure::new(Code::NoTool, format!("{error}")))?;
        let turn = books.turn()?;
        let mut book = turn.of(&self.server)?;
        if book.commands().is_empty() && book.pins().is_empty() {
            let text = format!("there is no server `{}`", self.server);
            return Err(Failure::new(Code::NoTool, text));
        }
        book.accept_command(digest);
        acceptance::keep_command(&self.data.store()?, &turn, &book, digest, By::Account)?;
        drop(turn);
        match format {
            Format::Text => output::text(&format!(
                "accepted another command of {}",
                inline(&self.server)
            ))?,
            Format::Json => output::json(&Json::object([(
                "accepted",
                Json::from(digest.to_string()),
            )]))?,
        }
        Ok(Exit::Done)
    }
}
