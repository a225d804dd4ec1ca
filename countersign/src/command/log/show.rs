//! `countersign log show`

use clap::Args;
use countersign_canon::Json;
use countersign_store::{Filter, Reader, Stored};

use super::view;
use crate::cli::{DataFolder, Tenant};
use crate::clock;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, inline, visible};

#[derive(Args)]
#[command(after_help = "\
Examples:
  countersign log show --session s1 --seq 0
  countersign log show 3f2a91c4d0 --open")]
pub(crate) struct Show {
    /// The hash of the event, or at least its first 8 digits
    #[arg(conflicts_with_all = ["session", "seq"])]
    hash: Option<String>,
    #[command(flatten)]
    tenant: Tenant,
    /// The session
    #[arg(long, value_name = "SESSION", requires = "seq")]
    session: Option<String>,
    /// The sequence number in the session
    #[arg(long, value_name = "N", requires = "session")]
    seq: Option<u64>,
    /// Decrypt and show the sealed members too
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    data: DataFolder,
}

impl Show {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let reader = self.data.reader()?;
        let event = self.find(&reader)?;
        let mut json = view::json(&event)?;
        if self.open {
            let payload = reader.open_payload(&event)?;
            if let Some(members) = json.as_object_mut() {
                members.insert("opened_payload".to_owned(), payload);
            }
        }
        match format {
            Format::Text => output::text(&text(&event, &json)?)?,
            Format::Json => output::json(&json)?,
        }
        Ok(Exit::Done)
    }

    fn find(&self, reader: &Reader) -> Result<Stored, Failure> {
        if let (Some(session), Some(seq)) = (&self.session, self.seq) {
            let found = reader.event(&self.tenant.scope(session)?, seq)?;
            return found
                .ok_or_else(|| no_event(format!("session `{session}` has no event {seq}")));
        }
        by_prefix(self.hash.as_deref(), reader)
    }
}

/// The one event whose hash begins so.
pub(crate) fn by_prefix(prefix: Option<&str>, reader: &Reader) -> Result<Stored, Failure> {
    let Some(prefix) = prefix else {
        let unsaid = "which event? give its hash, or --session and --seq";
        return Err(Failure::new(Code::Usage, unsaid));
    };
    if prefix.len() < MIN_PREFIX || !prefix.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::new(
            Code::Hash,
            format!("`{prefix}` is not the start of a hash"),
        ));
    }
    by_hash(&prefix.to_ascii_lowercase(), reader)
}

/// Looks at every event: hashes have no index, because one would slow down every append.
fn by_hash(prefix: &str, reader: &Reader) -> Result<Stored, Failure> {
    let mut found: Option<Stored> = None;
    reader.each(&Filter::default(), 0, |event| {
        if view::read(&event)?.hash.to_string().starts_with(prefix) {
            if found.is_some() {
                return Err(no_event(format!(
                    "several events have a hash that starts with `{prefix}`"
                )));
            }
            found = Some(event);
        }
        Ok(())
    })?;
    found.ok_or_else(|| no_event(format!("no event has a hash that starts with `{prefix}`")))
}

fn text(event: &Stored, json: &Json) -> Result<String, Failure> {
    let line = view::read(event)?;
    let pretty = |member| {
        json.get(member)
            .map(|value| visible(&output::pretty(value)))
    };
    let prev = line
        .prev_hash
        .map_or_else(|| "none".to_owned(), |hash| hash.to_string());
    let mut lines = vec![
        format!("event    {} {}", line.seq, line.event_type),
        format!("session  {}", inline(&line.session_id)),
        format!("tenant   {}", inline(&line.tenant_id)),
        format!("time     {}", clock::text(line.ts_unix_ms)),
        format!("hash     {}", line.hash),
        format!("follows  {prev}"),
        format!("payload  {}", pretty("payload").unwrap_or_default()),
    ];
    lines.extend(pretty("opened_payload").map(|opened| format!("opened   {opened}")));
    Ok(lines.join("\n"))
}

fn no_event(message: String) -> Failure {
    Failure::new(Code::NoEvent, message)
}

const MIN_PREFIX: usize = 8;
