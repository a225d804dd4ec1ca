//! `countersign tools accept`

use clap::Args;
use countersign_canon::Json;

use super::waiting;
use crate::books::Books;
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
The digest is the one that `countersign tools diff` shows: what is accepted is what was looked at, even
if the server has shown something else since. Connections that are open keep refusing the tool until
they are made again.")]
pub(crate) struct Accept {
    #[command(flatten)]
    data: DataFolder,
    /// The server
    server: String,
    /// The tool
    tool: String,
    /// The digest of the definition
    digest: String,
}

impl Accept {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let books = Books::new(self.data.folder()?.path());
        let (mut book, definition) = waiting(&books, &self.server, &self.tool)?;
        let digest = definition.digest().to_string();
        if digest != self.digest {
            return Err(Failure::new(
                Code::NoTool,
                format!("another definition of `{}` waits: {digest}", self.tool),
            ));
        }
        book.accept_proposed(&self.tool);
        books.write(&book)?;
        match format {
            Format::Text => output::text(&format!(
                "accepted {} of {}",
                inline(&self.tool),
                inline(&self.server)
            ))?,
            Format::Json => output::json(&Json::object([("accepted", Json::from(digest))]))?,
        }
        Ok(Exit::Done)
    }
}
