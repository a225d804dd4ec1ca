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

#[test]
fn the_sorted_form_is_what_serde_json_writes_for_sorted_keys() {
    let mut random = Random::doubles(7);
    let mut compared = 0;
    for _ in 0..100_000 {
        let (text, value) = random.event();
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        // Read apart on purpose: integers beyond 64 bits, which are exact here, and `-0`.
        if has_wide_integer(&text) {
            continue;
        }
        compared += 1;
        let found = String::from_utf8(value.to_sorted()).unwrap();
        assert_eq!(found, sorted(&parsed).to_string(), "{text}");
    }
    assert!(compared > 50_000, "{compared}");
}

/// Other crates of a build can make the library keep the order of the text.
fn sorted(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Array(elements) => elements.iter().map(sorted).collect(),
        serde_json::Value::Object(members) => {
            let ordered: std::collections::BTreeMap<_, _> = members.iter().collect();
            ordered
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect()
        }
        other => other.clone(),
    }
}

fn has_wide_integer(text: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')))
        .filter(|word| !word.contains(['.', 'e', 'E']))
        .any(|word| *word == *"-0" || word.trim_start_matches('-').len() > 18)
}
