//! RFC 8785 against an implementation by somebody else.

use crate::random::Random;

#[test]
fn jcs_is_what_serde_json_canonicalizer_writes() {
    let mut random = Random::doubles(2);
    for _ in 0..100_000 {
        let (text, value) = random.event();
        let found = String::from_utf8(value.to_jcs().unwrap()).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            found,
            serde_json_canonicalizer::to_string(&parsed).unwrap(),
            "{text}"
        );
    }
}
