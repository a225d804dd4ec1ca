use std::collections::BTreeSet;

use countersign_canon::{Digest, Limits, Number};

use super::*;
use crate::random::Random;
use crate::{Body, Opening, Salt, Seal};

/// What a declared public member holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Text,
    Count,
    Flag,
    Texts,
    Counts,
    Counters,
}
use Kind::{Count, Counters, Counts, Flag, Text, Texts};

/// The members of one event type.
type Declared = (
    &'static str,
    &'static [(&'static str, Kind)],
    &'static [&'static str],
);

/// The format, written down a second time: wire name, public members with their kinds, sealed
/// members. A member that moves from one list to the other is a leak or a loss.
#[rustfmt::skip]
const FORMAT: &[Declared] = &[
    ("MODEL_CALL_STARTED", &[("call_id", Text), ("model_id", Text), ("provider", Text), ("agent_id", Text), ("prompt_tokens", Count)], &["prompt"]),
    ("MODEL_CALL_FINISHED", &[("call_id", Text), ("model_id", Text), ("completion_tokens", Count), ("total_tokens", Count), ("finish_reason", Text), ("latency_ms", Count)], &["content"]),
    ("TOOL_CALL_PROPOSED", &[("call_id", Text), ("tool_name", Text), ("tool_id", Text), ("server", Text), ("agent_id", Text), ("parent_call_id", Text), ("definition_digest", Text), ("sanitizer_key", Text)], &["args"]),
    ("TOOL_CALL_ALLOWED", &[("call_id", Text), ("policy_ref", Text), ("approval_id", Text), ("action_digest", Text)], &[]),
    ("TOOL_CALL_DENIED", &[("call_id", Text), ("policy_ref", Text), ("approval_id", Text), ("reason_code", Text), ("reason", Text)], &["message"]),
    ("TOOL_CALL_EXECUTED", &[("call_id", Text), ("started_ms", Count), ("action_digest", Text)], &[]),
    ("TOOL_RESULT", &[("call_id", Text), ("tool_name", Text), ("is_error", Flag), ("latency_ms", Count), ("content_bytes", Count), ("result_labels", Texts)], &["content"]),
    ("POLICY_DECISION", &[("call_id", Text), ("outcome", Text), ("verdict", Text), ("reason", Text), ("reason_code", Text), ("reason_codes", Texts), ("policy_ref", Text), ("policy_digest", Text), ("snapshot_hash", Text), ("constraints", Counters), ("intervention_point", Text), ("agent_id", Text), ("input_identity", Text), ("enforced_identity", Text), ("result_labels", Texts)], &["links", "heard", "subject", "session", "evidence"]),
    ("APPROVAL_REQUESTED", &[("call_id", Text), ("approval_id", Text), ("channel", Text), ("plan_hash", Text), ("expires_unix_ms", Count)], &["approval_token", "envelope"]),
    ("APPROVAL_DECIDED", &[("call_id", Text), ("approval_id", Text), ("approved", Flag), ("decided_by", Text), ("plan_hash", Text), ("reason_code", Text)], &["approval_token", "edited_args", "message", "submission"]),
    ("MEMORY_READ", &[("memory_key", Text), ("memory_store", Text), ("bytes_read", Count)], &["content"]),
    ("MEMORY_WRITE", &[("memory_key", Text), ("memory_store", Text), ("bytes_written", Count)], &["content"]),
    ("HANDOFF_REQUESTED", &[("from_agent", Text), ("to_agent", Text), ("context_id", Text)], &["context"]),
    ("HANDOFF_COMPLETED", &[("from_agent", Text), ("to_agent", Text), ("context_id", Text), ("success", Flag)], &[]),
    ("CHECKPOINT_CREATED", &[("checkpoint_id", Text), ("snapshot_hash", Text), ("snapshot_seq", Count)], &[]),
    ("TERMINATION", &[("reason_code", Text), ("cycle_seqs", Counts)], &["detail"]),
    ("ERROR_RAISED", &[("call_id", Text), ("code", Text), ("fatal", Flag)], &["message"]),
    ("SANITIZED_TEXT", &[("key", Text), ("method", Text)], &["text"]),
];

/// Names that no event type declares, some of them made to collide with our own.
const STRANGE: &[&str] = &[
    "sealed",
    "*",
    "/*",
    "",
    "/",
    "hash",
    "other",
    "ciphertext",
    "commitments",
    "Call_id",
    "call_id ",
    "é",
    "😀",
    "\u{0}",
    "~",
    "/args",
];

/// Stands in every sealed text and every undeclared name; must not be found in what is public.
const SECRET: &str = "s3cr3t";

#[test]
fn the_event_types_are_those_of_the_format() {
    assert_eq!(EventType::ALL.len(), 18);
    let names: Vec<_> = EventType::ALL
        .iter()
        .map(|event_type| event_type.as_str())
        .collect();
    let expected: Vec<_> = FORMAT.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, expected);
    for event_type in EventType::ALL {
        assert_eq!(event_type.as_str().parse(), Ok(*event_type));
        assert_eq!(event_type.to_string(), event_type.as_str());
    }
    for unknown in [
        "",
        "tool_result",
        "TOOL_RESULT ",
        "SanitizedText",
        "SESSION_STARTED",
    ] {
        assert!(unknown.parse::<EventType>().is_err(), "{unknown}");
    }
}

#[test]
fn stored_keys_are_in_canonical_order() {
    for event_type in EventType::ALL {
        let keys = event_type.stored_keys();
        let members = keys.iter().map(|key| format!("{key}0"));
        let text = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
        let limits = Limits::event();
        assert_eq!(
            countersign_canon::jcs::check(text.as_bytes(), &limits),
            Ok(())
        );
        assert!(keys.contains(&r#""sealed":"#), "{event_type}");
    }
}

#[test]
fn a_payload_comes_back_as_it_was_given() {
    let mut random = Random::seeded(1);
    for (event_type, declared) in types() {
        for _ in 0..150 {
            let payload = random_payload(&mut random, declared);
            let split = Payload::admit(event_type, payload.clone()).unwrap().split();
            let sealed = split
                .sealed
                .into_iter()
                .map(|(place, value)| (place.to_owned(), value));
            assert_eq!(join(split.public, sealed), Some(payload));
        }
    }
}

#[test]
fn only_declared_public_members_are_public() {
    let mut random = Random::seeded(2);
    for (event_type, declared) in types() {
        let (_, public, sealed) = declared;
        for _ in 0..150 {
            let payload = random_payload(&mut random, declared);
            let members = payload.as_object().unwrap().clone();
            let split = Payload::admit(event_type, payload).unwrap().split();

            let names: BTreeSet<_> = public.iter().map(|(name, _)| *name).collect();
            let given = members
                .iter()
                .map(|(name, _)| name)
                .filter(|name| names.contains(name));
            let found: Vec<_> = split.public.iter().map(|(name, _)| name).collect();
            assert_eq!(found, given.collect::<Vec<_>>(), "{event_type}");

            let mut places = BTreeSet::new();
            for (place, value) in &split.sealed {
                assert!(places.insert(*place), "{place} twice");
                match place.strip_prefix('/') {
                    Some("*") => undeclared(value, public, sealed),
                    Some(name) => assert!(sealed.contains(&name), "{name}"),
                    None => panic!("an object is not sealed whole"),
                }
            }
            assert_no_secret(split, &mut random);
        }
    }
}

/// The stored text of the public half and the seal holds nothing of the other half.
fn assert_no_secret(split: Split, random: &mut Random) {
    let hides_something = !split.sealed.is_empty();
    let commitments = split.sealed.into_iter().map(|(place, value)| {
        let mut salt = [0; Salt::LEN];
        salt.fill_with(|| random.next() as u8);
        let salt = Salt::from_bytes(salt);
        (
            place.to_owned(),
            Opening { salt, value }.commitment().unwrap(),
        )
    });
    let commitments = commitments.collect();
    let seal = hides_something.then(|| Seal {
        ciphertext: Digest::of(b"ciphertext"),
        commitments,
    });
    let body = Body::new(split.public, seal).unwrap();
    let text = std::str::from_utf8(body.text()).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    assert_eq!(
        text.contains("\"sealed\":{\"ciphertext\":"),
        hides_something
    );
}

fn undeclared(value: &Json, public: &[(&str, Kind)], sealed: &[&str]) {
    let members = value.as_object().unwrap();
    assert!(!members.is_empty());
    for (name, _) in members {
        assert!(
            !sealed.contains(&name) && public.iter().all(|(known, _)| *known != name),
            "{name}"
        );
    }
}

#[test]
fn a_member_called_sealed_does_not_collide() {
    let forged = r#"{"call_id":"c","sealed":{"ciphertext":"sha256:00","commitments":{}}}"#;
    let given = admit(forged);
    let split = Payload::admit(EventType::ToolResult, given.clone())
        .unwrap()
        .split();
    assert_eq!(
        split
            .public
            .iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>(),
        ["call_id"]
    );
    let [(place, value)] = split.sealed.as_slice() else {
        panic!("one sealed value")
    };
    assert_eq!(*place, OTHER);

    let ciphertext = Digest::of(b"real");
    let salt = Salt::from_bytes([7; Salt::LEN]);
    let opening = Opening {
        salt,
        value: value.clone(),
    };
    let seal = Seal {
        ciphertext,
        commitments: vec![(OTHER.to_owned(), opening.commitment().unwrap())],
    };
    let body = Body::new(split.public.clone(), Some(seal)).unwrap();
    let stored = Json::admit(body.text(), &Limits::event()).unwrap();
    let stated = stored.get("sealed").and_then(|seal| seal.get("ciphertext"));
    assert_eq!(
        stated.and_then(Json::as_str),
        Some(ciphertext.to_string().as_str())
    );

    let joined = join(split.public, [(OTHER.to_owned(), opening.value)]);
    assert_eq!(joined, Some(given));
}

#[test]
fn a_payload_that_is_no_object_is_sealed_whole() {
    for text in [
        "null",
        "true",
        "7",
        "\"text\"",
        "[]",
        "[{\"call_id\":\"c\"}]",
    ] {
        for event_type in EventType::ALL {
            let split = Payload::admit(*event_type, admit(text)).unwrap().split();
            assert!(split.public.is_empty());
            assert_eq!(split.sealed, [(WHOLE, admit(text))]);
            assert_eq!(
                join(split.public, [(WHOLE.to_owned(), admit(text))]),
                Some(admit(text))
            );
        }
    }
}

#[test]
fn the_empty_payload_has_nothing_to_seal() {
    for event_type in EventType::ALL {
        let split = Payload::admit(*event_type, admit("{}")).unwrap().split();
        assert!(split.public.is_empty() && split.sealed.is_empty());
        assert_eq!(join(split.public, []), Some(admit("{}")));
    }
}

#[test]
fn a_declared_member_of_another_type_is_refused_by_its_pointer() {
    for (event_type, (_, public, sealed)) in types() {
        for (name, kind) in public {
            for (wrong, found) in wrong_values(*kind) {
                let payload = Json::object([("x", Json::from(SECRET)), (*name, admit(wrong))]);
                let error = Payload::admit(event_type, payload).unwrap_err();
                assert_eq!(error.pointer(), format!("/{name}"));
                let message = error.to_string();
                assert!(
                    message.ends_with(&format!("at `/{name}`, found {found}")),
                    "{message}"
                );
                assert!(
                    message.starts_with("expected ") && !message.contains(SECRET),
                    "{message}"
                );
            }
        }
        for name in sealed {
            for any in ["null", "true", "1", "\"x\"", "[]", "{}"] {
                assert!(Payload::admit(event_type, Json::object([(*name, admit(any))])).is_ok());
            }
        }
    }
}

/// Values that are not of a kind, and what a message calls them.
fn wrong_values(kind: Kind) -> Vec<(&'static str, &'static str)> {
    let values = [
        (None, "null", "null"),
        (Some(Flag), "true", "a boolean"),
        (Some(Count), "1", "a number"),
        (None, "-1", "a number"),
        (None, "1.5", "a number"),
        (None, "1e300", "a number"),
        (Some(Text), "\"s3cr3t\"", "a string"),
        (None, "[\"s3cr3t\",1]", "an array"),
        (None, "[1,-1]", "an array"),
        (None, "[[]]", "an array"),
        (None, "{\"a\":\"s3cr3t\"}", "an object"),
        (None, "{\"a\":-1}", "an object"),
    ];
    let right = |of: Option<Kind>| of == Some(kind);
    values
        .into_iter()
        .filter(|(of, ..)| !right(*of))
        .map(|(_, text, found)| (text, found))
        .collect()
}

#[test]
fn a_whole_number_may_be_written_with_a_point() {
    let payload = admit("{\"latency_ms\":12.0}");
    let split = Payload::admit(EventType::ToolResult, payload.clone())
        .unwrap()
        .split();
    assert_eq!(Json::Object(split.public).to_jcs(), payload.to_jcs());
}

#[test]
fn values_that_no_split_has_made_are_not_joined() {
    let check = |public: &str, sealed: &[(&str, &str)], expect: Option<&str>| {
        let public = admit(public).into_object().unwrap();
        let sealed = sealed
            .iter()
            .map(|(place, value)| ((*place).to_owned(), admit(value)));
        assert_eq!(join(public, sealed.collect::<Vec<_>>()), expect.map(admit));
    };
    check(
        "{\"a\":1}",
        &[("/b", "2"), ("/*", "{\"c\":3}")],
        Some("{\"a\":1,\"b\":2,\"c\":3}"),
    );
    // A sealed value never replaces what everybody has read.
    check(
        "{\"tool_name\":\"read\"}",
        &[("/tool_name", "\"rm\"")],
        None,
    );
    check(
        "{\"tool_name\":\"read\"}",
        &[("/*", "{\"tool_name\":\"rm\"}")],
        None,
    );
    check("{}", &[("/a", "1"), ("/*", "{\"a\":2}")], None);
    check("{}", &[("/a", "1"), ("/a", "1")], None);
    // A whole payload stands alone.
    check("{\"a\":1}", &[("", "null")], None);
    check("{}", &[("", "null"), ("/a", "1")], None);
    check("{}", &[("/a", "1"), ("", "null")], None);
    check("{}", &[("a", "1")], None);
    check("{}", &[("/*", "[]")], None);
}

#[test]
fn debug_output_shows_no_content() {
    let mut random = Random::seeded(3);
    for (event_type, declared) in types() {
        for _ in 0..20 {
            let payload =
                Payload::admit(event_type, random_payload(&mut random, declared)).unwrap();
            assert_eq!(
                format!("{payload:?} {payload:#?}"),
                "Payload(not shown) Payload(not shown)"
            );
        }
    }
    let opaque = Payload::admit(EventType::ToolResult, Json::from(SECRET)).unwrap();
    assert_eq!(format!("{opaque:?}"), "Payload(not shown)");
    // These types hold content and have no `Debug` at all: with one, this would not compile.
    shows_nothing::<Opening, _>();
    shows_nothing::<Salt, _>();
    shows_nothing::<Split, _>();
    shows_nothing::<Body, _>();
    shows_nothing::<ToolCallProposed, _>();
    shows_nothing::<ToolResult, _>();
}

/// Ambiguous, and so refused by the compiler, for a type that implements `Debug`.
fn shows_nothing<T: NotDebug<A> + ?Sized, A>() {}
trait NotDebug<A> {}
impl<T: ?Sized> NotDebug<()> for T {}
impl<T: ?Sized + fmt::Debug> NotDebug<u8> for T {}

fn types() -> impl Iterator<Item = (EventType, Declared)> {
    FORMAT
        .iter()
        .map(|declared| (declared.0.parse().unwrap(), *declared))
}

fn random_payload(random: &mut Random, (_, public, sealed): Declared) -> Json {
    let mut payload = Object::new();
    for (name, kind) in public {
        if random.below(4) > 0 {
            payload.insert((*name).to_owned(), of_kind(random, *kind));
        }
    }
    for name in sealed {
        if random.below(4) > 0 {
            payload.insert((*name).to_owned(), secret_value(random, 3));
        }
    }
    for _ in 0..random.below(4) {
        let name = undeclared_name(random);
        let declared = public
            .iter()
            .map(|(known, _)| *known)
            .chain(sealed.iter().copied());
        if declared.into_iter().all(|known| known != name) {
            payload.insert(name, secret_value(random, 3));
        }
    }
    Json::Object(payload)
}

/// A strange name, a name that other types declare, or one that says that it is secret.
fn undeclared_name(random: &mut Random) -> String {
    match random.below(3) {
        0 => random.pick(STRANGE).to_owned(),
        1 => {
            let (_, public, sealed) = random.pick(FORMAT);
            let names: Vec<_> = public
                .iter()
                .map(|(name, _)| *name)
                .chain(sealed.iter().copied())
                .collect();
            random.pick(&names).to_owned()
        }
        _ => format!("{SECRET}{}", random.below(100)),
    }
}

fn of_kind(random: &mut Random, kind: Kind) -> Json {
    match kind {
        Text => Json::from(public_text(random)),
        Count => Json::from(random.next() >> 11),
        Flag => Json::from(random.below(2) == 0),
        Texts => Json::Array(
            (0..random.below(4))
                .map(|_| Json::from(public_text(random)))
                .collect(),
        ),
        Counts => Json::Array(
            (0..random.below(4))
                .map(|_| Json::from(random.next() >> 11))
                .collect(),
        ),
        Counters => Json::object(
            (0..random.below(4)).map(|_| (public_text(random), Json::from(random.next() >> 40))),
        ),
    }
}

fn public_text(random: &mut Random) -> String {
    random
        .pick(&["", "c1", "é😀", "a/b", "\u{0}\n\"\\", "\u{e000}"])
        .to_owned()
}

fn secret_value(random: &mut Random, depth: usize) -> Json {
    match random.below(if depth == 0 { 4 } else { 6 }) {
        0 => random.pick(&[Json::Null, Json::Bool(true), Json::Bool(false)]),
        1 => Json::from((random.next() >> 11) as i64 - (1 << 52)),
        2 => Json::Number(Number::from_f64(random.below(1000) as f64 / 8.0 + 0.0625).unwrap()),
        3 => Json::from(format!("{SECRET} {}", random.pick(STRANGE))),
        4 => Json::Array(
            (0..random.below(4))
                .map(|_| secret_value(random, depth - 1))
                .collect(),
        ),
        _ => Json::object(
            (0..random.below(4))
                .map(|_| (random.pick(STRANGE), secret_value(random, depth - 1)))
                .collect::<Vec<_>>(),
        ),
    }
}

fn admit(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}
