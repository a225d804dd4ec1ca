//! Names and passwords in front of the host of a URL.

use super::run_end;
use crate::span::{CREDENTIALS, Span, begins_with_mark};

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices("://") {
        let start = at + 3;
        let end = run_end(bytes, start, |byte| {
            !byte.is_ascii_whitespace()
                && !matches!(
                    byte,
                    b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'\\'
                )
        });
        let authority = text.get(start..end).unwrap_or_default();
        if let Some(userinfo) = authority
            .rfind('@')
            .filter(|_| !begins_with_mark(authority))
        {
            spans.push(Span {
                start,
                end: start + userinfo,
                mark: CREDENTIALS,
            });
        }
    }
}
