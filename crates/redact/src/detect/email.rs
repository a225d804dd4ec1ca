//! E-mail addresses.

use super::{run_end, run_start};
use crate::span::{EMAIL, Span};

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices('@') {
        let start = run_start(bytes, at, LONGEST_LOCAL, is_local);
        let end = domain_end(text, at + 1);
        if start < at && end > at + 1 && text.is_char_boundary(start) {
            spans.push(Span {
                start,
                end,
                mark: EMAIL,
            });
        }
    }
}

/// The end of a domain with at least two labels, or where it would begin.
fn domain_end(text: &str, from: usize) -> usize {
    let limit = text.len().min(from + LONGEST_DOMAIN);
    let bytes = text.as_bytes().get(..limit).unwrap_or_default();
    let end = run_end(bytes, from, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-') || !byte.is_ascii()
    });
    let mut end = end;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let domain = text.get(from..end).unwrap_or_default();
    let trimmed = domain.trim_end_matches(['.', '-']);
    let is_domain = trimmed.rsplit_once('.').is_some_and(|(front, top)| {
        !front.is_empty() && top.chars().count() >= 2 && !top.bytes().all(|b| b.is_ascii_digit())
    });
    if is_domain {
        from + trimmed.len()
    } else {
        from
    }
}

fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'\'')
        || !byte.is_ascii()
}

const LONGEST_LOCAL: usize = 256;
const LONGEST_DOMAIN: usize = 256;
