//! `countersign log tail`

use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use countersign_store::Stored;

use super::filter::FilterArgs;
use super::view;
use crate::cli::DataFolder;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign log tail -n 20
  countersign log tail --follow --type TOOL_CALL_DENIED")]
pub(crate) struct Tail {
    #[command(flatten)]
    data: DataFolder,
    #[command(flatten)]
    filter: FilterArgs,
    /// How many events to start with
    #[arg(short = 'n', long, value_name = "N", default_value = "10")]
    lines: u32,
    /// Wait for new events and print them as they come
    #[arg(long, short)]
    follow: bool,
}

impl Tail {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let reader = self.data.reader()?;
        let filter = self.filter.filter()?;
        let mut last = reader.last_id()?;
        for event in reader.last(&filter, self.lines as usize)? {
            last = last.max(event.id);
            print(&event, format)?;
        }
        if !self.follow {
            return Ok(Exit::Done);
        }
        loop {
            sleep(POLL);
            let end = reader.last_id()?;
            reader.each(&filter, last, |event| {
                last = last.max(event.id);
                print(&event, format)
            })?;
            last = last.max(end);
        }
    }
}

fn print(event: &Stored, format: Format) -> Result<(), Failure> {
    match format {
        Format::Text => {
            let [session, seq, time, event_type, hash, what] = view::cells(event)?;
            let line = format!("{time}  {session} {seq}  {event_type:<20} {hash}  {what}");
            let mut out = output::stdout();
            writeln!(out, "{}", inline(line.trim_end()))?;
            out.flush()?;
        }
        Format::Json => output::json(&view::json(event)?)?,
    }
    Ok(())
}

const POLL: Duration = Duration::from_millis(200);
