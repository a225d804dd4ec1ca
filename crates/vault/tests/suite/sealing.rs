//! Sealing and opening of payloads.

use countersign_canon::{Digest, Json, Limits};
use countersign_event::{EventType, Payload, Scope};
use countersign_vault::{CipherError, OpenError, Openings, SealedPayload, SessionKey, joined};

const PAYLOADS: &[&str] = &[
    "{}",
    r#"{"call_id":"c"}"#,
    r#"{"args":{"path":"/etc/passwd"},"call_id":"c","tool_name":"shell"}"#,
    r#"{"args":null}"#,
    r#"{"unknown":1}"#,
    r#"{"":1,"*":2,"/*":3,"/args":4,"args":5,"sealed":{"ciphertext":"x","commitments":{}}}"#,
    "null",
    "[]",
    "[1,[2,{\"a\":null}]]",
    "\"text\"",
    "0",
    "false",
];

#[test]
fn what_was_sealed_opens_as_it_was() {
    let (key, scope) = (SessionKey::generate().unwrap(), scope("t", "s"));
    for text in PAYLOADS {
        let sealed = seal(text, &key, &scope);
        let openings = open(&sealed, &key, &scope).unwrap();
        assert!(
            joined(sealed.body.text(), openings).unwrap() == json(text),
            "{text}"
        );
    }
}

#[test]
fn each_value_answers_to_its_commitment() {
    let (key, scope) = (SessionKey::generate().unwrap(), scope("t", "s"));
    let sealed = seal(PAYLOADS[5], &key, &scope);
    let body = json(std::str::from_utf8(sealed.body.text()).unwrap());
    let seal = body.get("sealed").unwrap();
    let ciphertext = sealed.ciphertext.as_ref().unwrap();
    assert_eq!(text(seal, "ciphertext"), Digest::of(ciphertext).to_string());
    let commitments = seal.get("commitments").unwrap();
    let openings = open(&sealed, &key, &scope).unwrap();
    assert_eq!(openings.len(), commitments.as_object().unwrap().len());
    for (place, opening) in openings {
        assert_eq!(
            text(commitments, &place),
            opening.commitment().unwrap().to_string()
        );
    }
}

#[test]
fn the_body_holds_public_members_only() {
    let (key, scope) = (SessionKey::generate().unwrap(), scope("t", "s"));
    let sealed = seal(
        r#"{"args":{"SECRET-a":"SECRET-b"},"call_id":"c","SECRET-c":["SECRET-d"],"tool_name":"shell"}"#,
        &key,
        &scope,
    );
    let body = std::str::from_utf8(sealed.body.text()).unwrap();
    assert!(body.contains("shell") && !body.contains("SECRET"), "{body}");
    let ciphertext = sealed.ciphertext.unwrap();
    assert!(!ciphertext.windows(6).any(|part| part == b"SECRET"));
    // Nothing to seal, no ciphertext.
    assert!(
        seal(r#"{"call_id":"c"}"#, &key, &scope)
            .ciphertext
            .is_none()
    );
}

/// Equal contents must not show as equal: neither ciphertexts nor commitments repeat.
#[test]
fn sealing_twice_gives_two_seals() {
    let (key, scope) = (SessionKey::generate().unwrap(), scope("t", "s"));
    let text = r#"{"args":"yes","unknown":"yes"}"#;
    let (one, two) = (seal(text, &key, &scope), seal(text, &key, &scope));
    let salts = |sealed: &SealedPayload| {
        let openings = open(sealed, &key, &scope).unwrap();
        openings
            .into_iter()
            .map(|(_, opening)| *opening.salt.as_bytes())
            .collect::<Vec<_>>()
    };
    let mut all = [salts(&one), salts(&two)].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4, "every value has a salt of its own");
    assert_ne!(one.body.text(), two.body.text());
    let nonce = |sealed: &SealedPayload| sealed.ciphertext.as_ref().unwrap()[1..13].to_vec();
    assert_ne!(nonce(&one), nonce(&two));
}

#[test]
fn a_ciphertext_that_was_changed_or_moved_does_not_open() {
    let (key, home) = (SessionKey::generate().unwrap(), scope("ab", "c"));
    let sealed = seal(r#"{"args":"x"}"#, &key, &home);
    let ciphertext = sealed.ciphertext.unwrap();
    for bit in 0..ciphertext.len() * 8 {
        let mut changed = ciphertext.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let error = key.open(&changed, &home).err().unwrap();
        let form = bit < 8;
        let expected = if form {
            CipherError::Form
        } else {
            CipherError::Refused
        };
        assert_eq!(error, OpenError::Cipher(expected), "bit {bit}");
    }
    for length in 0..ciphertext.len() {
        assert!(
            key.open(&ciphertext[..length], &home).is_err(),
            "length {length}"
        );
    }
    let longer = [ciphertext.as_slice(), b"x"].concat();
    assert!(key.open(&longer, &home).is_err());
    for other in [
        scope("a", "bc"),
        scope("c", "ab"),
        scope("ab", "d"),
        scope("abc", "c"),
    ] {
        let error = key.open(&ciphertext, &other).err().unwrap();
        assert_eq!(error, OpenError::Cipher(CipherError::Refused), "{other:?}");
    }
    let stranger = SessionKey::generate().unwrap();
    assert!(stranger != key);
    assert!(stranger.open(&ciphertext, &home).is_err());
}

fn scope(tenant: &str, session: &str) -> Scope {
    Scope::new(tenant, session).unwrap()
}

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn text<'a>(value: &'a Json, member: &str) -> &'a str {
    value.get(member).and_then(Json::as_str).unwrap()
}

fn seal(text: &str, key: &SessionKey, scope: &Scope) -> SealedPayload {
    let payload = Payload::admit(EventType::ToolCallProposed, json(text)).unwrap();
    key.seal(payload, scope).unwrap()
}

fn open(sealed: &SealedPayload, key: &SessionKey, scope: &Scope) -> Result<Openings, OpenError> {
    sealed
        .ciphertext
        .as_ref()
        .map_or(Ok(Vec::new()), |ciphertext| key.open(ciphertext, scope))
}
