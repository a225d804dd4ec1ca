//! Sessions with a past.

use countersign_canon::Json;
use countersign_engine::Engine;
use countersign_event::payload::{
    MemoryRead, Payload, SanitizedText, ToolCallDenied, ToolCallProposed,
};
use countersign_event::{EventType, Scope};
use countersign_session::{Fact, Snapshot};

use crate::measure::Result;

/// How much there is in a session.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    calls: usize,
    sources: usize,
    keys: usize,
}

impl Extent {
    pub(crate) fn calls(calls: usize) -> Self {
        Self {
            calls,
            sources: 4,
            keys: 1,
        }
    }

    /// From a session that has done nothing to one that has everything that a snapshot holds.
    pub(crate) fn growing() -> impl Iterator<Item = Self> {
        [
            (0, 0, 0),
            (8, 2, 1),
            (32, 4, 4),
            (32, 64, 64),
            (32, 128, 128),
            (32, 256, 256),
        ]
        .into_iter()
        .map(|(calls, sources, keys)| Self {
            calls,
            sources,
            keys,
        })
    }
}

/// Records a history; returns how many bytes its snapshot has.
pub(crate) fn record(extent: &Extent, scope: &Scope, engine: &Engine) -> Result<usize> {
    let mut snapshot = Snapshot::default();
    for (seq, (event_type, payload)) in events(extent).enumerate() {
        snapshot.apply(&Fact {
            seq: seq as u64,
            ts_unix_ms: 1,
            event_type,
            payload: &payload,
        })?;
        let _recorded = engine
            .record(scope, event_type, payload)
            .map_err(|refusal| refusal.message().to_owned())?;
    }
    Ok(snapshot.to_bytes().len())
}

fn events(extent: &Extent) -> impl Iterator<Item = (EventType, Payload)> {
    let keys = (0..extent.keys).map(|number| {
        let text = SanitizedText {
            key: Some(format!("k{number}")),
            ..SanitizedText::default()
        };
        (EventType::SanitizedText, Payload::SanitizedText(text))
    });
    let sources = (0..extent.sources).map(|number| {
        let read = MemoryRead {
            memory_key: Some(format!("notes/of/day/{number}")),
            ..MemoryRead::default()
        };
        (EventType::MemoryRead, Payload::MemoryRead(read))
    });
    let calls = (0..extent.calls).flat_map(|number| [proposed(number), denied(number)]);
    keys.chain(sources).chain(calls)
}

fn proposed(number: usize) -> (EventType, Payload) {
    let call = ToolCallProposed {
        call_id: Some(format!("c{number}")),
        tool_name: Some(format!("tool_{}", number % 11)),
        args: Some(Json::from(number as u64)),
        ..ToolCallProposed::default()
    };
    (EventType::ToolCallProposed, Payload::ToolCallProposed(call))
}

fn denied(number: usize) -> (EventType, Payload) {
    let call = ToolCallDenied {
        call_id: Some(format!("c{number}")),
        reason_code: Some(format!("R{number}")),
        ..ToolCallDenied::default()
    };
    (EventType::ToolCallDenied, Payload::ToolCallDenied(call))
}
