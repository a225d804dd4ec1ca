//! The exact bytes of events, against values that another program worked out.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use countersign_canon::{Digest, Json, Limits};
use countersign_event::payload::Split;
use countersign_event::{
    Body, EventType, Head, Line, Opening, Order, Payload, Salt, Scope, Seal, Sealed,
};
use serde_json::Value;

#[test]
fn every_golden_event_has_its_golden_bytes() {
    let golden = golden();
    let mut types = BTreeSet::new();
    for chain in golden["chains"].as_array().unwrap() {
        let scope = Scope::new(text(&chain["tenant_id"]), text(&chain["session_id"])).unwrap();
        let mut head = Head::GENESIS;
        let mut order = Order::default();
        for event in chain["events"].as_array().unwrap() {
            let event_type: EventType = text(&event["event_type"]).parse().unwrap();
            let (body, sealed) = seal(event, event_type, &scope, &head);
            assert_eq!(
                std::str::from_utf8(sealed.line()).unwrap(),
                text(&event["line"])
            );
            assert_eq!(sealed.hash().to_string(), text(&event["hash"]));
            order.admit(event_type, body.refs()).unwrap();
            read_back(&sealed, &body, &scope, &head);
            head = sealed.head();
            types.insert(event_type);
        }
    }
    assert_eq!(
        types.len(),
        EventType::ALL.len(),
        "every type has a golden event"
    );
}

#[test]
fn every_golden_commitment_has_its_golden_digest() {
    for case in golden()["commitments"].as_array().unwrap() {
        let opening = Opening {
            salt: salt(text(&case["salt"])),
            value: admit(text(&case["value"])),
        };
        assert_eq!(
            opening.commitment().unwrap().to_string(),
            text(&case["commitment"])
        );
    }
}

#[test]
fn the_golden_file_is_what_its_generator_writes() {
    let output = Command::new("python3")
        .arg(corpus("make_golden.py"))
        .arg("--check")
        .output()
        .expect("this test runs the generator: `python3` must be installed");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

fn seal(event: &Value, event_type: EventType, scope: &Scope, head: &Head) -> (Body, Sealed) {
    let payload = Payload::admit(event_type, admit(text(&event["payload"]))).unwrap();
    let Split { public, sealed } = payload.split();
    let commitments = sealed.into_iter().map(|(place, value)| {
        let salt = salt(text(&event["salts"][place]));
        (
            place.to_owned(),
            Opening { salt, value }.commitment().unwrap(),
        )
    });
    let seal = event["ciphertext"].as_str().map(|ciphertext| Seal {
        ciphertext: Digest::of(&unhex(ciphertext)),
        commitments: commitments.collect(),
    });
    let body = Body::new(public, seal).unwrap();
    let ts_unix_ms = event["ts_unix_ms"].as_u64().unwrap();
    let sealed = Sealed::seal(event_type, ts_unix_ms, &body, scope, head).unwrap();
    (body, sealed)
}

/// The line gives back every field.
fn read_back(sealed: &Sealed, body: &Body, scope: &Scope, head: &Head) {
    let line = Line::read(sealed.line()).unwrap();
    assert_eq!(line.event_type, sealed.event_type());
    assert_eq!(line.seq, sealed.seq());
    assert_eq!(line.seq, head.count());
    assert_eq!(line.ts_unix_ms, sealed.ts_unix_ms());
    assert_eq!(line.tenant_id, scope.tenant.as_str());
    assert_eq!(line.session_id, scope.session.as_str());
    assert_eq!(line.prev_hash, head.hash());
    assert_eq!(line.prev_hash, sealed.prev_hash());
    assert_eq!(line.hash, sealed.hash());
    assert_eq!(line.computed_hash(), sealed.hash());
    assert_eq!(line.payload, body.text());
    assert_eq!(&line.refs, body.refs());
    assert_eq!(line.text(), sealed.line());
}

fn golden() -> Value {
    let text = std::fs::read(corpus("golden.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn corpus(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../corpus/event", name]
        .iter()
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn admit(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn salt(hex: &str) -> Salt {
    Salt::from_bytes(unhex(hex).try_into().unwrap())
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}
