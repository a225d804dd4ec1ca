//! Signatures that others made, and what happens to records that somebody changed.

use countersign_canon::Json;
use countersign_evidence::aep::{Authenticity, Code, Continuity, Keys, Record, check};

use crate::corpus::{json, read, remove, set};

const KEY: &str = "a7045fabcf32973dab3c5796bde8b13833384e63a7d24e384a7315d80f0d89fa";
const NAME: &str = "conformance-seed-key-01";

fn keys() -> Keys {
    let mut keys = Keys::default();
    keys.add(NAME, KEY).unwrap();
    keys
}

fn authenticity(record: &Json, keys: &Keys) -> Authenticity {
    let checked = check(&[Record::from_json(record.clone())], keys);
    checked.records[0].authenticity.clone().unwrap()
}

fn expect(record: &Json, status: &str, code: Option<Code>) {
    let found = authenticity(record, &keys());
    assert_eq!(found.status(), Some(status), "{found:?}");
    let first = found.findings().first().map(|finding| finding.code);
    assert_eq!(first, code);
}

const INLINE: &[&str] = &[
    "inline-v0.1",
    "inline-v0.2",
    "inline-v0.3",
    "inline-historical",
];

#[test]
fn what_others_signed_verifies_on_the_raw_record() {
    for name in INLINE.iter().chain(&["dsse-v0.5"]) {
        let text = read(&format!("aep/vectors/{name}.json"));
        let checked = check(&[Record::read(&text)], &keys());
        assert!(!checked.fails(), "{name}: {:?}", checked.records);
    }
}

#[test]
fn a_signature_over_base64_text_proves_too_little() {
    let record = json("aep/vectors/base64-text-v0.4.json");
    expect(&record, "unsupported-legacy", Some(Code::RetiredProfile));
}

#[test]
fn members_that_nobody_knows_are_covered() {
    for name in INLINE {
        let mut record = json(&format!("aep/vectors/{name}.json"));
        set(&mut record, "/x_added", Json::Null);
        expect(&record, "invalid", Some(Code::SignatureMismatch));
    }
    let mut record = json("aep/vectors/dsse-v0.5.json");
    set(&mut record, "/x_added", Json::Null);
    expect(&record, "binding-mismatch", Some(Code::Predicate));
}

#[test]
fn the_block_of_a_signature_is_read_strictly() {
    let change = |pointer: &str, value: &str, status: &str, code: Code| {
        let mut record = json("aep/vectors/inline-v0.3.json");
        set(&mut record, pointer, Json::from(value));
        expect(&record, status, Some(code));
    };
    change("/signature/alg", "none", "invalid", Code::Algorithm);
    change("/signature/alg", "Ed25519", "invalid", Code::Algorithm);
    change("/signature/sig", "AAAA", "invalid", Code::Encoding);
    let sig = "UNSIGNED_PLACEHOLDER";
    change("/signature/sig", sig, "unsigned", Code::Placeholder);
    // The last digit has bits that no byte has: another text for the same bytes.
    let record = json("aep/vectors/inline-v0.3.json");
    let sig = record.get("signature").and_then(|it| it.get("sig"));
    let sig = sig.and_then(Json::as_str).unwrap().replace("AA==", "AB==");
    change("/signature/sig", &sig, "invalid", Code::Encoding);
    let other = "somebody-else";
    let mut record = json("aep/vectors/inline-v0.3.json");
    set(&mut record, "/signature/key_id", Json::from(other));
    let found = authenticity(&record, &keys());
    assert_eq!(found.status(), None);
    assert_eq!(found.findings()[0].code, Code::UnknownKey);
}

#[test]
fn with_keys_a_record_that_lost_its_signature_fails() {
    let mut record = json("aep/vectors/inline-v0.3.json");
    remove(&mut record, "/signature");
    let records = [Record::from_json(record)];
    assert!(check(&records, &keys()).fails());
    assert!(!check(&records, &Keys::default()).fails());
}

#[test]
fn a_later_version_with_a_signature_of_the_old_kind_is_not_valid() {
    // Nobody can sign it anew here, so what is old is the version.
    let mut record = json("aep/vectors/inline-v0.3.json");
    set(&mut record, "/schema_version", Json::from("aep/v0.5"));
    expect(&record, "invalid", Some(Code::SignatureMismatch));
}

#[test]
fn an_envelope_is_one_signature_of_the_right_types_about_this_record() {
    let change = |pointer: &str, value: Json, status: &str, code: Code| {
        let mut record = json("aep/vectors/dsse-v0.5.json");
        set(&mut record, pointer, value);
        expect(&record, status, Some(code));
    };
    let vector = json("aep/vectors/dsse-v0.5.json");
    let signatures = vector
        .get("dsse_envelope")
        .and_then(|it| it.get("signatures"));
    let one = signatures.and_then(Json::as_array).unwrap()[0].clone();
    let twice = Json::Array(vec![one.clone(), one]);
    let at = "/dsse_envelope/signatures";
    change(at, twice, "invalid", Code::SignatureCount);
    change(at, Json::Array(Vec::new()), "invalid", Code::SignatureCount);
    let at = "/dsse_envelope/payloadType";
    change(at, Json::from("text/plain"), "invalid", Code::PayloadType);
    let at = "/dsse_envelope/payload";
    change(at, Json::from("{}"), "invalid", Code::Encoding);
    change(at, Json::from("e30="), "invalid", Code::SignatureMismatch);
    let at = "/run_id";
    change(at, Json::from("other"), "binding-mismatch", Code::Subject);
    let at = "/created_at_ms";
    change(at, Json::from(1u32), "binding-mismatch", Code::Predicate);
    let at = "/signature/sig";
    change(at, Json::from("AAAA"), "binding-mismatch", Code::Mirror);
    let at = "/signature/alg";
    change(at, Json::from("rsa"), "binding-mismatch", Code::Mirror);
}

#[test]
fn an_envelope_about_another_record_is_refused_without_a_key() {
    let mut record = json("aep/vectors/dsse-v0.5.json");
    set(&mut record, "/created_at_ms", Json::from(1u32));
    let found = authenticity(&record, &Keys::default());
    assert_eq!(found.status(), Some("binding-mismatch"));
}

#[test]
fn weak_and_malformed_keys_are_refused() {
    let mut keys = Keys::default();
    assert!(keys.add("a", &"01".repeat(31)).is_err());
    assert!(keys.add("a", "zz").is_err());
    let identity = format!("01{}", "00".repeat(31));
    assert!(keys.add("a", &identity).is_err());
    assert!(keys.add("a", KEY).is_ok());
    let other = "197f6b23e16c8532c6abc838facd5ea789be0c76b2920334039bfa8b3d368d61";
    assert!(keys.add("a", other).is_err());
}

/// Three records, each linked to the one before it.
fn chain() -> Vec<Json> {
    let mut records: Vec<Json> = Vec::new();
    for index in 0..3u32 {
        let mut record = json("aep/vectors/inline-historical.json");
        remove(&mut record, "/signature");
        set(&mut record, "/created_at_ms", Json::from(index));
        let link = records.last().map(|before| {
            let before = before.as_object().unwrap();
            countersign_evidence::aep::record_hash(before)
                .unwrap()
                .to_string()
        });
        set(&mut record, "/prev_record_hash", Json::from(link));
        records.push(record);
    }
    records
}

fn continuity(records: &[Json]) -> Continuity {
    let records: Vec<Record> = records.iter().cloned().map(Record::from_json).collect();
    check(&records, &Keys::default()).chain.continuity.unwrap()
}

#[test]
fn a_chain_is_intact_partial_orphaned_broken_or_not_there() {
    let whole = chain();
    assert_eq!(continuity(&whole), Continuity::Intact);
    assert_eq!(continuity(&whole[..1]), Continuity::NotPresent);
    assert_eq!(continuity(&whole[1..]), Continuity::Orphaned);
    let gap = [whole[0].clone(), whole[2].clone()];
    assert_eq!(continuity(&gap), Continuity::Broken);
    let swapped = [whole[1].clone(), whole[0].clone(), whole[2].clone()];
    assert_eq!(continuity(&swapped), Continuity::Broken);
    let turned = [whole[1].clone(), whole[0].clone()];
    assert_eq!(continuity(&turned), Continuity::Broken);
    let forked = [whole[0].clone(), whole[1].clone(), whole[1].clone()];
    assert_eq!(continuity(&forked), Continuity::Broken);
    let mut unlinked = whole.clone();
    set(&mut unlinked[2], "/prev_record_hash", Json::Null);
    assert_eq!(continuity(&unlinked), Continuity::Partial);
    remove(&mut unlinked[1], "/prev_record_hash");
    assert_eq!(continuity(&unlinked), Continuity::NotPresent);
    let mut changed = whole.clone();
    set(&mut changed[0], "/created_at_ms", Json::from(7u32));
    assert_eq!(continuity(&changed), Continuity::Broken);
}

/// A parent may be in a record that was not given, and only if there can be such a record.
#[test]
fn a_parent_is_missing_where_nothing_before_it_is() {
    let holds = |records: &[Json]| {
        let records: Vec<Record> = records.iter().cloned().map(Record::from_json).collect();
        let checked = check(&records, &Keys::default());
        let semantics = checked.records.last().unwrap().semantics.clone();
        semantics.unwrap().holds()
    };
    let mut records = chain();
    let parent = Json::from("elsewhere");
    set(&mut records[2], "/actions/0/parent_action_id", parent);
    assert!(!holds(&records));
    assert!(holds(&records[1..]));
    // A second run whose first record follows one of another run begins here.
    set(&mut records[2], "/run_id", Json::from("another-run"));
    assert!(!holds(&records));
    assert!(holds(&records[1..]));
}

#[test]
fn a_proof_of_time_beside_an_envelope_is_noted_as_not_covered() {
    let mut record = json("aep/vectors/dsse-v0.5.json");
    let proof = ["timestamp", "authority", "proof"].map(|name| (name, Json::from("x")));
    set(&mut record, "/timestamp_proof", Json::object(proof));
    let checked = check(&[Record::from_json(record)], &keys());
    assert!(!checked.fails());
    let notes = checked.records[0].notes.iter();
    let noted: Vec<&str> = notes.map(|note| note.pointer.as_str()).collect();
    assert_eq!(noted, ["/timestamp_proof"]);
}

#[test]
fn a_record_that_cannot_be_read_leaves_the_chain_open_and_the_file_failed() {
    let texts: Vec<Vec<u8>> = chain().iter().map(|it| it.to_jcs().unwrap()).collect();
    let mut records: Vec<Record> = texts.iter().map(|text| Record::read(text)).collect();
    records[2] = Record::read(br#"{"run_id":"a","run_id":"b"}"#);
    let checked = check(&records, &Keys::default());
    assert_eq!(checked.chain.continuity, None);
    assert!(checked.fails());
    let code = checked.records[2].structure.against[0].code;
    assert_eq!(code, Code::Json);
}
