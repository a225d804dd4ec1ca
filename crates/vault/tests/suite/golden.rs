//! Stored bytes that another implementation made (AES-256-GCM and SHA-256 of Python's
//! `cryptography`): what was sealed once must open for ever.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use countersign_event::Scope;
use countersign_vault::{KeyId, Keyring, WrappedKey, joined};

const MASTER: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const MASTER_ID: &str = "mk_a530212d14a73874";
/// The session key 20…3f for the session `a/b` of `tenant`, under a nonce of sevens.
const WRAPPED: &str = "010707070707070707070707072f4b847f4b2af1d3eeb439abac7cdab4916dbf40bcc2b72ec\
    68264c138e30c24be410ec6ef9ec0fa7582d67b1a594ba9";
/// Two sealed values, under a nonce of nines.
const CIPHERTEXT: &str = "010909090909090909090909093ffabcc9efa809e0ebd27d1b87653a1bccdcf5bee7f58c\
    44e5113333e250c367dc5d33d6845735d887bfa5246aa83ee87a1d578435636eb9f2b274c8812a4fd15c872d8b9ffe\
    ed65b464e8f45f3acdab0fb52eed1c6cbf02442481296e9ad774175c3d857bee4828b5d00d185ac518a5453fcc9f97\
    6f0e27ba946d000fc10be6f25e1bcf1f86f05d7f0034d40eebacda8ba3e4079bcc117fa88211d87a51e1b66fd16f";
const COMMITMENTS: [(&str, &str); 2] = [
    (
        "/*",
        "sha256:6f25d7648ba48a8bbd057bc6edf014bedd8afb83e0f3c0d55ffd618f352eeef7",
    ),
    (
        "/args",
        "sha256:f8fa2b004212518f393ace4ac6be14196b19ca04dda0dd5ec35a951b38336b0b",
    ),
];

#[test]
fn stored_bytes_open() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("master.key");
    fs::write(
        &path,
        format!("{{\"keys\":[\"{MASTER}\"],\"version\":1}}\n"),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let keyring = Keyring::open(&path).unwrap();
    assert_eq!(keyring.current().unwrap().as_str(), MASTER_ID);

    let scope = Scope::new("tenant", "a/b").unwrap();
    let master = KeyId::from_stored(MASTER_ID.to_owned());
    let key = keyring
        .unwrap(
            &WrappedKey {
                master,
                bytes: hex(WRAPPED),
            },
            &scope,
        )
        .unwrap();
    let openings = key.open(&hex(CIPHERTEXT), &scope).unwrap();
    let found: Vec<_> = openings
        .iter()
        .map(|(place, opening)| (place.clone(), opening.commitment().unwrap().to_string()))
        .collect();
    assert_eq!(
        found,
        COMMITMENTS.map(|(place, digest)| (place.to_owned(), digest.to_owned()))
    );
    let payload = joined(br#"{"call_id":"c","sealed":{}}"#, openings).unwrap();
    assert_eq!(
        payload.to_jcs().unwrap(),
        br#"{"args":{"path":"/tmp"},"call_id":"c","note":"n"}"#
    );
}

fn hex(text: &str) -> Vec<u8> {
    base16ct::lower::decode_vec(text).unwrap()
}
