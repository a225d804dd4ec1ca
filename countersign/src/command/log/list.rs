//! `countersign log list`

use clap::Args;
use countersign_canon::Json;
use countersign_store::Cursor;

use super::filter::FilterArgs;
use super::view;
use crate::cli::DataFolder;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
The oldest events come first; `countersign log tail` prints the newest.

Examples:
  countersign log list --session s1
  countersign log list --type TOOL_CALL_DENIED --since 24h
  countersign log list --limit 1000 --format json")]
pub(crate) struct List {
    #[command(flatten)]
    data: DataFolder,
    #[command(flatten)]
    filter: FilterArgs,
    /// How many events at most
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=10000))]
    limit: u32,
    /// Go on where the previous page ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl List {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let cursor = self
            .cursor
            .as_deref()
            .map(str::parse::<Cursor>)
            .transpose()?;
        let reader = self.data.reader()?;
        self.filter.check_session(&reader)?;
        let page = reader.page(&self.filter.filter()?, cursor.as_ref(), self.limit as usize)?;
        match format {
            Format::Text if page.events.is_empty() => output::text("there are no such events")?,
            Format::Text => {
                let table = match self.filter.is_one_session() {
                    true => view::session_table(&page.events)?,
                    false => view::table(&page.events)?,
                };
                output::text(&table.text())?;
                if let Some(next) = page.next {
                    output::stderr(&format!("more: add --cursor {next}"));
                }
            }
            Format::Json => {
                let events = page
                    .events
                    .iter()
                    .map(view::json)
                    .collect::<Result<_, _>>()?;
                let next = page
                    .next
                    .map_or(Json::Null, |next| Json::from(next.to_string()));
                output::json(&Json::object([
                    ("events", Json::Array(events)),
                    ("next", next),
                ]))?;
            }
        }
        Ok(Exit::Done)
    }
}
