//! The chain of a session, computed again from what the server hands out.

use countersign_canon::{Hash, Json};

/// Holds listed events against the envelope: `hash` is SHA-256 over the RFC 8785 form of all other
/// members, `seq` counts from 0, `prev_hash` is `null` and then the hash before.
pub(crate) fn check(events: &[Json]) -> Json {
    let mut previous: Option<String> = None;
    for (index, event) in events.iter().enumerate() {
        if let Err(problem) = link(event, index as u64, previous.as_deref()) {
            return Json::object([
                ("valid", Json::from(false)),
                ("events", Json::from(events.len() as u64)),
                ("first_bad_seq", Json::from(index as u64)),
                ("problem", Json::from(problem)),
            ]);
        }
        previous = event.get("hash").and_then(Json::as_str).map(str::to_owned);
    }
    let types = events.iter().map(|event| {
        let event_type = event.get("event_type");
        event_type.cloned().unwrap_or(Json::Null)
    });
    Json::object([
        ("valid", Json::from(!events.is_empty())),
        ("events", Json::from(events.len() as u64)),
        ("types", Json::Array(types.collect())),
    ])
}

fn link(event: &Json, seq: u64, previous: Option<&str>) -> Result<(), String> {
    let Some(members) = event.as_object() else {
        return Err("an event is no object".to_owned());
    };
    if event.get("seq").and_then(Json::as_u64) != Some(seq) {
        return Err(format!("the event in place {seq} has another number"));
    }
    let prev_hash = event.get("prev_hash");
    let links = match previous {
        None => matches!(prev_hash, Some(Json::Null)),
        Some(hash) => prev_hash.and_then(Json::as_str) == Some(hash),
    };
    if !links {
        return Err("`prev_hash` is not the hash of the event before".to_owned());
    }
    let mut covered = members.clone();
    covered.remove("id");
    let hash = covered.remove("hash");
    let text = Json::Object(covered)
        .to_jcs()
        .map_err(|error| error.to_string())?;
    let computed = Hash::of(&text).to_string();
    match hash.as_ref().and_then(Json::as_str) == Some(computed.as_str()) {
        true => Ok(()),
        false => Err(format!("`hash` is not {computed}")),
    }
}
