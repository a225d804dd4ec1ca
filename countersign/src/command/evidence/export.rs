//! `countersign evidence export`

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use countersign_canon::{Digest, Json};
use countersign_event::{Scope, SessionId, TenantId};
use countersign_pack::Selected;
use countersign_store::{Filter, Folder, Published, Reader, Stored};

use super::disclose::Disclose;
use super::exchange::{self, Exchange};
use super::pack::Contents;
use super::session::Session;
use crate::cli::{Choice, DataFolder, Tenant};
use crate::clock;
use crate::command::approval::{absent, find_id};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::folder;
use crate::input::{to_standard_output, unreadable};
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
A pack is one file that shows what happened to somebody who has nothing else: events, proofs that they
are in the log, the signed checkpoint, public keys, the policies that decided, the sealed values that you
choose to disclose, and records, decision envelopes and CloudEvents that follow from all of it. Two exports of the same events are the same bytes. Check one with `countersign verify FILE`.

Without --disclose no sealed value leaves the log. `approvals` shows what people were asked and how they
voted, `TOOL_CALL_PROPOSED/args` the arguments of calls, `all` everything.

--format cloudevents writes the events of a session as CloudEvents 1.0, one a line, to standard output or
to --out; --format assay-bundle an archive that `assay evidence verify` checks. Names and digests leave as
they are, arguments and messages without secrets and generalised; prompts, results, tokens and what people
signed do not leave, and `data.dropped` names them.

Examples:
  countersign evidence export --session s1 --out s1.pack
  countersign evidence export --session s1 --format cloudevents > s1.ndjson
  countersign evidence export --approval apr_4f0c… --disclose approvals --out approval.pack
  countersign evidence export --since 2026-11-01T00:00:00Z --until 2026-12-01T00:00:00Z --out november.pack")]
pub(crate) struct Export {
    #[command(flatten)]
    tenant: Tenant,
    /// A session
    #[arg(long, value_name = "SESSION", required_unless_present_any = ["approval", "since", "until"])]
    session: Option<String>,
    /// The session that asked for this approval; the beginning of its id is enough
    #[arg(long, value_name = "ID", conflicts_with_all = ["session", "since", "until"])]
    approval: Option<String>,
    /// Every event from this time on: 2026-11-15T08:00:00Z, or 2h for two hours ago
    #[arg(long, value_name = "TIME", conflicts_with = "session")]
    since: Option<String>,
    /// Every event before this time
    #[arg(long, value_name = "TIME", conflicts_with = "session")]
    until: Option<String>,
    /// Show sealed values: `all`, `approvals`, or a type and a member
    #[arg(long, value_name = "WHAT")]
    disclose: Vec<Disclose>,
    /// Add the whole audit of approvals, also of other sessions
    #[arg(long)]
    whole_audit: bool,
    /// Leave out the policies, and the records, envelopes and CloudEvents that follow from the rest
    #[arg(long)]
    bare: bool,
    /// Add a file as it is
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// How to print results, or what to write in the place of a pack
    #[arg(long, default_value = "text", value_parser = Choice::any())]
    // The argument that all commands have takes more here; it is read there.
    format: Choice,
    /// The pack, a new file; - for standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    data: DataFolder,
}

impl Export {
    pub(crate) fn run(self, format: Format, exchange: Option<Exchange>) -> Result<Exit, Failure> {
        match (exchange, self.out.clone()) {
            (Some(exchange), _) => self.exchange(exchange),
            (None, Some(out)) => self.pack(&out, format),
            (None, None) => Err(Failure::new(
                Code::Usage,
                "a pack needs a file: give --out FILE",
            )),
        }
    }

    fn exchange(self, exchange: Exchange) -> Result<Exit, Failure> {
        let one = "only a session can be written in this format: give --session";
        let session = self.session.ok_or_else(|| Failure::new(Code::Usage, one))?;
        let session = Session::new(session, self.tenant, self.data);
        let out = self.out.filter(|out| !to_standard_output(out));
        exchange::Export { session, out }.run(exchange)
    }

    fn pack(&self, out: &Path, format: Format) -> Result<Exit, Failure> {
        let reader = self.data.reader()?;
        let selected = self.selected(&reader)?;
        let mut events = events(&selected, &reader)?;
        let last = events.last().map_or(0, |event| event.id);
        if last == 0 {
            return Err(Failure::new(
                Code::NoEvent,
                "there is no such event to export",
            ));
        }
        let published = self.published(last, &reader)?;
        // A session goes on as far as the checkpoint does.
        events.retain(|event| event.id <= published.checkpoint.size);
        let contents = Contents {
            selected,
            events,
            published,
            disclose: self.disclose.clone(),
            whole_audit: self.whole_audit,
            attachments: self.attachments()?,
            bare: self.bare,
        };
        for what in contents.idle()? {
            output::stderr(&output::inline(&format!(
                "warning: --disclose {what} discloses nothing: no event here has it sealed"
            )));
        }
        let pack = contents.write(&reader)?;
        match to_standard_output(out) {
            true => output::binary(&pack)?,
            false => folder::create(out, &pack)?,
        }
        let (count, size) = (contents.events.len() as u64, pack.len() as u64);
        let digest = Digest::of(&pack).to_string();
        match format {
            // It has the pack.
            _ if to_standard_output(out) => {}
            Format::Text => output::text(&format!(
                "{}  {count} event(s), {size} bytes, {digest}",
                output::inline(&out.display().to_string())
            ))?,
            Format::Json => output::json(&Json::object([
                ("file", Json::from(out.display().to_string())),
                ("events", Json::from(count)),
                ("bytes", Json::from(size)),
                ("digest", Json::from(digest)),
            ]))?,
        }
        Ok(Exit::Done)
    }

    fn selected(&self, reader: &Reader) -> Result<Selected, Failure> {
        if let Some(session) = &self.session {
            let scope = self.tenant.scope(session)?;
            if reader.last(&Filter::session(&scope), 1)?.is_empty() {
                let message = format!("no session `{session}`");
                return Err(Failure::new(Code::NoSession, message));
            }
            return Ok(Selected::Session {
                tenant: scope.tenant.as_str().to_owned(),
                session: session.clone(),
            });
        }
        if let Some(text) = &self.approval {
            let id = find_id(text, reader)?;
            let approval = reader.approval(id)?.ok_or_else(|| absent(text))?;
            return Ok(Selected::Approval {
                id: id.to_string(),
                tenant: approval.scope.tenant.as_str().to_owned(),
                session: approval.scope.session.as_str().to_owned(),
            });
        }
        let time = |text: &Option<String>| text.as_deref().map(clock::parse_moment).transpose();
        Ok(Selected::Range {
            since_unix_ms: time(&self.since)?,
            until_unix_ms: time(&self.until)?,
        })
    }

    /// The first checkpoint that covers the events, so that a later export is the same; a new one if
    /// there is none.
    fn published(&self, last: u64, reader: &Reader) -> Result<Published, Failure> {
        match reader.checkpoint_covering(last)? {
            Some(published) => Ok(reader.vouch(published)?),
            None => Ok(self.data.store()?.publish(None)?),
        }
    }

    fn attachments(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let read = |path: &PathBuf| {
            fs::read(path).map_err(|error| unreadable(&path.display().to_string(), &error))
        };
        self.attach.iter().map(read).collect()
    }
}

/// The pack of a session, as far as a checkpoint covers it; nothing sealed is disclosed.
pub(crate) fn session_pack(folder: &Folder, scope: &Scope) -> Result<Vec<u8>, Failure> {
    let reader = Reader::open(folder)?;
    let selected = Selected::Session {
        tenant: scope.tenant.as_str().to_owned(),
        session: scope.session.as_str().to_owned(),
    };
    let mut events = events(&selected, &reader)?;
    let uncovered = || {
        let text = "no checkpoint covers the session yet: the daemon signs one every minute";
        Failure::new(Code::NoEvent, text)
    };
    let published = reader.last_checkpoint()?.ok_or_else(uncovered)?;
    events.retain(|event| event.id <= published.checkpoint.size);
    let last = events.last().map(|event| event.id).ok_or_else(uncovered)?;
    // The first checkpoint that covers them, so that a later pack is the same.
    let published = reader.checkpoint_covering(last)?.unwrap_or(published);
    events.retain(|event| event.id <= published.checkpoint.size);
    let contents = Contents {
        selected,
        events,
        published: reader.vouch(published)?,
        disclose: Vec::new(),
        whole_audit: false,
        attachments: Vec::new(),
        bare: false,
    };
    contents.write(&reader)
}

fn events(selected: &Selected, reader: &Reader) -> Result<Vec<Stored>, Failure> {
    let filter = match selected {
        Selected::Session { tenant, session }
        | Selected::Approval {
            tenant, session, ..
        } => Filter {
            tenant: Some(TenantId::new(tenant.as_str())?),
            session: Some(SessionId::new(session.as_str())?),
            ..Filter::default()
        },
        Selected::Range {
            since_unix_ms,
            until_unix_ms,
        } => Filter {
            since_unix_ms: *since_unix_ms,
            until_unix_ms: *until_unix_ms,
            ..Filter::default()
        },
    };
    let mut events = Vec::new();
    reader.each(&filter, 0, |event| {
        events.push(event);
        Ok::<_, Failure>(())
    })?;
    Ok(events)
}
