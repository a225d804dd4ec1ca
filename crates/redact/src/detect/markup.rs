//! Values that markup puts behind a secret name: `<password>…</password>`, `key="ApiKey" value="…"`,
//! `<key>Password</key><string>…</string>`, and parts of a form.

use crate::key;
use crate::span::{REDACTED, Span, begins_with_mark};

pub(super) fn find(text: &str, also: &[String], spans: &mut Vec<Span>) {
    tags(text, also, spans);
    parts(text, also, spans);
}

fn tags(text: &str, also: &[String], spans: &mut Vec<Span>) {
    let mut at = 0;
    // Whether a name has been told whose value comes next.
    let mut is_awaited = false;
    while let Some(start) = position(text, "<", at) {
        let Some(end) = tag_end(text, start) else {
            at = start + 1;
            continue;
        };
        at = end + 1;
        let tag = text.get(start + 1..end).unwrap_or_default();
        let content_end = position(text, "<", at).unwrap_or(at);
        let content = text.get(at..content_end).unwrap_or_default().trim();
        if tag.starts_with(['/', '!', '?']) {
            continue;
        }
        let element = tag.split(|letter: char| letter.is_whitespace() || letter == '/');
        let element = element.clone().next().unwrap_or_default();
        let is_named = attribute(tag, NAMES).is_some_and(|(_, name)| key::is_secret(name, also));
        if let Some((from, value)) = attribute(tag, VALUES).filter(|_| is_named) {
            push(spans, start + 1 + from, value);
        }
        if content.is_empty() {
            continue;
        }
        if is_awaited || is_named || key::is_secret(element, also) {
            let from = position(text, content, at).unwrap_or(at);
            push(spans, from, content);
        }
        is_awaited =
            ["key", "name", "k", "dt", "th"].contains(&element) && key::is_secret(content, also);
    }
}

fn tag_end(text: &str, start: usize) -> Option<usize> {
    let tag = text.as_bytes().get(start + 1..)?;
    let length = tag
        .iter()
        .take(LONGEST_TAG)
        .position(|byte| matches!(byte, b'>' | b'<'))?;
    (tag.get(length) == Some(&b'>')).then_some(start + 1 + length)
}

/// `name="password"`, an empty line, and the value.
fn parts(text: &str, also: &[String], spans: &mut Vec<Span>) {
    for (at, found) in text.match_indices("name=\"") {
        let from = at + found.len();
        let rest = text.get(from..).unwrap_or_default();
        let Some((name, rest)) = rest
            .split_once('"')
            .filter(|(name, _)| key::is_secret(name, also))
        else {
            continue;
        };
        let Some(gap) = ["\r\n\r\n", "\n\n"]
            .into_iter()
            .find(|gap| rest.starts_with(gap))
        else {
            continue;
        };
        let value = rest.get(gap.len()..).unwrap_or_default();
        let value = value.split(['\r', '\n']).next().unwrap_or_default();
        push(spans, from + name.len() + 1 + gap.len(), value);
    }
}

/// The value of the first of these attributes, and where it begins.
fn attribute<'t>(tag: &'t str, names: &[&str]) -> Option<(usize, &'t str)> {
    let mut at = 0;
    while let Some(equals) = position(tag, "=", at) {
        let name = tag.get(..equals)?.trim_end();
        let name = name
            .rsplit(|letter: char| !letter.is_alphanumeric())
            .next()?;
        let quote = tag.get(equals + 1..)?.chars().next()?;
        if !matches!(quote, '"' | '\'') {
            at = equals + 1;
            continue;
        }
        let value = tag.get(equals + 2..)?.split(quote).next()?;
        if names.iter().any(|one| one.eq_ignore_ascii_case(name)) {
            return Some((equals + 2, value));
        }
        at = equals + 2 + value.len();
    }
    None
}

fn push(spans: &mut Vec<Span>, start: usize, value: &str) {
    if !value.is_empty() && !begins_with_mark(value) {
        spans.push(Span {
            start,
            end: start + value.len(),
            mark: REDACTED,
        });
    }
}

fn position(text: &str, what: &str, from: usize) -> Option<usize> {
    text.get(from..)?.find(what).map(|at| from + at)
}

const NAMES: &[&str] = &["name", "key", "id"];
const VALUES: &[&str] = &["value", "content", "default"];
const LONGEST_TAG: usize = 1024;
