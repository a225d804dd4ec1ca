//! Reading snapshots back: exactly what was written, and nothing else.

use countersign_session::Snapshot;

use crate::history::fold;

/// The snapshot's text with one change, and why it is refused.
fn check(from: &str, to: &str, expect: &str) {
    let text = text();
    assert!(text.contains(from), "{from} is not in {text}");
    let changed = text.replacen(from, to, 1);
    let refused = Snapshot::from_bytes(changed.as_bytes()).unwrap_err();
    assert_eq!(refused.to_string(), expect, "{changed}");
}

fn text() -> String {
    let snapshot = fold(&[
        (
            "TOOL_CALL_PROPOSED",
            r#"{"call_id":"c1","tool_name":"a","args":1}"#,
        ),
        ("TOOL_RESULT", r#"{"call_id":"c1","content":"x"}"#),
        ("MEMORY_READ", r#"{"memory_key":"k"}"#),
        ("HANDOFF_REQUESTED", r#"{"to_agent":"b"}"#),
        ("SANITIZED_TEXT", r#"{"key":"s1"}"#),
        ("SANITIZED_TEXT", r#"{"key":"s2"}"#),
        ("TOOL_CALL_PROPOSED", r#"{"call_id":"c2","tool_name":"b"}"#),
    ]);
    let bytes = snapshot.to_bytes();
    assert_eq!(Snapshot::from_bytes(&bytes).unwrap(), snapshot);
    String::from_utf8(bytes).unwrap()
}

const NOT_EXACT: &str = "not exactly what a snapshot of this version writes";

#[test]
fn other_spellings_are_refused() {
    check("{\"closed\"", "{ \"closed\"", NOT_EXACT);
    check("\"steps_consumed\":2", "\"steps_consumed\":2.0", NOT_EXACT);
    check("\"events\":7", "\"events\":7e0", NOT_EXACT);
    check("\"name\":\"k\"", "\"name\":\"\\u006b\"", NOT_EXACT);
    check("\"version\":3", "\"version\":2", NOT_EXACT);
    check("\"version\":3", "\"version\":3,\"zzz\":0", NOT_EXACT);
    check(
        "\"active\":true",
        "\"active\":true,\"also\":null",
        NOT_EXACT,
    );
    check("\"steps_consumed\":2", "\"steps_consumed\":3", NOT_EXACT);
    check(
        "{\"key\":\"s1\",\"seq\":4},{\"key\":\"s2\",\"seq\":5}",
        "{\"key\":\"s2\",\"seq\":5},{\"key\":\"s1\",\"seq\":4}",
        NOT_EXACT,
    );
    check(
        "{\"key\":\"s1\",\"seq\":4}",
        "{\"key\":\"s2\",\"seq\":5}",
        NOT_EXACT,
    );
}

#[test]
fn what_is_no_snapshot_is_refused_with_its_place() {
    check(
        "{\"closed\":false,",
        "{",
        "not a snapshot: expected a value at `/closed`",
    );
    check(
        "\"closed\":false",
        "\"closed\":null",
        "not a snapshot: expected a boolean at `/closed`",
    );
    let number = "not a snapshot: expected a whole number from 0 to 2^53 - 1 at `/counters/events`";
    check("\"events\":7", "\"events\":-7", number);
    check("\"events\":7", "\"events\":9007199254740992", number);
    check("\"events\":7", "\"events\":\"7\"", number);
    let long = format!("\"key\":\"{}\"", "s".repeat(129));
    check(
        "\"key\":\"s2\"",
        &long,
        "not a snapshot: expected a short string at `/sanitized_keys/1/key`",
    );
    let label = "not a snapshot: expected one of `memory_read` `overflow` `tool_output` at `/taint/1/label`";
    check("\"label\":\"tool_output\"", "\"label\":\"output\"", label);
    let trust = "not a snapshot: expected one of `reduced` `full` at `/trust`";
    check("\"trust\":\"reduced\"", "\"trust\":\"none\"", trust);
    let calls = format!("\"recent_calls\":[{}", "0,".repeat(40));
    let too_many = "not a snapshot: expected an array that is not too long at `/recent_calls`";
    check("\"recent_calls\":[", &calls, too_many);
    let text = text();
    let at = text.find("\"outcome\":\"").unwrap() + 11;
    let hash = &text[at..at + 64];
    let digits = "not a snapshot: expected 64 lower-case hex digits at `/progress/tool/outcome`";
    check(hash, &hash.to_uppercase(), digits);
}

#[test]
fn what_is_not_json_is_refused() {
    check(
        "{\"closed\"",
        "{\"closed\":false,\"closed\"",
        "not a snapshot: duplicate key `closed` at `/closed` (byte 16)",
    );
    assert!(Snapshot::from_bytes(b"").is_err());
    assert!(Snapshot::from_bytes(b"null").is_err());
    let huge = text() + &" ".repeat(Snapshot::MAX_BYTES);
    let refused = Snapshot::from_bytes(huge.as_bytes()).unwrap_err();
    assert!(
        refused.to_string().contains("larger than 458752 bytes"),
        "{refused}"
    );
}

#[test]
fn the_empty_snapshot_has_these_bytes() {
    let expect = r#"{"closed":false,"counters":{"events":0,"model_calls_consumed":0,"session_start_ms":null,"steps_consumed":0,"tool_calls_consumed":0,"wall_time_ms":0},"handoff":null,"labels":[],"last":{"model_call_id":null,"policy_outcome":null,"tool_call_id":null,"tool_name":null,"tool_was_error":false},"open_calls":[],"progress":{"changed_at":null,"model":null,"tool":null},"recent_calls":[],"sanitized_keys":[],"taint":[],"trust":"full","version":3}"#;
    assert_eq!(
        String::from_utf8(Snapshot::default().to_bytes()).unwrap(),
        expect
    );
}
