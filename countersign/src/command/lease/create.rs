//! `countersign lease create`

use clap::Args;
use countersign_approval::UnixMs;
use countersign_approval::lease::Lease;

use super::terms::{NewLease, refused};
use super::view;
use crate::cli::DataFolder;
use crate::clock;
use crate::command::approval::{check_code, confirm, find};
use crate::command::approver::key::KeyOption;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format, visible};

#[derive(Args)]
#[command(after_help = "\
A lease answers for you what you would approve anyway. It is for one tool of one agent in one
session, under the policies of the request that it is modelled on, and covers nothing that cannot
be undone. It ends with its time, its uses, its budget, its session, another key of yours, other
policies or another definition of the tool. `countersign lease preview` takes the same options and
grants nothing.

Kinds of arguments:
  exact:JSON         this value
  one_of:[JSON,…]    one of these
  range:MIN..MAX     a whole number
  path_under:/PATH   a path at or under this one, links followed
  host_in:HOST,…     a URL or a name of one of these hosts
  prefix:TEXT        a text that begins so and goes on with letters, digits, - and _

In a terminal the lease is shown first, and then the word `grant` has to be typed. Without a
terminal --code must give the code of the request, as `countersign approval show` shows it.

Examples:
  countersign lease create --like apr_1f2e --uses 5 --for 30m
  countersign lease create --like apr_1f2e --uses 20 --for 2h \\
      --argument amount=range:1..500 --budget amount=2000 --code 9c1d33b0
  countersign lease create --like apr_77aa --part-of lse_03c4 --uses 2 --for 10m")]
pub(crate) struct Create {
    #[command(flatten)]
    new: NewLease,
    /// The code of the request, as it was shown to you
    #[arg(long, value_name = "HEX")]
    code: Option<String>,
    #[command(flatten)]
    key: KeyOption,
    #[command(flatten)]
    data: DataFolder,
}

impl Create {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let file = self.key.file(self.data.folder()?.path())?;
        let desk = self.data.desk()?;
        let key = file.open(&desk.approvers()?)?;
        let standing = find(&self.new.like, &desk)?;
        let lease = self.new.draw_up(&standing, &key.person, &desk)?;
        warn_of_time(&lease, desk.time_is_up(&standing));
        match &self.code {
            Some(code) => check_code(code, &standing.envelope)?,
            None => {
                let shown = view::lines(&lease, desk.now()?).join("\n");
                confirm::ask(
                    &shown,
                    "type `grant` to grant it, anything else leaves it",
                    "grant",
                )?;
            }
        }
        let id = desk
            .grant_lease(&lease.sign(&key.secret).to_text())
            .map_err(|error| refused(error.to_string()))?;
        let standing = desk.lease(id)?;
        let standing = standing.ok_or_else(|| refused("the lease is gone".to_owned()))?;
        let printed = match format {
            Format::Text => {
                let terms = standing.lease.terms();
                let tool = &terms.tool.name;
                output::text(&visible(&format!(
                    "GRANTED ✓  {id}, {} uses of {tool} by {}",
                    terms.max_uses, terms.granted_by
                )))
            }
            Format::Json => view::print(&view::json(&standing)),
        };
        // It stands, whether anybody reads so or not.
        printed?;
        Ok(Exit::Done)
    }
}

/// A lease is no use to a session whose time is up.
fn warn_of_time(lease: &Lease, up: Option<UnixMs>) {
    let end = lease.terms().valid.expires_at;
    if let Some(up) = up.filter(|up| up.is_before(end)) {
        output::stderr(&format!(
            "warning: the lease ends at {}; the session has used up its `max_wall_time_ms` before that, at {}",
            clock::text(end.get()),
            clock::text(up.get())
        ));
    }
}
