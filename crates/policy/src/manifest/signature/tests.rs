use countersign_canon::Limits;

use super::*;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn admit(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn acme() -> Publishers {
    [("acme", key(1).verifying_key())].into_iter().collect()
}

const UNSIGNED: &str = r#"{
    "schema": "aegis.dev/manifest/v0.1", "name": "reader", "version": "1.0.0", "publisher": "acme",
    "permissions": {"tools": ["read_file"], "budgets": {"max_steps": 9}}
}"#;

#[test]
fn what_was_signed_verifies() {
    let signed = sign(&admit(UNSIGNED), &key(1)).unwrap();
    assert_eq!(
        verify(&signed, &acme()),
        Ok(KeyId::of(&key(1).verifying_key()))
    );
    // Order and white space do not matter, and neither does signing again.
    let again = admit(std::str::from_utf8(&signed.to_jcs().unwrap()).unwrap());
    assert!(verify(&again, &acme()).is_ok());
    assert_eq!(sign(&signed, &key(1)).unwrap(), signed);
    // The rest of `integrity` is covered.
    let with_tree = UNSIGNED.replacen('{', r#"{"integrity":{"files":{}},"#, 1);
    let signed = sign(&admit(&with_tree), &key(1)).unwrap();
    assert!(verify(&signed, &acme()).is_ok());
    assert!(signed.get("integrity").unwrap().get("files").is_some());
}

#[test]
fn the_form_of_a_signature_is_fixed() {
    let signed = sign(&admit(UNSIGNED), &key(1)).unwrap();
    let value = signed
        .get("integrity")
        .and_then(|it| it.get("signature"))
        .unwrap();
    // Made by `openssl pkeyutl -sign -rawin` over the canonical text.
    let expect = concat!(
        "ed25519:34750f98bd59fcfc946da45aaabe933be154a4b5094e1c4abf42866505f3c97e:",
        "906ff6c7e5746a58002920fcb780f19c6c7005d73ec9c20c8e041ef6731cffcf",
        "ef65144b30509bcdd0aa654a71c30636dfc10f5cdd79cb1fe87b025c7b987300",
    );
    assert_eq!(value.as_str().unwrap(), expect);
}

#[test]
fn every_change_of_a_byte_is_refused() {
    let signed = sign(&admit(UNSIGNED), &key(1)).unwrap().to_jcs().unwrap();
    for at in 0..signed.len() {
        for flip in [0x01, 0x02, 0x10, 0x20, 0x40, 0x80] {
            let mut changed = signed.clone();
            changed[at] ^= flip;
            let verified = Json::admit(&changed, &Limits::event())
                .ok()
                .map(|manifest| verify(&manifest, &acme()));
            assert!(!matches!(verified, Some(Ok(_))), "byte {at} by {flip:#x}");
        }
    }
}

fn with_signature(value: &str) -> Json {
    admit(&UNSIGNED.replacen(
        '{',
        &format!(r#"{{"integrity":{{"signature":{value}}},"#),
        1,
    ))
}

#[test]
fn refusals() {
    let check = |manifest: &Json, publishers: &Publishers, expect: &str| {
        assert_eq!(
            verify(manifest, publishers).unwrap_err().to_string(),
            expect
        );
    };
    let signed = sign(&admit(UNSIGNED), &key(1)).unwrap();
    let id = KeyId::of(&key(1).verifying_key());
    check(&admit(UNSIGNED), &acme(), "the manifest is not signed");
    check(
        &signed,
        &Publishers::default(),
        "publisher `acme` is not in the list",
    );
    let other_key = [("acme", key(2).verifying_key())].into_iter().collect();
    check(
        &signed,
        &other_key,
        &format!("key `{id}` is not listed for the publisher"),
    );
    let elsewhere = [("evil", key(1).verifying_key())].into_iter().collect();
    check(&signed, &elsewhere, "publisher `acme` is not in the list");
    let form = "the signature is not `ed25519:<key id>:<signature>` in lower-case hex";
    for value in [
        r#""x""#,
        r#""""#,
        "5",
        "null",
        r#""ed25519::""#,
        r#""ed25519:00:00""#,
        r#""rsa:00:00""#,
        &format!(r#""ed25519:{id}:{}""#, "0".repeat(126)),
        &format!(r#""ed25519:{id}:{}:""#, "0".repeat(128)),
        &format!(r#""ed25519:{id}:{}""#, "A".repeat(128)),
    ] {
        check(&with_signature(value), &acme(), form);
    }
    let zero = format!(r#""ed25519:{id}:{}""#, "0".repeat(128));
    check(
        &with_signature(&zero),
        &acme(),
        "the signature does not fit the manifest",
    );
    check(&Json::Null, &acme(), "not a manifest");
    check(
        &admit(r#"{"publisher":"acme","integrity":5}"#),
        &acme(),
        "not a manifest",
    );
    check(
        &admit(r#"{"integrity":{"signature":"x"}}"#),
        &acme(),
        "not a manifest",
    );
    assert_eq!(
        sign(&Json::Null, &key(1)),
        Err(SignatureError::NotAManifest)
    );
    let five = admit(r#"{"integrity":5}"#);
    assert_eq!(sign(&five, &key(1)), Err(SignatureError::NotAManifest));
}

#[test]
fn a_weak_key_signs_nothing() {
    // The neutral element as a key: under lax rules it fits every message.
    let mut weak = [0; 32];
    weak[0] = 1;
    let weak = VerifyingKey::from_bytes(&weak).unwrap();
    let publishers = [("acme", weak)].into_iter().collect();
    let mut signature = [0; 64];
    signature[0] = 1;
    let hex = base16ct::lower::encode_string(&signature);
    let forged = with_signature(&format!(r#""ed25519:{}:{hex}""#, KeyId::of(&weak)));
    assert_eq!(verify(&forged, &publishers), Err(SignatureError::Invalid));
}

#[test]
fn modes_of_trust() {
    let unsigned = Manifest::from_json(&admit(UNSIGNED)).unwrap();
    let signed = sign(&admit(UNSIGNED), &key(1)).unwrap();
    let signed = Manifest::from_json(&signed).unwrap();
    let id = KeyId::of(&key(1).verifying_key());
    let origin = |manifest: &Manifest, mode| manifest.origin(mode, &acme());
    assert_eq!(origin(&signed, TrustMode::Prod), Ok(Origin::Signed(id)));
    assert_eq!(origin(&signed, TrustMode::Dev), Ok(Origin::Signed(id)));
    assert_eq!(
        origin(&unsigned, TrustMode::Prod),
        Err(SignatureError::Unsigned)
    );
    assert_eq!(
        origin(&unsigned, TrustMode::Dev),
        Ok(Origin::Unproven(SignatureError::Unsigned))
    );
}
