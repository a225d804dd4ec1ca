//! Events as rows and as JSON.

use countersign_canon::{Digest, Hash, Json, Limits};
use countersign_event::Line;
use countersign_store::Stored;

use crate::clock;
use crate::errors::{Code, Failure};
use crate::output::{Table, short};

pub(crate) fn table(events: &[Stored]) -> Result<Table, Failure> {
    let mut table = Table::new(&["SESSION", "SEQ", "TIME", "TYPE", "HASH", "WHAT"]);
    for event in events {
        table.row(cells(event)?);
    }
    Ok(table)
}

/// The same for one session, which nobody has to be told on each line.
pub(crate) fn session_table(events: &[Stored]) -> Result<Table, Failure> {
    let mut table = Table::new(&["SEQ", "TIME", "TYPE", "HASH", "WHAT"]);
    for event in events {
        let [_, cells @ ..] = cells(event)?;
        table.row(cells);
    }
    Ok(table)
}

/// One event in one line.
pub(crate) fn cells(event: &Stored) -> Result<[String; 6], Failure> {
    let line = read(event)?;
    Ok([
        line.session_id.to_string(),
        line.seq.to_string(),
        clock::text(line.ts_unix_ms),
        line.event_type.to_string(),
        short(&line.hash),
        about(&line),
    ])
}

pub(crate) fn json(event: &Stored) -> Result<Json, Failure> {
    read(event)?;
    Ok(Json::admit(&event.line, &ENVELOPE)?)
}

pub(crate) fn read(event: &Stored) -> Result<Line<'_>, Failure> {
    Line::read(&event.line)
        .map_err(|error| Failure::new(Code::Damaged, format!("row {}: {error}", event.id)))
}

/// The public members, and which places are sealed: first what was called and what became of it, last what nobody
/// reads. A cell of a table is cut where it is too long.
fn about(line: &Line<'_>) -> String {
    let payload = Json::admit(line.payload, &ENVELOPE).unwrap_or(Json::Null);
    let members = payload
        .as_object()
        .into_iter()
        .flat_map(|members| members.iter());
    let mut members: Vec<(&str, String)> = members
        .filter(|(name, _)| *name != "sealed")
        .map(|(name, value)| (name, plain(value)))
        .collect();
    members.sort_by_key(|(name, value)| rank(name, value));
    let (digests, others): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|(_, value)| is_digest(value));
    let mut parts: Vec<String> = others
        .iter()
        .map(|(name, value)| match *name {
            "call_id" => format!("{name}={}", cut(value, LONGEST_ID)),
            _ => format!("{name}={value}"),
        })
        .collect();
    let seal = line.seal.and_then(|seal| seal.read().ok());
    let sealed: Vec<String> = seal
        .into_iter()
        .flat_map(|seal| seal.commitments)
        .map(|(place, _)| sealed_name(&place))
        .collect();
    if !sealed.is_empty() {
        parts.push(format!("sealed({})", sealed.join(",")));
    }
    let digests = digests.iter();
    parts.extend(digests.map(|(name, value)| format!("{name}={}", cut(value, SHORT_DIGEST))));
    parts.join(" ")
}

/// Where a member stands. Those of the same rank keep their order.
fn rank(name: &str, value: &str) -> usize {
    let first = FIRST.iter().position(|one| *one == name);
    first.unwrap_or(FIRST.len() + usize::from(is_digest(value)))
}

fn is_digest(value: &str) -> bool {
    value.parse::<Digest>().is_ok() || value.parse::<Hash>().is_ok()
}

fn cut(value: &str, longest: usize) -> String {
    match value.char_indices().nth(longest) {
        None => value.to_owned(),
        Some((at, _)) => format!("{}…", value.get(..at).unwrap_or_default()),
    }
}

fn sealed_name(place: &str) -> String {
    match place {
        "" => "all".to_owned(),
        place => place.trim_start_matches('/').to_owned(),
    }
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => String::from_utf8(other.to_jcs().unwrap_or_default()).unwrap_or_default(),
    }
}

/// What somebody who looks for a call wants to see.
const FIRST: [&str; 10] = [
    "call_id",
    "tool_name",
    "server",
    "outcome",
    "verdict",
    "approved",
    "reason_code",
    "reason",
    "code",
    "approval_id",
];
/// SECURITY: clients choose the ids of their calls, and none may crowd out what was called.
const LONGEST_ID: usize = 40;
/// `sha256:` and the first digits.
const SHORT_DIGEST: usize = 19;

/// What was stored was admitted before; only the envelope around it is new.
const ENVELOPE: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 130,
    ..Limits::event()
};
