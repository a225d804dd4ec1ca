//! Private keys in their armour, with everything between the lines that frame them.

use crate::span::{PRIVATE_KEY, Span};

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let mut from = 0;
    while let Some(start) = position(text, BEGIN, from) {
        let label = start + BEGIN.len();
        let label_end = text.len().min(label + LONGEST_LABEL);
        let bytes = text.as_bytes().get(label..label_end).unwrap_or_default();
        let dashes = bytes.windows(5).position(|five| five == b"-----");
        let is_private = dashes
            .and_then(|at| bytes.get(..at))
            .is_some_and(|label| label.windows(7).any(|seven| seven == b"PRIVATE"));
        if !is_private {
            from = label;
            continue;
        }
        // What is cut off before its end is secret too.
        let end = position(text, END, label)
            .and_then(|at| position(text, "-----", at + END.len()))
            .map_or(text.len(), |at| at + 5);
        spans.push(Span {
            start,
            end,
            mark: PRIVATE_KEY,
        });
        from = end;
    }
}

fn position(text: &str, what: &str, from: usize) -> Option<usize> {
    text.get(from..)?.find(what).map(|at| from + at)
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const LONGEST_LABEL: usize = 64;
