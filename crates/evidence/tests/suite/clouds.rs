//! CloudEvents: the bytes, and what does not leave.

use countersign_canon::{Hash, Json, Limits};
use countersign_event::{EventType, Scope};
use countersign_evidence::Event;
use countersign_evidence::cloudevents::{CloudEvent, Converter, Producer, binary, bundle};
use countersign_redact::Redactor;

use crate::corpus::read;

fn producer() -> Producer {
    Producer {
        name: "countersign".to_owned(),
        version: "0.1.0".to_owned(),
        git: "unknown".to_owned(),
        source: "urn:countersign:node:test".to_owned(),
    }
}

fn event(seq: u64, event_type: EventType, payload: &str) -> Event {
    Event {
        seq,
        hash: Hash::of(b"event"),
        at_unix_ms: 1_760_000_000_000 + seq,
        event_type,
        payload: Json::admit(payload.as_bytes(), &Limits::event()).unwrap(),
    }
}

fn converted(session: &str, events: &[Event]) -> Vec<CloudEvent> {
    let scope = Scope::new("default", session).unwrap();
    let mut converter = Converter::new(&scope, producer(), Redactor::default());
    let converted = events.iter().map(|event| converter.convert(event).unwrap());
    converted.flatten().collect()
}

fn lines(events: &[CloudEvent]) -> Vec<u8> {
    let mut text = Vec::new();
    for event in events {
        event.to_json().write_jcs(&mut text).unwrap();
        text.push(b'\n');
    }
    text
}

/// One event of each type, with what must not leave wherever it can stand.
fn session() -> Vec<Event> {
    let payload = r#"{"call_id":"c1","tool_name":"shell","args":{"password":"hunter2","path":"/home/bob/a.txt"},
        "approval_token":"TOKEN-7f","submission":"SIGNED-7f","envelope":"ENVELOPE-7f","content":"CONTENT-7f",
        "prompt":"PROMPT-7f","context":"CONTEXT-7f","text":"TEXT-7f","x_other":"OTHER-7f","outcome":"allow",
        "verdict":"allow","reason":"OK","message":"mail bob@example.com","result_labels":["untrusted"],
        "policy_digest":"sha256:5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f",
        "approval_id":"apr_5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"}"#;
    let types = EventType::ALL.iter().enumerate();
    types
        .map(|(seq, event_type)| event(seq as u64, *event_type, payload))
        .collect()
}

#[test]
fn the_bytes_stay_the_same() {
    let text = lines(&converted("ses_1", &session()));
    let file = "cloudevents/golden.ndjson";
    if std::env::var_os("COUNTERSIGN_BLESS").is_some() {
        let path = format!("{}/../../corpus/{file}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, &text).unwrap();
    }
    assert!(text == read(file), "{file} differs");
}

#[test]
fn what_is_forbidden_secret_or_unknown_does_not_leave() {
    let events = converted("ses_1", &session());
    let text = String::from_utf8(lines(&events)).unwrap();
    for hidden in ["-7f", "hunter2", "bob", "x_other"] {
        assert!(!text.contains(hidden), "{hidden} leaves");
    }
    assert!(text.contains("apr_5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f"));
    assert!(text.contains(r#""dropped":["#));
}

#[test]
fn ids_and_sequences_begin_with_the_start_of_the_run() {
    let events = converted("ses_1", &session());
    assert_eq!(events.len(), EventType::ALL.len() + 1);
    for (seq, event) in events.iter().enumerate() {
        assert_eq!(event.text("id"), format!("ses_1:{seq}"));
    }
    assert_eq!(events[0].text("type"), "assay.profile.started");
    let decision = events
        .iter()
        .find(|it| it.text("type") == "assay.tool.decision");
    let data = decision.unwrap().data();
    assert_eq!(data.get("decision").and_then(Json::as_str), Some("allow"));
    assert_eq!(data.get("tool").and_then(Json::as_str), Some("shell"));
}

#[test]
fn a_session_whose_name_cannot_stand_in_an_id_becomes_a_digest() {
    let first = event(0, EventType::MemoryRead, "{}");
    for session in [
        "a:b",
        "a b",
        "ü",
        "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB",
    ] {
        let events = converted(session, std::slice::from_ref(&first));
        let run = events[0].text("assayrunid");
        assert!(run.starts_with("run_") && !run.contains(':'), "{run}");
    }
}

#[test]
fn headers_hold_nothing_that_a_header_may_not_hold() {
    let payload = r#"{"call_id":"c","tool_name":"ä \"x%"}"#;
    let events = converted("s", &[event(0, EventType::ToolCallProposed, payload)]);
    let request = binary(&events[1]).unwrap();
    let header = |name: &str| {
        let found = request.headers.iter().find(|(it, _)| it == name);
        found.unwrap().1.clone()
    };
    assert_eq!(header("ce-subject"), "tool:%C3%A4%20%22x%25");
    assert_eq!(header("ce-assayseq"), "1");
    assert_eq!(header("ce-assaypii"), "false");
    assert_eq!(header("content-type"), "application/json");
}

#[test]
fn a_bundle_is_the_same_bytes_and_needs_an_event() {
    let events = converted("ses_1", &session());
    let one = bundle(&events, &producer()).unwrap();
    assert_eq!(one, bundle(&events, &producer()).unwrap());
    assert!(bundle(&[], &producer()).is_err());
}
