//! `countersign log append`

use std::io::Write as _;

use clap::Args;
use countersign_canon::{Hash, Json};
use countersign_event::{EventType, Head, MAX_EXACT, Payload, Scope};
use countersign_store::{At, Draft, Pending, Recorded, Store};

use crate::cli::{DataFolder, Tenant};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::{clock, input};

mod batch;

#[derive(Args)]
#[command(after_help = "\
Event types: MODEL_CALL_STARTED MODEL_CALL_FINISHED TOOL_CALL_PROPOSED TOOL_CALL_ALLOWED
  TOOL_CALL_DENIED TOOL_CALL_EXECUTED TOOL_RESULT POLICY_DECISION APPROVAL_REQUESTED
  APPROVAL_DECIDED MEMORY_READ MEMORY_WRITE HANDOFF_REQUESTED HANDOFF_COMPLETED
  CHECKPOINT_CREATED TERMINATION ERROR_RAISED SANITIZED_TEXT

Examples:
  countersign log append --session s1 --type TOOL_CALL_PROPOSED \\
      --payload '{\"call_id\":\"c1\",\"tool_name\":\"fs.read\",\"args\":{\"path\":\"/etc/hosts\"}}'
  countersign log append --session s1 --type TOOL_RESULT --payload @result.json
  countersign log append --session s1 --batch events.jsonl")]
pub(crate) struct Append {
    #[command(flatten)]
    data: DataFolder,
    #[command(flatten)]
    tenant: Tenant,
    /// The session; a new one begins with its first event
    #[arg(long, value_name = "SESSION")]
    session: String,
    /// The event type
    #[arg(long = "type", value_name = "TYPE", required_unless_present = "batch")]
    event_type: Option<String>,
    /// The payload: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", required_unless_present = "batch")]
    payload: Option<String>,
    /// When it happened, in milliseconds since 1970 [default: now]
    #[arg(long, value_name = "MS", conflicts_with = "batch")]
    ts_unix_ms: Option<u64>,
    /// Append only if this is the next sequence number
    #[arg(long, value_name = "N", conflicts_with = "batch")]
    seq: Option<u64>,
    /// Append only after the event with this hash
    #[arg(long, value_name = "HASH", requires = "seq", conflicts_with = "batch")]
    prev_hash: Option<String>,
    /// Append one event a line: {"type":…,"payload":…,"ts_unix_ms":…}; FILE or - for standard input
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["event_type", "payload"])]
    batch: Option<String>,
}

impl Append {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let scope = self.tenant.open_scope(&self.session)?;
        if let Some(file) = &self.batch {
            let source = input::lines(file)?;
            return batch::append(source, &scope, &self.data.store()?, format);
        }
        let event_type = parse_type(self.event_type.as_deref().unwrap_or_default())?;
        let payload = input::json_argument(self.payload.as_deref().unwrap_or_default())?;
        let draft = draft(event_type, payload, self.ts_unix_ms, &scope)?;
        let store = self.data.store()?;
        let recorded = match self.place(&store, &scope)? {
            Some(head) => store
                .append(draft, At::Head(head))
                .and_then(Pending::wait)?,
            None => store.record(draft)?,
        };
        print(&recorded, format).map_err(Failure::loud)?;
        Ok(Exit::Done)
    }

    /// The head that the event must follow, if the caller has named one.
    fn place(&self, store: &Store, scope: &Scope) -> Result<Option<Head>, Failure> {
        let Some(seq) = self.seq else {
            return Ok(None);
        };
        let given = self.prev_hash.as_deref().map(parse_hash).transpose()?;
        let Some(before) = seq.checked_sub(1) else {
            return match given {
                None => Ok(Some(Head::GENESIS)),
                Some(_) => Err(Failure::new(
                    Code::Hash,
                    "the first event has none before it",
                )),
            };
        };
        let prev_hash = match given {
            Some(hash) => hash,
            // Only the number was given: whatever event has the number before it will do.
            None => match store.reader().session(scope)? {
                Some(session) if session.events == seq => session.head,
                _ => Hash::from_bytes([0; 32]),
            },
        };
        Ok(Some(Head::after(before, prev_hash)))
    }
}

pub(crate) fn parse_hash(text: &str) -> Result<Hash, Failure> {
    text.parse()
        .map_err(|_| Failure::new(Code::Hash, format!("`{text}` is not a hash")))
}

pub(super) fn parse_type(text: &str) -> Result<EventType, Failure> {
    text.parse()
        .map_err(|_| Failure::new(Code::EventType, format!("unknown event type `{text}`")))
}

pub(crate) fn draft(
    event_type: EventType,
    payload: Json,
    ts_unix_ms: Option<u64>,
    scope: &Scope,
) -> Result<Draft, Failure> {
    let ts_unix_ms = ts_unix_ms.map_or_else(clock::now_unix_ms, Ok)?;
    if ts_unix_ms > MAX_EXACT {
        return Err(Failure::new(
            Code::Moment,
            format!("{ts_unix_ms} is not a time in milliseconds"),
        ));
    }
    let payload = Payload::admit(event_type, payload)?;
    Ok(Draft {
        scope: scope.clone(),
        ts_unix_ms,
        event_type,
        payload,
    })
}

fn print(recorded: &Recorded, format: Format) -> Result<(), Failure> {
    match format {
        Format::Text => {
            let mut out = output::stdout();
            writeln!(out, "{} {}", recorded.seq(), recorded.hash())?;
            out.flush()?;
        }
        Format::Json => output::json(&Json::object([
            ("seq", Json::from(recorded.seq())),
            ("hash", Json::from(recorded.hash().to_string())),
        ]))?,
    }
    Ok(())
}
