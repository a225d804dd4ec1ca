use super::*;

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn known_values() {
    assert_eq!(Hash::of(b"").to_string(), EMPTY);
    assert_eq!(Hash::of(b"abc").to_string(), ABC);
    assert_eq!(Hash::of_parts(&[b"a", b"", b"bc"]), Hash::of(b"abc"));
    assert_eq!(Digest::of(b"abc").to_string(), format!("sha256:{ABC}"));
    assert_eq!(Digest::of_parts(&[b"ab", b"c"]), Digest::of(b"abc"));
    assert_eq!(&Hash::of(b"abc").to_hex(), ABC.as_bytes());
    assert_eq!(format!("{:?}", Digest::of(b"abc")), format!("sha256:{ABC}"));
}

#[test]
fn a_prefix_is_hashed_as_if_it_were_joined() {
    let text: Vec<u8> = (0..=255).collect();
    for length in 0..=text.len() {
        for split in 0..=length {
            let (prefix, rest) = text[..length].split_at(split);
            let expect = Hash::of(&text[..length]);
            assert_eq!(Hash::of_prefixed(prefix, rest), expect, "{split} {length}");
        }
    }
}

#[test]
fn only_lower_case_digits_have_a_value() {
    for byte in 0..=u8::MAX {
        let digit = char::from(byte).to_digit(16);
        let expect = digit.filter(|_| !byte.is_ascii_uppercase());
        let found = Some(u32::from(value_of(byte))).filter(|value| *value < 16);
        assert_eq!(found, expect, "byte {byte}");
    }
}

#[test]
fn forms_convert() {
    let hash = Hash::of(b"abc");
    assert_eq!(hash.to_digest().to_hash(), hash);
    assert_eq!(Hash::from_bytes(*hash.as_bytes()), hash);
    assert_eq!(Digest::from_bytes(*hash.as_bytes()), hash.to_digest());
}

#[test]
fn reading_is_strict() {
    assert_eq!(ABC.parse::<Hash>().unwrap(), Hash::of(b"abc"));
    assert_eq!(
        format!("sha256:{ABC}").parse::<Digest>().unwrap(),
        Digest::of(b"abc")
    );

    let short = &ABC[..62];
    let refused = [
        "".to_owned(),
        short.to_owned(),
        format!("{ABC}00"),
        ABC.to_uppercase(),
        format!("{short}g0"),
        format!("{short}é"),
        format!(" {ABC}"),
    ];
    for text in refused {
        assert!(text.parse::<Hash>().is_err(), "{text}");
        assert!(
            format!("sha256:{text}").parse::<Digest>().is_err(),
            "{text}"
        );
    }
    assert!(format!("sha256:{ABC}").parse::<Hash>().is_err());
    for prefix in ["", "SHA256:", "sha-256:", "sha512:", "sha256"] {
        assert!(
            format!("{prefix}{ABC}").parse::<Digest>().is_err(),
            "{prefix}"
        );
    }
}

#[test]
fn messages_quote_the_text() {
    let hash = "xyz".parse::<Hash>().unwrap_err().to_string();
    assert_eq!(hash, "`xyz` is not 64 lower-case hex digits");
    let digest = "xyz".parse::<Digest>().unwrap_err().to_string();
    assert_eq!(
        digest,
        "`xyz` is not `sha256:` and 64 lower-case hex digits"
    );
}
