//! Events as rows and as JSON.

use countersign_canon::{Json, Limits};
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

/// The public members, and which places are sealed.
fn about(line: &Line<'_>) -> String {
    let payload = Json::admit(line.payload, &ENVELOPE).unwrap_or(Json::Null);
    let members = payload
        .as_object()
        .into_iter()
        .flat_map(|members| members.iter());
    let mut parts: Vec<String> = members
        .filter(|(name, _)| *name != "sealed")
        .map(|(name, value)| format!("{name}={}", plain(value)))
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
    parts.join(" ")
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

/// What was stored was admitted before; only the envelope around it is new.
const ENVELOPE: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 130,
    ..Limits::event()
};
