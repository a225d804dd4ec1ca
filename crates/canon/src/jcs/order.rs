//! The order of keys in RFC 8785: by UTF-16 code units.

use std::cmp::Ordering;

/// Compares two UTF-8 texts as their UTF-16 code units, without encoding either.
pub(super) fn utf16(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    match a.iter().zip(b).find(|(x, y)| x != y) {
        Some((x, y)) => weight(*x).cmp(&weight(*y)),
        None => a.len().cmp(&b.len()),
    }
}

/// Compares as [`utf16`] does, but up to the closing quote of each text. `None` if an escape comes
/// before the texts differ, or if one has no closing quote.
#[inline]
pub(super) fn quoted_utf16(a: &[u8], b: &[u8]) -> Option<Ordering> {
    for (&x, &y) in a.iter().zip(b) {
        if x == b'\\' || y == b'\\' {
            return None;
        }
        if x != y {
            return Some(quoted_weight(x).cmp(&quoted_weight(y)));
        }
        if x == b'"' {
            return Some(Ordering::Equal);
        }
    }
    None
}

/// Whether a text sorts the same among texts by code point and by UTF-16 code units: it holds no
/// character from U+E000 on.
pub(super) fn is_code_point_order(text: &str) -> bool {
    text.bytes().all(|byte| byte < FIRST_FROM_E000)
}

/// UTF-8 sorts by code point. UTF-16 differs in one thing: characters beyond U+FFFF are written with
/// surrogates and sort before U+E000–U+FFFF, whose first bytes are 0xEE and 0xEF.
#[inline]
fn weight(byte: u8) -> u8 {
    match byte {
        FIRST_FROM_E000 | 0xef => byte + 0x10,
        _ => byte,
    }
}

/// The quote ends a text, and a text that ends sorts before any that goes on.
#[inline]
fn quoted_weight(byte: u8) -> u8 {
    match byte {
        b'"' => 0,
        _ => weight(byte),
    }
}

const FIRST_FROM_E000: u8 = 0xee;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_encoded_utf16() {
        let samples = [
            "",
            " ",
            "!",
            "#",
            "a",
            "ab",
            "b",
            "é",
            "\u{7f}",
            "\u{80}",
            "\u{7ff}",
            "\u{800}",
            "\u{d7ff}",
            "\u{e000}",
            "\u{e001}",
            "\u{fb33}",
            "\u{ffff}",
            "\u{10000}",
            "\u{1f600}",
            "\u{10ffff}",
            "a!",
            "a\u{e000}",
            "a\u{10000}",
            "\u{10000}a",
            "\u{10000}\u{e000}",
            "\u{10000}\u{10000}",
        ];
        for a in samples {
            for b in samples {
                let expect = a.encode_utf16().cmp(b.encode_utf16());
                assert_eq!(utf16(a, b), expect, "{a:?} {b:?}");
                let (a, b) = (format!("{a}\":1"), format!("{b}\",{{}}"));
                assert_eq!(
                    quoted_utf16(a.as_bytes(), b.as_bytes()),
                    Some(expect),
                    "{a} {b}"
                );
            }
        }
    }

    #[test]
    fn escapes_need_a_closer_look() {
        for (a, b) in [
            (r#"\n""#, r#"\t""#),
            (r#"a""#, r#"\n""#),
            (r#"a\n""#, r#"a\n""#),
        ] {
            assert_eq!(quoted_utf16(a.as_bytes(), b.as_bytes()), None);
        }
        assert_eq!(quoted_utf16(br#"a\n""#, br#"b\n""#), Some(Ordering::Less));
    }
}
