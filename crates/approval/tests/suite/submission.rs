//! What a person sends, and every way in which it does not count.

use countersign_approval::*;
use countersign_canon::Hash;

use crate::desk::*;
use crate::random::Random;

#[test]
fn c01_c02_c03_c04_verdicts_are_one_for_each_call_in_order() {
    let desk = Desk::new(draft());
    let lists = [
        "call-1",
        "",
        "call-1 call-2 call-3",
        "call-2 call-1",
        "call-1 call-1",
        "call-1 call-9",
    ];
    for list in lists {
        let decisions = list.split_whitespace().map(|call| decision(call, 'y'));
        let paper = desk.paper("dana", decisions.collect());
        let submission = paper.sign(&desk.envelope, &signing_key("dana"));
        let expect = ("bijection_mismatch", "rejected:bijection");
        assert_eq!(told(desk.verify(&submission)), expect, "{list}");
    }
    assert!(desk.verify(&desk.submit("dana", "yy")).is_ok());
}

#[test]
fn c05_a_submission_has_exactly_its_members() {
    let text = String::from_utf8(Desk::new(draft()).submit("dana", "yn").to_text()).unwrap();
    assert!(Submission::parse(text.as_bytes()).is_ok());
    for (from, to) in [
        ("{\"approver\"", "{\"plan_hash\":\"00\",\"approver\""),
        ("{\"approver\"", "{\"nonce\":\"zzz\",\"approver\""),
        ("\"approved\"", "true"),
        ("\"approved\"", "\"yes\""),
        (
            "\"decision\":\"approved\"",
            "\"decision\":\"denied\",\"decision\":\"approved\"",
        ),
        (
            "\"decision\":\"approved\"",
            "\"decision\":\"approved\",\"junk\":1",
        ),
        (
            "\"decision\":\"approved\",\"reason\":null",
            "\"decision\":\"approved\",\"reason\":\"x\"",
        ),
        ("\"reason\":\"no to call-2\"", "\"reason\":\"\""),
        ("\"reason\":\"no to call-2\",", ""),
        ("\"signed_at_ms\":", "\"signed_at_ms\":-"),
        ("\"signature\":\"", "\"signature\":\"0"),
        ("human:dana", "dana"),
        ("\"approver\"", "\"Approver\""),
        ("}]", "},NaN]"),
        ("{\"approver\"", "\u{feff}{\"approver\""),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let refused = told(Submission::parse(changed.as_bytes()));
        let expect = ("invalid_submission", "rejected:invalid_submission");
        assert_eq!(refused, expect, "{changed}");
    }
    let long = text.replace("no to call-2", &"x".repeat(4097));
    assert_eq!(
        told(Submission::parse(long.as_bytes())).0,
        "invalid_submission"
    );
}

#[test]
fn m04_an_agent_cannot_decide() {
    let text = String::from_utf8(Desk::new(draft()).submit("dana", "yy").to_text()).unwrap();
    let agent = text.replace("human:dana", "agent:chat");
    let refused = told(Submission::parse(agent.as_bytes()));
    assert_eq!(refused, ("agent_decides", "rejected:agent"));
}

#[test]
fn a07_failures_of_any_kind_leave_the_approval_usable() {
    let (mut random, mut desk) = (Random::seeded(7), Desk::new(draft()));
    let good = desk.submit("dana", "yy");
    let text = good.to_text();
    for _ in 0..1000 {
        let mut bytes = text.clone();
        let place = random.below(bytes.len());
        bytes[place] ^= 1 << random.below(8);
        let refused = match Submission::parse(&bytes) {
            Ok(changed) if changed == good => continue,
            Ok(changed) => desk.verify(&changed).unwrap_err(),
            Err(refused) => refused,
        };
        assert_ne!(refused.outcome().as_str(), "executed");
        desk.context.policy = Hash::of(&bytes).to_digest();
        assert_eq!(told(desk.verify(&good)).0, "context_drift");
        desk.context = desk.envelope.plan().context();
    }
    let mut ballot = Ballot::new(&desk.envelope);
    assert_eq!(ballot.cast(desk.verify(&good).unwrap()), Ok(Cast::Counted));
    let granted = desk.granted("dana", "yy");
    desk.state = State::Approved;
    assert!(desk.execute(&granted).is_ok());
}

#[test]
fn k02_every_flipped_bit_of_a_signature_is_refused() {
    let desk = Desk::new(draft());
    let text = String::from_utf8(desk.submit("dana", "yy").to_text()).unwrap();
    let start = text.find("\"signature\":\"").unwrap() + 13;
    let bytes = base16(&text[start..start + 128]);
    for bit in 0..512 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let signature: String = changed.iter().map(|byte| format!("{byte:02x}")).collect();
        let changed = text.replace(&text[start..start + 128], &signature);
        let changed = Submission::parse(changed.as_bytes()).unwrap();
        let expect = ("invalid_signature", "rejected:tampered");
        assert_eq!(told(desk.verify(&changed)), expect, "{bit}");
    }
}

#[test]
fn k02_the_other_encoding_of_a_signature_and_other_contexts_are_refused() {
    let desk = Desk::new(draft());
    let text = String::from_utf8(desk.submit("dana", "yy").to_text()).unwrap();
    let start = text.find("\"signature\":\"").unwrap() + 13;
    let bytes = base16(&text[start..start + 128]);
    // S + L means the same to a lenient verifier.
    let order: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde,
        0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut malleable = bytes.clone();
    let mut carry = 0;
    for (byte, add) in malleable[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = sum as u8;
        carry = sum >> 8;
    }
    // Signed by the right key, but as something else.
    let other_context = {
        use ed25519_dalek::Signer as _;
        let paper = desk.paper("dana", desk.verdicts("yy"));
        let key = signing_key("dana");
        let id = KeyId::of(&key.verifying_key());
        let signed = String::from_utf8(paper.signed_text(&desk.envelope, id)).unwrap();
        let other = signed.replace(
            "countersign.approval.decision.v1",
            "autopoiesis.approval.v1",
        );
        assert_ne!(other, signed);
        key.sign(other.as_bytes()).to_bytes().to_vec()
    };
    for signature in [malleable, other_context, vec![0; 64]] {
        let signature: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
        let changed = text.replace(&text[start..start + 128], &signature);
        let changed = Submission::parse(changed.as_bytes()).unwrap();
        assert_eq!(told(desk.verify(&changed)).0, "invalid_signature");
    }
}

#[test]
fn k06_keys_that_may_not_decide_are_told_apart() {
    let mut desk = Desk::new(draft());
    let submission = desk.submit("dana", "yy");
    let granted = desk.granted("dana", "yy");
    let key = submission.key_id();
    let stranger = desk.paper("dana", desk.verdicts("yy"));
    let unknown = stranger.sign(&desk.envelope, &signing_key("stranger"));
    assert_eq!(
        told(desk.verify(&unknown)),
        ("unknown_key_id", "rejected:key")
    );
    let borrowed = desk.paper("dana", desk.verdicts("yy"));
    let borrowed = borrowed.sign(&desk.envelope, &signing_key("lee"));
    assert_eq!(
        told(desk.verify(&borrowed)),
        ("key_of_another", "rejected:key")
    );
    for status in [KeyStatus::Retired, KeyStatus::Revoked] {
        desk.keys.set_status(key, status).unwrap();
        desk.state = State::Pending;
        assert_eq!(
            told(desk.verify(&submission)),
            ("key_not_active", "rejected:key")
        );
        // A vote that was counted before goes with its key.
        desk.state = State::Approved;
        assert_eq!(
            told(desk.execute(&granted)),
            ("key_not_active", "rejected:key")
        );
    }
    let (owner, _) = desk.keys.historical(key).unwrap();
    assert_eq!(owner.name(), "dana");
}

#[test]
fn f01_a_decision_at_the_end_of_its_time_is_too_late() {
    let mut desk = Desk::new(draft());
    desk.now = at(3_599_999);
    assert!(desk.verify(&desk.submit("dana", "yy")).is_ok());
    desk.now = at(3_600_000);
    let expect = ("expired", "rejected:expired");
    assert_eq!(told(desk.verify(&desk.submit("dana", "yy"))), expect);
}

#[test]
fn f04_clocks_may_differ_by_a_minute() {
    let desk = Desk::new(draft());
    for (off, fine) in [
        (59_000_i64, true),
        (60_000, true),
        (60_001, false),
        (61_000, false),
    ] {
        for sign in [-1, 1] {
            let signed_at = UnixMs::new(desk.now.get().wrapping_add_signed(sign * off));
            let mut paper = desk.paper("dana", desk.verdicts("yy"));
            paper.signed_at = signed_at;
            let result = desk.verify(&paper.sign(&desk.envelope, &signing_key("dana")));
            match fine {
                true => assert!(result.is_ok()),
                false => assert_eq!(told(result), ("clock_skew", "rejected:clock_skew")),
            }
        }
    }
}

#[test]
fn f05_an_approval_that_is_not_used_in_time_is_over() {
    let mut desk = Desk::new(draft());
    let granted = desk.granted("dana", "yy");
    desk.state = State::Approved;
    desk.now = at(7_199_999);
    let verified = desk.execute(&granted).unwrap();
    assert_eq!(verified.ends(), at(7_200_000));
    desk.now = at(7_200_000);
    assert_eq!(
        told(desk.execute(&granted)),
        ("expired_unused", "rejected:expired")
    );
}

#[test]
fn f06_an_envelope_without_an_end_waits_thirty_days() {
    let mut desk = Desk::new(Draft {
        clocks: Clocks::new(at(0), None, ExecuteBy::Within(300_000)).unwrap(),
        ..draft()
    });
    let month = 30 * 86_400_000;
    desk.now = at(month);
    let life = Life::restored(
        &Envelope::read(&desk.envelope.to_text()).unwrap(),
        State::Pending,
    );
    assert!(life.due(&desk.envelope, None, desk.now).is_none());
    let granted = desk.granted("dana", "yy");
    desk.state = State::Approved;
    desk.now = at(month + 299_999);
    assert!(desk.execute(&granted).is_ok());
    desk.now = at(month + 300_000);
    assert_eq!(told(desk.execute(&granted)).0, "expired_unused");
}

#[test]
fn f07_a_changed_clock_makes_the_signature_invalid() {
    let desk = Desk::new(draft());
    let submission = desk.submit("dana", "yy");
    let text = String::from_utf8(desk.envelope.to_text()).unwrap();
    for (from, to) in [
        (
            "\"decide_by_ms\":1771117200000",
            "\"decide_by_ms\":1771117200001",
        ),
        ("\"decide_by_ms\":1771117200000", "\"decide_by_ms\":null"),
        (
            "\"execute_by_ms\":1771120800000",
            "\"execute_by_ms\":1771120800001",
        ),
        (
            "\"issued_at_ms\":1771113600000",
            "\"issued_at_ms\":1771113600001",
        ),
    ] {
        let changed = text.replace(from, to);
        let changed = Envelope::read(changed.as_bytes()).unwrap();
        let refused = verify_vote(&submission, &changed, &desk.keys, &desk.situation());
        assert_eq!(
            told(refused),
            ("invalid_signature", "rejected:tampered"),
            "{to}"
        );
    }
}

#[test]
fn a_checked_signature_counts_for_its_envelope_and_while_its_key_decides() {
    let mut desk = Desk::new(draft());
    let submission = desk.submit("dana", "yy");
    let signed = Signed::check(submission, &desk.envelope, &desk.keys).unwrap();
    let count = |desk: &Desk, envelope: &Envelope| {
        let vote = verify_signed(&signed, envelope, &desk.keys, &desk.situation());
        assert_eq!(
            signed.is_about(envelope, &desk.keys),
            vote.is_ok(),
            "{vote:?}"
        );
        vote
    };
    assert!(count(&desk, &desk.envelope).is_ok());

    let text = String::from_utf8(desk.envelope.to_text()).unwrap();
    let later = text.replace("1771120800000", "1771120800001");
    let later = Envelope::read(later.as_bytes()).unwrap();
    assert_eq!(told(count(&desk, &later)).0, "invalid_signature");

    let key = signed.submission().key_id();
    desk.keys.set_status(key, KeyStatus::Revoked).unwrap();
    assert!(count(&desk, &desk.envelope).is_err());
    let nobody = Keyring::default();
    let vote = verify_signed(&signed, &desk.envelope, &nobody, &desk.situation());
    assert!(vote.is_err(), "{vote:?}");
}

#[test]
fn j03_an_altered_reason_makes_the_signature_invalid() {
    let desk = Desk::new(draft());
    let text = String::from_utf8(desk.submit("dana", "yn").to_text()).unwrap();
    let altered = [
        text.replace("\"no to call-2\"", "\"yes to call-2\""),
        text.replace("\"no to call-2\"", "null"),
        text.replace(
            "\"decision\":\"denied\",\"reason\":\"no to call-2\"",
            "\"decision\":\"approved\",\"reason\":null",
        ),
    ];
    for altered in altered {
        let altered = Submission::parse(altered.as_bytes()).unwrap();
        assert_eq!(
            told(desk.verify(&altered)),
            ("invalid_signature", "rejected:tampered")
        );
    }
}

#[test]
fn a_person_who_saw_something_else_has_not_decided_about_this() {
    let mut desk = Desk::new(draft());
    let submission = desk.submit("dana", "yy");
    desk.display = Hash::of(b"what is really there");
    assert_eq!(
        told(desk.verify(&submission)),
        ("display_mismatch", "rejected:mismatch")
    );
}

#[test]
fn states_that_take_no_decision_are_told_apart() {
    let mut desk = Desk::new(draft());
    let submission = desk.submit("dana", "yy");
    // Long after the end: what was used stays used and does not become expired.
    desk.now = at(10_000_000);
    for (state, code, outcome) in [
        (State::Expired, "expired", "rejected:expired"),
        (State::ExpiredUnused, "expired_unused", "rejected:expired"),
        (State::Cancelled, "cancelled", "rejected:cancelled"),
        (State::Superseded, "superseded", "rejected:superseded"),
        (State::Consumed, "replayed", "rejected:replayed"),
        (State::Started, "replayed", "rejected:replayed"),
        (State::Executed, "replayed", "rejected:replayed"),
        (State::Failed, "replayed", "rejected:replayed"),
        (State::Unknown, "replayed", "rejected:replayed"),
        (State::NotStarted, "replayed", "rejected:replayed"),
    ] {
        desk.state = state;
        assert_eq!(told(desk.verify(&submission)), (code, outcome), "{state}");
    }
}

fn base16(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
