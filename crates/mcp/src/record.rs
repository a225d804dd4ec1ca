//! What the log keeps about messages.

use countersign_canon::{Digest, Json, Limits};
use countersign_event::payload::{
    ErrorRaised, MemoryRead, MemoryWrite, ModelCallFinished, ModelCallStarted,
};
use countersign_event::{EventType, Payload};

/// An event that needs no decision.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What happened.
    pub event_type: EventType,
    /// Its content.
    pub payload: Payload,
}

/// Something went wrong between the peers.
pub(crate) fn fault(code: &str, message: String) -> Entry {
    Entry {
        event_type: EventType::ErrorRaised,
        payload: Payload::ErrorRaised(ErrorRaised {
            code: Some(code.to_owned()),
            fatal: Some(false),
            message: Some(Json::from(message)),
            ..ErrorRaised::default()
        }),
    }
}

/// Content came from the server: it is untrusted.
pub(crate) fn read(key: String, server: &str, part: &[u8]) -> Entry {
    Entry {
        event_type: EventType::MemoryRead,
        payload: Payload::MemoryRead(MemoryRead {
            memory_key: Some(key),
            memory_store: Some(server.to_owned()),
            bytes_read: Some(part.len() as u64),
            content: Some(content(part)),
            ..MemoryRead::default()
        }),
    }
}

/// Content went to the server, or is kept about it.
pub(crate) fn write(key: String, server: &str, part: &[u8]) -> Entry {
    Entry {
        event_type: EventType::MemoryWrite,
        payload: Payload::MemoryWrite(MemoryWrite {
            memory_key: Some(key),
            memory_store: Some(server.to_owned()),
            bytes_written: Some(part.len() as u64),
            content: Some(content(part)),
            ..MemoryWrite::default()
        }),
    }
}

/// The server asks the client's model.
pub(crate) fn sampling_began(call_id: String, server: &str, params: &[u8]) -> Entry {
    Entry {
        event_type: EventType::ModelCallStarted,
        payload: Payload::ModelCallStarted(ModelCallStarted {
            call_id: Some(call_id),
            provider: Some(format!("mcp:{server}")),
            prompt: Some(content(params)),
            ..ModelCallStarted::default()
        }),
    }
}

/// The client's model answered the server.
pub(crate) fn sampling_ended(call_id: String, answer: &[u8]) -> Entry {
    Entry {
        event_type: EventType::ModelCallFinished,
        payload: Payload::ModelCallFinished(ModelCallFinished {
            call_id: Some(call_id),
            content: Some(content(answer)),
            ..ModelCallFinished::default()
        }),
    }
}

/// A part of a frame as an event can hold it: the value itself, or its text where an event cannot
/// hold its numbers, or its digest where it is too large.
pub(crate) fn content(part: &[u8]) -> Json {
    told(part).0
}

/// The same, and whether it is the value itself.
pub(crate) fn told(part: &[u8]) -> (Json, bool) {
    let limits = Limits {
        max_bytes: LARGEST,
        ..Limits::event()
    };
    if let Ok(value) = Json::admit(part, &limits) {
        return (value, true);
    }
    let mut members = vec![
        ("bytes", Json::from(part.len() as u64)),
        ("digest", Json::from(Digest::of(part).to_string())),
    ];
    if part.len() <= LARGEST / 2 {
        members.push(("text", Json::from(String::from_utf8_lossy(part).as_ref())));
    }
    (Json::object(members), false)
}

/// An event has at most four times as much.
const LARGEST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_kept_as_far_as_an_event_can_hold_it() {
        assert_eq!(content(b"[1]"), Json::from(vec![Json::from(1u64)]));
        let exact = content(b"18446744073709551615");
        assert_eq!(
            exact.get("text").and_then(Json::as_str),
            Some("18446744073709551615")
        );
        let huge = format!("\"{}\"", "x".repeat(LARGEST));
        let huge_content = content(huge.as_bytes());
        assert_eq!(huge_content.get("text"), None);
        assert_eq!(
            huge_content.get("digest").and_then(Json::as_str),
            Some(Digest::of(huge.as_bytes()).to_string().as_str())
        );
    }
}
