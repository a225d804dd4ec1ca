//! Places in a text that are to be replaced.

use std::borrow::Cow;

/// A part of a text, and what stands in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) mark: &'static str,
}

pub(crate) const CARD: &str = "[CARD]";
pub(crate) const CREDENTIALS: &str = "[CREDENTIALS]";
pub(crate) const EMAIL: &str = "[EMAIL]";
pub(crate) const JWT: &str = "[JWT]";
pub(crate) const PHONE: &str = "[PHONE]";
pub(crate) const PRIVATE_KEY: &str = "[PRIVATE_KEY]";
pub(crate) const REDACTED: &str = "[REDACTED]";
pub(crate) const SSN: &str = "[SSN]";
pub(crate) const TOKEN: &str = "[TOKEN]";

/// What stands for a value in a command line.
pub(crate) const GENERAL: &str = "***";

const MARKS: [&str; 9] = [
    CARD,
    CREDENTIALS,
    EMAIL,
    JWT,
    PHONE,
    PRIVATE_KEY,
    REDACTED,
    SSN,
    TOKEN,
];

/// Whether a text begins with the mark of something that was replaced before.
pub(crate) fn begins_with_mark(text: &str) -> bool {
    text.starts_with(GENERAL)
        || text.starts_with('[') && MARKS.iter().any(|mark| text.starts_with(mark))
}

/// Whether something in a text was replaced before.
pub(crate) fn holds_mark(text: &str) -> bool {
    text.contains('[') && MARKS.iter().any(|mark| text.contains(mark))
}

/// The text with every span replaced. Where spans overlap, the one that begins first names the whole.
pub(crate) fn replace(text: &str, mut spans: Vec<Span>) -> Cow<'_, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    spans.sort_unstable_by_key(|span| (span.start, usize::MAX - span.end));
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    let mut spans = spans.into_iter().peekable();
    while let Some(mut span) = spans.next() {
        while let Some(next) = spans.next_if(|next| next.start < span.end) {
            span.end = span.end.max(next.end);
        }
        out.push_str(text.get(done..span.start).unwrap_or_default());
        out.push_str(span.mark);
        done = span.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}
