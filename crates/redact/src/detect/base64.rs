//! Runs of base64 that hide what would be found in clear.

use super::run_end;
use crate::redactor::Rules;
use crate::span::{Span, TOKEN};

pub(super) fn find(text: &str, rules: &Rules, depth: usize, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = run_end(bytes, at, is_letter);
        let run = bytes.get(at..end).unwrap_or_default();
        if run.len() >= SHORTEST && hides(run, rules, depth) {
            spans.push(Span {
                start: at,
                end: run_end(bytes, end, |byte| byte == b'='),
                mark: TOKEN,
            });
        }
        at = end + 1;
    }
}

fn hides(run: &[u8], rules: &Rules, depth: usize) -> bool {
    let Ok(text) = String::from_utf8(decode(run)) else {
        return false;
    };
    let is_text = !text
        .chars()
        .any(|letter| letter.is_control() && !letter.is_whitespace());
    is_text && !super::find_at(&text, rules, depth + 1).is_empty()
}

/// The bytes that letters of either alphabet stand for; what is left over at the end is cut.
fn decode(run: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(run.len() / 4 * 3 + 2);
    for four in run.chunks(4) {
        let bits = four
            .iter()
            .fold(0_u32, |bits, letter| bits << 6 | value(*letter));
        let bits = bits << (6 * (4 - four.len()));
        let [_, a, b, c] = bits.to_be_bytes();
        out.extend([a, b, c].into_iter().take(four.len().saturating_sub(1)));
    }
    out
}

fn value(letter: u8) -> u32 {
    u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' | b'-' => 62,
        _ => 63,
    })
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

const SHORTEST: usize = 16;
