//! `countersign tools accept`

use clap::Args;
use countersign_canon::{Digest, Json};
use countersign_mcp::tools::Waiting;

use super::diff::said_of;
use crate::acceptance::{self, AcceptedTool, By};
use crate::books::Books;
use crate::cli::DataFolder;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
The digest is the one that `countersign tools list` shows: what is accepted is what was looked at,
even if the server has shown something else since. What a server says about its own tools makes none
of them a tool that only reads; --reads does. Sessions that are open go by that in a second; they refuse a
tool that has changed until their client lists the tools again. The log tells what was accepted, and by which account of this machine.

Examples:
  countersign tools accept files read_file sha256:4f0c…
  countersign tools accept files read_file sha256:4f0c… --reads")]
pub(crate) struct Accept {
    #[command(flatten)]
    data: DataFolder,
    /// The server
    server: String,
    /// The tool
    tool: String,
    /// The digest of the definition
    digest: String,
    /// Say that the tool only reads: without a manifest, its calls then run without a human
    #[arg(long)]
    reads: bool,
}

impl Accept {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let books = Books::new(self.data.folder()?.path());
        let turn = books.turn()?;
        let mut book = turn.of(&self.server)?;
        let digest: Digest = self
            .digest
            .parse()
            .map_err(|error| Failure::new(Code::NoTool, format!("{error}")))?;
        let still_refused = book
            .waiting(&self.tool)
            .filter(|why| matches!(why, Waiting::NotOfManifest | Waiting::Method));
        if !book.accept_seen(&self.tool, digest, self.reads) {
            return Err(Failure::new(
                Code::NoTool,
                format!(
                    "`{}` of `{}` has no definition {digest}",
                    self.tool, self.server
                ),
            ));
        }
        let accepted = AcceptedTool {
            tool: &self.tool,
            definition: digest,
            reads: self.reads,
        };
        acceptance::keep_tool(&self.data.store()?, &turn, &book, &accepted, By::Account)?;
        drop(turn);
        match still_refused {
            Some(why) => {
                for line in said_of(why, &book, &self.tool, &[]) {
                    output::stderr(&format!("countersign: {line}"));
                }
            }
            None => output::stderr(super::OPEN_SESSIONS),
        }
        match format {
            Format::Text => output::text(&format!(
                "accepted {} of {}{}",
                inline(&self.tool),
                inline(&self.server),
                if self.reads { ", which only reads" } else { "" }
            ))?,
            Format::Json => output::json(&Json::object([
                ("accepted", Json::from(digest.to_string())),
                ("reads", Json::from(self.reads)),
            ]))?,
        }
        Ok(Exit::Done)
    }
}
