//! Names and passwords in front of the host of a URL.

use super::{run_end, run_start};
use crate::span::{CREDENTIALS, Span, begins_with_mark};

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    for (at, _) in text.match_indices("//") {
        let start = at + 2;
        let is_whole = at.checked_sub(1).and_then(|at| text.as_bytes().get(at)) == Some(&b':');
        if let Some(end) = userinfo_end(text, start, is_whole) {
            push(spans, text, start, end);
        }
    }
    for mark in ["@tcp(", "@unix(", "@//"] {
        for (at, _) in text.match_indices(mark) {
            let start = run_start(text.as_bytes(), at, LONGEST, |byte| {
                !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'=' | b'/' | b']')
                    || byte == b'/' && mark == "@//"
            });
            push(spans, text, start, at);
        }
    }
}

/// Where the names and passwords end that a URL begins with. Without a scheme only what has a password
/// is one.
fn userinfo_end(text: &str, start: usize, is_whole: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let end = run_end(bytes, start, |byte| {
        is_part(byte) && !matches!(byte, b'/' | b'?' | b'#')
    });
    let authority = text.get(start..end)?;
    if let Some(at) = authority.rfind('@') {
        let has_password = authority.get(..at)?.contains(':');
        return (is_whole || has_password).then_some(start + at);
    }
    // What stands where a port would and is no number is the beginning of a password with a slash.
    let (_, port) = authority.rsplit_once(':')?;
    if port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()) || !is_whole {
        return None;
    }
    let rest = bytes.get(end..)?.iter().take(LONGEST);
    let at = rest
        .take_while(|byte| is_part(**byte))
        .position(|byte| *byte == b'@')?;
    Some(end + at)
}

fn is_part(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'\\')
}

fn push(spans: &mut Vec<Span>, text: &str, start: usize, end: usize) {
    let userinfo = text.get(start..end).unwrap_or_default();
    if !userinfo.is_empty() && !begins_with_mark(userinfo) {
        spans.push(Span {
            start,
            end,
            mark: CREDENTIALS,
        });
    }
}

const LONGEST: usize = 256;
