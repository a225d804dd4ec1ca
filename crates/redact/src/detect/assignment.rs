//! Values that stand behind a name that says that they are secret: `password=…`, `"apiKey": "…"`,
//! `Authorization: …`, `--token …`, `?sig=…`, also with `=` and `:` written as `%3D` and `%3A`.

use super::{run_end, run_start};
use crate::key;
use crate::span::{REDACTED, Span, begins_with_mark};

pub(super) fn find(text: &str, also: &[String], spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let span = separator(bytes, at).and_then(|after| assigned(text, at, after, also));
        match span {
            Some(span) => {
                at = span.end;
                spans.push(span);
            }
            None => at += 1,
        }
    }
}

/// Where what is assigned may begin, if here stands what separates it from its name.
fn separator(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    match rest {
        [b'=', b'>', ..] => Some(at + 2),
        [b'=' | b':', ..] => Some(at + 1),
        [b'%', b'3', b'D' | b'd' | b'A' | b'a', ..] => Some(at + 3),
        [b' ', ..] if is_after_flag(bytes, at) => Some(at + 1),
        _ => None,
    }
}

fn is_after_flag(bytes: &[u8], at: usize) -> bool {
    let start = run_start(bytes, at, LONGEST_NAME, is_name);
    bytes
        .get(start..)
        .is_some_and(|flag| flag.starts_with(b"--"))
}

fn assigned(text: &str, separator: usize, after: usize, also: &[String]) -> Option<Span> {
    let bytes = text.as_bytes();
    let name_end = run_start(bytes, separator, LONGEST_GAP, |byte| {
        matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'\\' | b'`' | b']')
    });
    let mut name_start = run_start(bytes, name_end, LONGEST_NAME, is_name);
    let before = name_start.checked_sub(1).and_then(|at| bytes.get(at));
    if before == Some(&b'%') {
        // What looks like its first two letters is an escaped separator.
        name_start = name_end.min(name_start + 2);
    }
    let name = text.get(name_start..name_end)?;
    let around = text.get(name_start.saturating_sub(1)..)?;
    if begins_with_mark(around) || !key::is_secret(name, also) {
        return None;
    }
    let gap = value_start(bytes, after);
    if let Some((start, end)) = thrice_quoted(text, gap) {
        return (end > start && !begins_with_mark(text.get(start..)?.trim_start())).then_some(
            Span {
                start,
                end,
                mark: REDACTED,
            },
        );
    }
    let (start, quote) = match bytes.get(gap) {
        Some(quote @ (b'"' | b'\'' | b'`')) => (gap + 1, Some(*quote)),
        _ => (gap, None),
    };
    let value = text.get(start..)?;
    if value.starts_with("//") || begins_with_mark(value) || begins_with_mark(after_word(value)) {
        return None;
    }
    let around = before.copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let end = if key::takes_the_line(name) && quote.is_none() {
        run_end(bytes, start, |byte| {
            !matches!(byte, b'\r' | b'\n') && Some(byte) != around
        })
    } else if let Some(quote) = quote {
        quote_end(bytes, start, quote)
    } else if begins_line(bytes, name_start) && !key::counts(name) {
        line_value_end(bytes, (name_end, separator), start)
    } else {
        value_end(bytes, start)
    };
    let is_count = key::counts(name)
        && text.get(start..end).is_some_and(|value| {
            value.bytes().all(|byte| byte.is_ascii_digit()) && value.len() < LONGEST_COUNT
        });
    (end > start && !is_count).then_some(Span {
        start,
        end,
        mark: REDACTED,
    })
}

/// Where a value begins, behind space and behind the anchor or the tag that YAML puts before it.
fn value_start(bytes: &[u8], after: usize) -> usize {
    let is_gap = |byte| matches!(byte, b' ' | b'\t' | b'\\');
    let gap = run_end(bytes, after, is_gap);
    match bytes.get(gap) {
        Some(b'&' | b'!') => {
            let end = run_end(bytes, gap, |byte| !byte.is_ascii_whitespace());
            match bytes.get(end) {
                Some(b' ') => run_end(bytes, end, is_gap),
                _ => gap,
            }
        }
        _ => gap,
    }
}

/// A value in three quotes, which may have several lines; one that does not end goes to the end of the text.
fn thrice_quoted(text: &str, gap: usize) -> Option<(usize, usize)> {
    let rest = text.get(gap..)?;
    let quotes = ["\"\"\"", "'''"]
        .into_iter()
        .find(|quotes| rest.starts_with(quotes))?;
    let start = gap + quotes.len();
    let length = text.get(start..)?.find(quotes);
    Some((start, length.map_or(text.len(), |length| start + length)))
}

/// The end of a quoted value. A quote inside it stands behind more backslashes than the first one does.
fn quote_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let slashes = |at: usize| at - run_start(bytes, at, LONGEST_GAP, |byte| byte == b'\\');
    let first = slashes(start.saturating_sub(1));
    let mut end = start;
    loop {
        end = run_end(bytes, end, |byte| byte != quote);
        if end >= bytes.len() || slashes(end) <= first {
            return end;
        }
        end += 1;
    }
}

/// Whether a name is the first thing on its line.
fn begins_line(bytes: &[u8], name_start: usize) -> bool {
    let start = run_start(bytes, name_start, LONGEST_NAME, |byte| {
        matches!(byte, b' ' | b'\t' | b'-')
    });
    let before = start.checked_sub(1).and_then(|at| bytes.get(at));
    before.is_none_or(|byte| *byte == b'\n')
}

/// The end of a value in a file of lines: `NAME=value` ends with a space as in a shell, `name: value` and
/// `name = value` with the line.
fn line_value_end(bytes: &[u8], (name_end, separator): (usize, usize), start: usize) -> usize {
    let is_shell = bytes.get(separator) == Some(&b'=') && name_end == separator;
    run_end(bytes, start, |byte| match byte {
        b'\r' | b'\n' => false,
        byte => !(is_shell && byte.is_ascii_whitespace()),
    })
}

fn value_end(bytes: &[u8], start: usize) -> usize {
    let is_value = |byte: u8| {
        !byte.is_ascii_whitespace()
            && !matches!(
                byte,
                b',' | b';' | b'&' | b'"' | b'\'' | b'<' | b'>' | b')' | b']' | b'}' | b'\\' | b'`'
            )
    };
    let end = run_end(bytes, start, is_value);
    let is_scheme = bytes.get(start..end).is_some_and(|word| {
        SCHEMES
            .iter()
            .any(|scheme| word.eq_ignore_ascii_case(scheme))
    });
    if !is_scheme {
        return end;
    }
    let next = run_end(bytes, end, |byte| byte == b' ');
    run_end(bytes, next, is_value)
}

/// The text behind its first word.
fn after_word(value: &str) -> &str {
    value.split_once(' ').map_or("", |(_, rest)| rest)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') || !byte.is_ascii()
}

const SCHEMES: &[&[u8]] = &[
    b"bearer",
    b"basic",
    b"digest",
    b"token",
    b"negotiate",
    b"apikey",
];
const LONGEST_NAME: usize = 128;
const LONGEST_GAP: usize = 8;
const LONGEST_COUNT: usize = 10;
