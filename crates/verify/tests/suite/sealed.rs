//! Sealed content: what is encrypted is what was committed to.

use std::collections::HashMap;

use countersign_canon::{Digest, Json, Limits, Object};
use countersign_event::{EventType, Opening, Payload, Salt, Scope};
use countersign_vault::SessionKey;
use countersign_verify::{Expectation, Opener, Openings, Place, Problem, Selection};

use crate::forge::{forge, payload, relink, set};
use crate::log::{Hidden, Session};
use crate::random::Random;
use crate::stored::Stored;

#[test]
fn content_that_was_committed_to_is_good() {
    let (keys, one, two) = log();
    let stored = Stored::in_turn(&[one, two]);
    let report = stored.verify_opened(&keys);
    assert_eq!(report.failure, None);
    assert!(
        report
            .checked
            .contains(&"the digest of 12 ciphertext(s)".to_owned())
    );
    assert!(
        report
            .checked
            .contains(&"the sealed content of 12 event(s) against its commitments".to_owned())
    );
    assert!(
        !report
            .not_checked
            .iter()
            .any(|what| what.starts_with("the sealed content"))
    );
}

#[test]
fn another_ciphertext_breaks_the_chain() {
    let (keys, original, _) = log();
    for at in 0..original.events.len() {
        // The digest and the event's own hash fit the new ciphertext; the events after it do not.
        let mut session = original.clone();
        reseal(&mut session, at, &keys);
        let stored = Stored::in_turn(&[session]);
        let failure = stored
            .verify_with(&Selection::default(), &original.expectation(), None)
            .failure
            .unwrap();
        if at + 1 < original.events.len() {
            assert_eq!(failure.problem.name(), "broken-link");
            assert_eq!(failure.place, Some(Place::Row(at as i64 + 2)));
        } else {
            assert_eq!(failure.problem.name(), "head");
        }
        let failure = stored.verify_opened(&keys).failure.unwrap();
        assert!(
            matches!(failure.problem, Problem::Commitment(_)),
            "{}",
            failure.problem
        );
        assert_eq!(failure.place, Some(Place::Row(at as i64 + 1)));
    }
}

#[test]
fn another_content_does_not_fit_its_commitment() {
    let (keys, original, _) = log();
    for at in 0..original.events.len() {
        // The whole history is written anew around it, so every hash fits.
        let mut session = original.clone();
        reseal(&mut session, at, &keys);
        rewrite(&mut session);
        let stored = Stored::in_turn(&[session]);
        let report = stored.verify();
        assert_eq!(report.failure, None);
        let unopened = "the sealed content of 6 event(s): the master key is not here".to_owned();
        assert!(report.not_checked.contains(&unopened));

        let failure = stored.verify_opened(&keys).failure.unwrap();
        assert!(
            matches!(failure.problem, Problem::Commitment(_)),
            "{}",
            failure.problem
        );
        assert_eq!(failure.place, Some(Place::Row(at as i64 + 1)));
        assert_eq!(
            failure.event,
            Some(("t".to_owned(), "one".to_owned(), at as u64))
        );

        let head = Expectation {
            head: Some(original.head()),
            ..Expectation::default()
        };
        let report = stored.verify_with(&Selection::default(), &head, None);
        assert_eq!(report.failure.unwrap().problem.name(), "head");
    }
}

/// The salts stay, one value out of several changes, and the history is written anew.
#[test]
fn the_changed_value_is_the_one_that_is_named() {
    let mut random = Random::seeded(1);
    for place in ["/approval_token", "/edited_args", "/message", "/*"] {
        let mut session = Session::new("t", "s");
        session.record("APPROVAL_REQUESTED", "{\"approval_id\":\"a\"}", &mut random);
        let text = "{\"approval_id\":\"a\",\"approved\":false,\"approval_token\":\"t\",\"edited_args\":[1],\"message\":\"no\",\"x\":{}}";
        session.record("APPROVAL_DECIDED", text, &mut random);
        assert_eq!(
            Stored::in_turn(std::slice::from_ref(&session))
                .verify_opened(&Hidden)
                .failure,
            None
        );

        let ciphertext = session.events[1].ciphertext.clone().unwrap();
        let mut openings = Hidden::open(&ciphertext, &session.scope).unwrap();
        let (_, changed) = openings
            .iter_mut()
            .find(|(found, _)| found == place)
            .unwrap();
        changed.value = Json::object([("x", Json::from("yes"))]);
        let forged = Hidden::close(&openings, &session.scope);
        take(&mut session, 1, &forged);
        rewrite(&mut session);
        let failure = Stored::in_turn(&[session])
            .verify_opened(&Hidden)
            .failure
            .unwrap();
        assert_eq!(failure.problem, Problem::Commitment(place.to_owned()));
        assert_eq!(failure.place, Some(Place::Row(2)));
    }
}

#[test]
fn another_commitment_does_not_fit_its_content() {
    let (keys, original, _) = log();
    let check = |edit: fn(&mut Object), place: &str| {
        let mut session = original.clone();
        session.events[2].line = forge(&session.events[2].line, |event| edit(commitments(event)));
        rewrite(&mut session);
        let failure = Stored::in_turn(&[session])
            .verify_opened(&keys)
            .failure
            .unwrap();
        assert_eq!(failure.problem, Problem::Commitment(place.to_owned()));
    };
    check(
        |places| set(places, "/content", Digest::of(b"x").to_string()),
        "/content",
    );
    check(|places| drop(places.remove("/content")), "/content");
    check(|places| drop(places.remove("/*")), "/*");
    check(
        |places| set(places, "/secret", Digest::of(b"x").to_string()),
        "/secret",
    );
    check(
        |places| {
            let content = places.remove("/content").unwrap();
            set(places, "/context", content);
        },
        "/content",
    );
    check(
        |places| {
            let (content, other) = (
                places.remove("/content").unwrap(),
                places.remove("/*").unwrap(),
            );
            set(places, "/content", other);
            set(places, "/*", content);
        },
        "/*",
    );
}

#[test]
fn a_ciphertext_belongs_to_its_event_and_session() {
    let (keys, one, two) = log();
    // Two events of one session trade ciphertexts.
    let mut traded = one.clone();
    for (to, from) in [(1, 2), (2, 1)] {
        take(
            &mut traded,
            to,
            one.events[from].ciphertext.as_ref().unwrap(),
        );
    }
    rewrite(&mut traded);
    let failure = Stored::in_turn(&[traded])
        .verify_opened(&keys)
        .failure
        .unwrap();
    assert!(
        matches!(failure.problem, Problem::Commitment(_)),
        "{}",
        failure.problem
    );
    assert_eq!(failure.place, Some(Place::Row(2)));
    // One of another session.
    let mut borrowed = one;
    take(&mut borrowed, 3, two.events[3].ciphertext.as_ref().unwrap());
    rewrite(&mut borrowed);
    let failure = Stored::in_turn(&[borrowed])
        .verify_opened(&keys)
        .failure
        .unwrap();
    let refused = "the ciphertext does not decrypt: wrong key, or it was changed";
    assert_eq!(failure.problem, Problem::Unopened(refused.to_owned()));
    assert_eq!(failure.place, Some(Place::Row(4)));
}

#[test]
fn erased_content_leaves_a_chain_that_verifies() {
    let (mut keys, one, two) = log();
    keys.0.insert(one.scope.clone(), None);
    let stored = Stored::in_turn(&[one, two]);
    let report = stored.verify_opened(&keys);
    assert_eq!(report.failure, None);
    assert!(
        report
            .checked
            .contains(&"the digest of 12 ciphertext(s)".to_owned())
    );
    assert!(
        report
            .checked
            .contains(&"the sealed content of 6 event(s) against its commitments".to_owned())
    );
    let erased = "the sealed content of 6 event(s): their session keys were erased".to_owned();
    assert!(report.not_checked.contains(&erased));
    // The ciphertext itself is still held to its digest.
    stored.tamper("UPDATE events SET sealed = x'01' WHERE id = 2");
    assert_eq!(
        stored.verify_opened(&keys).failure.unwrap().problem,
        Problem::Ciphertext("was changed")
    );
}

#[test]
fn an_opener_is_not_believed() {
    struct Says(fn() -> Result<Option<Openings>, String>);
    impl Opener for Says {
        fn open(&self, _: &[u8], _: &Scope) -> Result<Option<Openings>, String> {
            (self.0)()
        }
    }
    let (_, one, _) = log();
    let stored = Stored::in_turn(&[one]);
    let problem = |says| stored.verify_opened(&Says(says)).failure.unwrap().problem;
    let commitment = |place: &str| Problem::Commitment(place.to_owned());
    assert_eq!(
        problem(|| Err("no".to_owned())),
        Problem::Unopened("no".to_owned())
    );
    assert_eq!(problem(|| Ok(Some(Vec::new()))), commitment("/*"));
    assert_eq!(
        problem(|| Ok(Some(vec![opening("/content", Json::Null)]))),
        commitment("/content")
    );
    assert_eq!(
        problem(|| Ok(Some(vec![opening("/other", Json::Null)]))),
        commitment("/other")
    );
    // A value without canonical form, at a place without commitment: nothing equals nothing.
    assert_eq!(
        problem(|| Ok(Some(vec![opening("/other", Json::from(u64::MAX))]))),
        commitment("/other")
    );
}

/// The keys of sessions; `None` for an erased one.
struct Keys(HashMap<Scope, Option<SessionKey>>);

impl Opener for Keys {
    fn open(&self, ciphertext: &[u8], scope: &Scope) -> Result<Option<Openings>, String> {
        match self.0.get(scope).ok_or("no such session")? {
            Some(key) => key
                .open(ciphertext, scope)
                .map(Some)
                .map_err(|error| error.to_string()),
            None => Ok(None),
        }
    }
}

/// Two sessions of six events, all with something to hide.
fn log() -> (Keys, Session, Session) {
    let mut keys = HashMap::new();
    let [one, two] = ["one", "two"].map(|name| {
        let key = SessionKey::generate().unwrap();
        let mut session = Session::new("t", name);
        for number in 0..6 {
            let text =
                format!("{{\"memory_key\":\"k\",\"content\":\"{name} {number}\",\"note\":[1.5]}}");
            let sealed = key.seal(content(&text), &session.scope).unwrap();
            session.append(EventType::MemoryRead, &sealed.body, sealed.ciphertext);
        }
        keys.insert(session.scope.clone(), Some(key));
        session
    });
    (Keys(keys), one, two)
}

/// Encrypts another content for an event, with the right key, and keeps the commitments.
fn reseal(session: &mut Session, at: usize, keys: &Keys) {
    let key = keys.0[&session.scope].as_ref().unwrap();
    let text = format!("{{\"memory_key\":\"k\",\"content\":\"forged {at}\",\"note\":[1.5]}}");
    let sealed = key.seal(content(&text), &session.scope).unwrap();
    take(session, at, &sealed.ciphertext.unwrap());
}

/// Puts a ciphertext into an event, with its digest and the event's own hash.
fn take(session: &mut Session, at: usize, ciphertext: &[u8]) {
    let event = &mut session.events[at];
    event.ciphertext = Some(ciphertext.to_vec());
    event.line = forge(&event.line, |event| {
        set(
            seal(event),
            "ciphertext",
            Digest::of(ciphertext).to_string(),
        );
    });
}

/// Makes every hash and link fit.
fn rewrite(session: &mut Session) {
    let mut lines = session.lines();
    relink(&mut lines);
    for (event, line) in session.events.iter_mut().zip(lines) {
        event.line = line;
    }
}

fn seal(event: &mut Object) -> &mut Object {
    payload(event)
        .get_mut("sealed")
        .unwrap()
        .as_object_mut()
        .unwrap()
}

fn commitments(event: &mut Object) -> &mut Object {
    seal(event)
        .get_mut("commitments")
        .unwrap()
        .as_object_mut()
        .unwrap()
}

fn content(text: &str) -> Payload {
    let payload = Json::admit(text.as_bytes(), &Limits::event()).unwrap();
    Payload::admit(EventType::MemoryRead, payload).unwrap()
}

fn opening(place: &str, value: Json) -> (String, Opening) {
    (
        place.to_owned(),
        Opening {
            salt: Salt::from_bytes([0; Salt::LEN]),
            value,
        },
    )
}
