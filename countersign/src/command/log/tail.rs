//! `countersign log tail`

use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use countersign_api::query::{About, Query, QueryError};
use countersign_store::{Filter, Reader, Stored};

use super::filter::FilterArgs;
use super::{remote, view};
use crate::cli::DataFolder;
use crate::clock;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, inline};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign log tail -n 20
  countersign log tail --follow --type TOOL_CALL_DENIED
  countersign log tail --follow --query 'decision:deny tool:mcp.*'
  countersign log tail --follow --server http://127.0.0.1:7117 --token-file token")]
pub(crate) struct Tail {
    #[command(flatten)]
    data: DataFolder,
    #[command(flatten)]
    filter: FilterArgs,
    /// How many events to start with
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value = "10",
        conflicts_with = "server"
    )]
    lines: u32,
    /// Wait for new events and print them as they come
    #[arg(long, short)]
    follow: bool,
    /// Only events that fit, such as `decision:deny tool:mcp.* since:1h`
    #[arg(long, short, value_name = "QUERY", default_value = "")]
    query: String,
    /// With --follow: listen to a daemon in the place of a data folder, such as http://127.0.0.1:7117
    #[arg(long, value_name = "URL", requires_all = ["token_file", "follow"], conflicts_with_all = ["tenant", "session", "event_type", "tool", "since", "until"])]
    server: Option<String>,
    /// The file that holds the token for it
    #[arg(
        long,
        env = "COUNTERSIGN_TOKEN_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    token_file: Option<String>,
}

impl Tail {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let query: Query = self
            .query
            .parse()
            .map_err(|error: QueryError| Failure::new(Code::Query, error.to_string()))?;
        if let (Some(server), Some(file)) = (&self.server, &self.token_file) {
            return remote::follow(server, file, &self.query, |event| print(event, format));
        }
        let asked = query.at(clock::now_unix_ms()?);
        let fits = |event: &Stored| {
            let is_all = asked.is_everything();
            Ok::<_, Failure>(is_all || asked.fits(&About::of(&view::read(event)?)))
        };
        let reader = self.data.reader()?;
        let filter = self.filter.filter()?;
        let mut last = reader.last_id()?;
        for event in self.newest(&filter, &reader, &fits)? {
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
                match fits(&event)? {
                    true => print(&event, format),
                    false => Ok(()),
                }
            })?;
            last = last.max(end);
        }
    }

    /// The last events that fit. Looks further back as long as there are too few.
    fn newest(
        &self,
        filter: &Filter,
        reader: &Reader,
        fits: &dyn Fn(&Stored) -> Result<bool, Failure>,
    ) -> Result<Vec<Stored>, Failure> {
        let wanted = self.lines as usize;
        let mut looked = wanted;
        loop {
            let events = reader.last(filter, looked)?;
            let is_all = events.len() < looked;
            let mut found = Vec::new();
            for event in events {
                if fits(&event)? {
                    found.push(event);
                }
            }
            if is_all || found.len() >= wanted {
                let extra = found.len().saturating_sub(wanted);
                return Ok(found.split_off(extra));
            }
            looked = looked.saturating_mul(8);
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
