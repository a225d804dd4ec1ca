//! Reading lines: an event comes back as it was sealed, and nothing else is taken for one.

use countersign_canon::{Digest, Hash, Json, Object};
use countersign_event::{
    Body, EnvelopeError, EventType, Head, Line, LineError, LinkError, MAX_EXACT, Scope, Seal,
    Sealed,
};

use crate::random::Random;

#[test]
fn a_sealed_event_reads_back_with_the_same_fields() {
    let mut random = Random::seeded(1);
    let mut head = Head::GENESIS;
    for _ in 0..500 {
        let event_type = random.pick(EventType::ALL);
        let ts_unix_ms = random.next() >> 11;
        let scope = Scope::new(id(&mut random), id(&mut random)).unwrap();
        let (body, seal) = body(&mut random);
        let sealed = Sealed::seal(event_type, ts_unix_ms, &body, &scope, &head).unwrap();

        let line = Line::read(sealed.line()).unwrap();
        assert_eq!(line.event_type, event_type);
        assert_eq!(line.ts_unix_ms, ts_unix_ms);
        assert_eq!(line.seq, head.count());
        assert_eq!(line.prev_hash, head.hash());
        assert_eq!(line.tenant_id, scope.tenant.as_str());
        assert_eq!(line.session_id, scope.session.as_str());
        assert_eq!(line.payload, body.text());
        assert_eq!(&line.refs, body.refs());
        assert_eq!(line.hash, sealed.hash());
        assert_eq!(line.computed_hash(), sealed.hash());
        assert_eq!(line.seal.map(|seal| seal.read().unwrap()), seal);
        head = sealed.head();
    }
}

#[test]
fn the_hash_is_sha_256_of_the_line_without_its_hash() {
    let sealed = sealed();
    let text = std::str::from_utf8(sealed.line()).unwrap();
    let without = text.replacen(&format!("\"hash\":\"{}\",", sealed.hash()), "", 1);
    assert_eq!(without.len() + 74, text.len());
    assert_eq!(Hash::of(without.as_bytes()), sealed.hash());
}

#[test]
fn a_line_is_exactly_the_canonical_text() {
    let line = String::from_utf8(sealed().line().to_vec()).unwrap();
    let hash = sealed().hash().to_string();
    let prev = sealed().prev_hash().unwrap().to_string();
    // Each change is made once, where its text first occurs.
    let changes: &[(&str, &str)] = &[
        // White space.
        ("{\"event_type\"", "{ \"event_type\""),
        ("\"seq\":1", "\"seq\": 1"),
        ("\"seq\":1", "\"seq\":1 "),
        ("\"seq\":1", "\n\"seq\":1"),
        ("\"seq\":1", "\"seq\":\t1"),
        // Order, missing and additional members.
        (
            "\"seq\":1,\"session_id\":\"s\"",
            "\"session_id\":\"s\",\"seq\":1",
        ),
        ("\"call_id\":\"A\",\"n\":0.5", "\"n\":0.5,\"call_id\":\"A\""),
        ("\"seq\":1,", ""),
        (",\"ts_unix_ms\":1760000000000", ""),
        ("\"event_type\":\"TOOL_RESULT\",", ""),
        ("\"seq\":1", "\"seq\":1,\"seq\":1"),
        ("\"n\":0.5", "\"n\":0.5,\"n\":0.5"),
        ("\"tenant_id\":\"t\"", "\"tenant_id\":\"t\",\"tool\":1"),
        ("{\"event_type\"", "{\"a\":1,\"event_type\""),
        ("1760000000000}", "1760000000000,\"z\":1}"),
        ("\"prev_hash\":", "\"prev\":"),
        // Escapes.
        ("\"call_id\":\"A\"", "\"call_id\":\"\\u0041\""),
        ("\"session_id\":\"s\"", "\"session_id\":\"\\u0073\""),
        ("\"TOOL_RESULT\"", "\"TOOL\\u005fRESULT\""),
        ("\"seq\":", "\"\\u0073eq\":"),
        ("/", "\\/"),
        // Numbers.
        ("\"seq\":1", "\"seq\":1.0"),
        ("\"seq\":1", "\"seq\":1e0"),
        ("\"seq\":1", "\"seq\":01"),
        ("\"seq\":1", "\"seq\":+1"),
        ("\"seq\":1", "\"seq\":-1"),
        ("\"seq\":1", "\"seq\":-0"),
        ("\"seq\":1", "\"seq\":\"1\""),
        ("\"seq\":1", "\"seq\":null"),
        ("\"seq\":1", "\"seq\":9007199254740992"),
        ("1760000000000", "1.76e12"),
        ("1760000000000", "-1760000000000"),
        ("\"n\":0.5", "\"n\":0.50"),
        ("\"n\":0.5", "\"n\":5e-1"),
        ("\"n\":0.5", "\"n\":NaN"),
        // Hashes.
        (&hash, &hash.to_uppercase()),
        (&hash, &hash[1..]),
        (&hash, &format!("{hash}0")),
        (&hash, &format!("sha256:{hash}")),
        (&hash, ""),
        (&prev, &prev.to_uppercase()),
        (&prev, &prev[2..]),
        (&prev, ""),
        // Ids and types.
        ("\"session_id\":\"s\"", "\"session_id\":\"\""),
        ("\"tenant_id\":\"t\"", "\"tenant_id\":null"),
        ("TOOL_RESULT", "tool_result"),
        ("TOOL_RESULT", "TOOL_RESULTS"),
        ("\"TOOL_RESULT\"", "[\"TOOL_RESULT\"]"),
    ];
    for (from, to) in changes {
        assert!(line.contains(from), "{from}");
        refused(line.replacen(from, to, 1).as_bytes());
    }
    let too_long = "é".repeat(1025);
    refused(
        line.replacen(
            "\"session_id\":\"s\"",
            &format!("\"session_id\":\"{too_long}\""),
            1,
        )
        .as_bytes(),
    );
}

#[test]
fn nothing_stands_around_a_line() {
    let line = sealed().line().to_vec();
    for before in [&b"\xef\xbb\xbf"[..], b" ", b"\n", b"\0", b"[", b"\x1e"] {
        refused(&[before, &line].concat());
    }
    for after in [&b"\n"[..], b"\r", b"\r\n", b" ", b"\0", b",", b"}", b"{}"] {
        refused(&[&line, after].concat());
    }
    for end in 0..line.len() {
        refused(&line[..end]);
        refused(&line[end + 1..]);
    }
}

#[test]
fn a_random_edit_never_passes() {
    let mut random = Random::seeded(2);
    let lines: Vec<Vec<u8>> = (0..50)
        .map(|seq| {
            let head = Head::after(seq, Hash::of(b"before"));
            let scope = Scope::new(id(&mut random), id(&mut random)).unwrap();
            let (body, _) = body(&mut random);
            let event_type = random.pick(EventType::ALL);
            let sealed = Sealed::seal(event_type, 1_760_000_000_000, &body, &scope, &head).unwrap();
            sealed.line().to_vec()
        })
        .collect();
    let mut unreadable = 0;
    let mut mismatched = 0;
    while unreadable + mismatched < 10_000 {
        let line = random.pick(&lines);
        let edited = edit(&mut random, &line);
        if edited == line {
            continue;
        }
        match Line::read(&edited) {
            Err(_) => unreadable += 1,
            Ok(read) => {
                let text = String::from_utf8_lossy(&edited);
                assert_ne!(read.computed_hash(), read.hash, "passed: {text}");
                mismatched += 1;
            }
        }
    }
    assert!(
        unreadable > 1000 && mismatched > 1000,
        "{unreadable} {mismatched}"
    );
}

#[test]
fn a_seal_is_read_strictly() {
    let digest = Digest::of(b"x").to_string();
    let seal =
        format!("{{\"ciphertext\":\"{digest}\",\"commitments\":{{\"/content\":\"{digest}\"}}}}");
    let read = |seal: &str| with_seal(seal).map(|seal| seal.commitments.len());
    assert_eq!(read(&seal), Ok(1));
    let hash = &digest["sha256:".len()..];
    let changes: &[(&str, &str)] = &[
        ("sha256:", ""),
        ("sha256:", "sha512:"),
        (hash, &hash.to_uppercase()),
        (hash, &hash[1..]),
        (
            &format!("/content\":\"{digest}"),
            &format!("/content\":\"{}", hash),
        ),
        (&format!("/content\":\"{digest}\""), "/content\":null"),
        ("ciphertext", "ciphertexts"),
        ("commitments", "commitment"),
        ("\"ciphertext\":", "\"a\":1,\"ciphertext\":"),
        ("}}", "},\"z\":1}"),
    ];
    for (from, to) in changes {
        assert!(seal.contains(from), "{from}");
        let changed = seal.replacen(from, to, 1);
        assert!(read(&changed).is_err(), "{changed}");
    }
    for other in ["null", "1", "[]", "{}", "\"sealed\""] {
        assert!(read(other).is_err(), "{other}");
    }
}

#[test]
fn a_head_accepts_only_the_next_event() {
    let hash = Hash::of(b"one");
    let other = Hash::of(b"another");
    let genesis = Head::GENESIS;
    let third = Head::after(2, hash);
    assert_eq!(genesis.accepts(0, None), Ok(()));
    assert_eq!(third.accepts(3, Some(&hash)), Ok(()));
    let broken = |seq, expected, found| {
        Err(LinkError::Broken {
            seq,
            expected,
            found,
        })
    };
    assert_eq!(genesis.accepts(0, Some(&hash)), broken(0, None, Some(hash)));
    assert_eq!(
        third.accepts(3, Some(&other)),
        broken(3, Some(hash), Some(other))
    );
    assert_eq!(third.accepts(3, None), broken(3, Some(hash), None));
    let gap = |expected, found| Err(LinkError::Gap { expected, found });
    assert_eq!(genesis.accepts(1, None), gap(0, 1));
    assert_eq!(third.accepts(4, Some(&hash)), gap(3, 4));
    let reused = |found| Err(LinkError::Reused { expected: 3, found });
    assert_eq!(third.accepts(2, Some(&hash)), reused(2));
    assert_eq!(third.accepts(0, None), reused(0));
}

#[test]
fn numbers_that_json_does_not_keep_are_not_sealed() {
    let scope = Scope::new("t", "s").unwrap();
    let body = Body::new(Object::new(), None).unwrap();
    let seal = |ts, head| Sealed::seal(EventType::ErrorRaised, ts, &body, &scope, &head);
    let last = Head::after(MAX_EXACT - 1, Hash::of(b"x"));
    let full = Head::after(MAX_EXACT, Hash::of(b"x"));
    let sealed = seal(MAX_EXACT, last).ok().unwrap();
    assert_eq!(Line::read(sealed.line()).unwrap().seq, MAX_EXACT);
    assert_eq!(
        seal(MAX_EXACT + 1, Head::GENESIS).err(),
        Some(EnvelopeError::Timestamp(MAX_EXACT + 1))
    );
    assert_eq!(seal(0, full).err(), Some(EnvelopeError::Exhausted));
}

#[test]
fn a_refusal_names_the_place() {
    let line = String::from_utf8(sealed().line().to_vec()).unwrap();
    let refusal =
        |from: &str, to: &str| Line::read(line.replacen(from, to, 1).as_bytes()).unwrap_err();
    assert_eq!(
        refusal("\"seq\":1", "\"seq\":-1"),
        LineError::Negative("seq")
    );
    assert_eq!(
        refusal("1760000000000", "-1"),
        LineError::Negative("ts_unix_ms")
    );
    assert_eq!(
        refusal("\"hash\":\"", "\"hash\":\"0"),
        LineError::Digest("hash")
    );
    assert_eq!(
        refusal("\"prev_hash\":\"", "\"prev_hash\":\"0"),
        LineError::Digest("prev_hash")
    );
    assert_eq!(
        refusal("TOOL_RESULT", "\\u001b[31m").to_string(),
        "unknown event type `\\u{1b}[31m`"
    );
    match refusal("\"n\":0.5", "\"n\":0.50") {
        LineError::Json(error) => assert_eq!(error.pointer(), "/payload/n"),
        other => panic!("{other}"),
    }
}

/// An event with one of everything that the tables above change.
fn sealed() -> Sealed {
    let public = [
        ("call_id", Json::from("A")),
        (
            "n",
            Json::Number(countersign_canon::Number::from_f64(0.5).unwrap()),
        ),
        ("path", Json::from("/x")),
    ];
    let public = public
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let body = Body::new(public, None).unwrap();
    let head = Head::after(0, Hash::of(b"first"));
    let scope = Scope::new("t", "s").unwrap();
    Sealed::seal(
        EventType::ToolResult,
        1_760_000_000_000,
        &body,
        &scope,
        &head,
    )
    .unwrap()
}

/// What a reader makes of a seal with this text, in a line that is otherwise good.
fn with_seal(seal: &str) -> Result<Seal, LineError> {
    let line = String::from_utf8(sealed().line().to_vec()).unwrap();
    let line = line.replacen("\"path\":\"/x\"", &format!("\"sealed\":{seal}"), 1);
    Line::read(line.as_bytes())?.seal.unwrap().read()
}

fn refused(text: &[u8]) {
    let shown = String::from_utf8_lossy(text);
    assert!(Line::read(text).is_err(), "taken for an event: {shown}");
}

fn body(random: &mut Random) -> (Body, Option<Seal>) {
    let mut public = Object::new();
    for name in [
        "call_id",
        "approval_id",
        "context_id",
        "tool_name",
        "é\u{1}",
    ] {
        if random.below(2) == 0 {
            public.insert(name.to_owned(), Json::from(id(random)));
        }
    }
    if random.below(2) == 0 {
        public.insert("latency_ms".to_owned(), Json::from(random.next() >> 20));
    }
    let seal = (random.below(2) == 0).then(|| Seal {
        ciphertext: Digest::of(&random.next().to_be_bytes()),
        commitments: ["/*", "/args", "/content"]
            .into_iter()
            .map(|place| (place.to_owned(), Digest::of(&random.next().to_be_bytes())))
            .collect(),
    });
    (Body::new(public, seal.clone()).unwrap(), seal)
}

fn id(random: &mut Random) -> String {
    let characters = [
        'a', 'Z', '0', ' ', '/', '"', '\\', '\u{0}', '\n', '\u{7f}', 'é', '\u{2028}', '\u{e000}',
        '😀',
    ];
    (0..=random.below(12))
        .map(|_| random.pick(&characters))
        .collect()
}

/// One change of one to three bytes: a bit, a byte, an insertion, a removal, a swap or a copy.
fn edit(random: &mut Random, line: &[u8]) -> Vec<u8> {
    let mut edited = line.to_vec();
    let at = random.below(edited.len());
    match random.below(6) {
        0 | 1 => edited[at] ^= 1 << random.below(8),
        2 => edited[at] = random.pick(b"0123456789abcdef\"\\{}[],: \nAz"),
        3 => edited.insert(at, random.pick(b"0123456789abcdef\"\\{}[],: \nAz")),
        4 => drop(edited.remove(at)),
        _ => {
            let other = random.below(edited.len());
            edited.swap(at, other);
        }
    }
    edited
}
