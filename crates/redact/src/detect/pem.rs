//! Private keys in their armour, with everything between the lines that frame them.

use crate::span::{PRIVATE_KEY, Span};

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    for armour in ARMOURS {
        armour.find(text, spans);
    }
}

/// How a key is framed.
struct Armour {
    begin: &'static str,
    end: &'static str,
    dashes: &'static str,
    /// Whether what begins is private whatever its label says.
    is_private: bool,
}

impl Armour {
    fn find(&self, text: &str, spans: &mut Vec<Span>) {
        let mut from = 0;
        while let Some(start) = position(text, self.begin, from) {
            let label = start + self.begin.len();
            if !self.is_private && !self.is_labelled(text, label) {
                from = label;
                continue;
            }
            // What is cut off before its end is secret too.
            let end = position(text, self.end, label)
                .and_then(|at| position(text, self.dashes, at + self.end.len()))
                .map_or(text.len(), |at| at + self.dashes.len());
            spans.push(Span {
                start,
                end,
                mark: PRIVATE_KEY,
            });
            from = end;
        }
    }

    fn is_labelled(&self, text: &str, label: usize) -> bool {
        let label_end = text.len().min(label + LONGEST_LABEL);
        let bytes = text.as_bytes().get(label..label_end).unwrap_or_default();
        let dashes = self.dashes.as_bytes();
        let end = bytes.windows(dashes.len()).position(|run| run == dashes);
        end.and_then(|at| bytes.get(..at))
            .is_some_and(|label| label.windows(7).any(|seven| seven == b"PRIVATE"))
    }
}

fn position(text: &str, what: &str, from: usize) -> Option<usize> {
    text.get(from..)?.find(what).map(|at| from + at)
}

const ARMOURS: &[Armour] = &[
    Armour {
        begin: "-----BEGIN",
        end: "-----END",
        dashes: "-----",
        is_private: false,
    },
    Armour {
        begin: "---- BEGIN",
        end: "---- END",
        dashes: "----",
        is_private: false,
    },
    Armour {
        begin: "Private-Lines:",
        end: "Private-MAC",
        dashes: ":",
        is_private: true,
    },
];
const LONGEST_LABEL: usize = 64;
