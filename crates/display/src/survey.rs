//! Looking over everything in a plan, shown or not.

use std::collections::{BTreeMap, HashMap};

use countersign_canon::Object;

use crate::character::Hidden;
use crate::lookalike::{self, Finding};
use crate::piece::{Piece, Show, pieces};
use crate::warning::Warning;

/// What was found so far.
#[derive(Default)]
pub(crate) struct Survey {
    hidden: BTreeMap<Hidden, (usize, String)>,
    warnings: Vec<Warning>,
    left_out: usize,
}

/// One step from a value to a value inside it.
#[derive(Clone, Copy)]
pub(crate) enum Step<'j> {
    Member(&'j str),
    Element(usize),
}

impl Survey {
    /// A text that may have several lines.
    pub(crate) fn text(&mut self, text: &str, path: &[Step<'_>]) {
        if is_unremarkable(text) {
            return;
        }
        let mut empty = 0;
        for line in text.split('\n') {
            match line {
                "" => empty += 1,
                _ => {
                    self.empty_lines(std::mem::take(&mut empty), path);
                    self.line(line, Show::Text, path);
                }
            }
        }
        self.empty_lines(empty, path);
        self.names(text, path, false);
    }

    /// The names of an object's members.
    pub(crate) fn keys(&mut self, object: &Object, path: &[Step<'_>]) {
        let mut any = false;
        for (key, _) in object {
            any |= !key.is_ascii();
            if !is_unremarkable(key) || key.contains('\n') {
                self.line(key, Show::Label, path);
                self.names(key, path, true);
            }
        }
        if any {
            self.alike(object, path);
        }
    }

    /// How many characters do not show as themselves.
    pub(crate) fn hidden_count(&self) -> usize {
        self.hidden.values().map(|(count, _)| count).sum()
    }

    /// How many of each kind.
    pub(crate) fn hidden(&self) -> BTreeMap<Hidden, usize> {
        let counts = self.hidden.iter();
        counts.map(|(why, (count, _))| (*why, *count)).collect()
    }

    /// The warnings, and how many more there were.
    pub(crate) fn finish(self) -> (Vec<Warning>, usize) {
        let alarming = self.hidden.into_iter().filter(|(why, _)| why.is_alarming());
        let mut warnings: Vec<Warning> = alarming
            .map(|(what, (count, pointer))| Warning::Hidden {
                what,
                count,
                pointer,
            })
            .collect();
        warnings.extend(self.warnings);
        (warnings, self.left_out)
    }

    fn line(&mut self, line: &str, show: Show, path: &[Step<'_>]) {
        for piece in pieces(line, show) {
            let Piece::Escaped(escape) = piece else {
                continue;
            };
            if escape.character == ' ' && escape.count >= MANY_SPACES {
                self.warn(path, |pointer| Warning::Spaces {
                    count: escape.count,
                    pointer,
                });
            }
            let found = self.hidden.entry(escape.why);
            found.or_insert_with(|| (0, pointer(path))).0 += escape.count;
        }
    }

    fn names(&mut self, text: &str, path: &[Step<'_>], is_key: bool) {
        for (subject, token, finding) in lookalike::findings(text, is_key) {
            let text = || token.chars().take(LONGEST_NAME).collect();
            self.warn(path, |pointer| match finding {
                Finding::LooksLike(like) => Warning::LooksLike {
                    subject,
                    text: text(),
                    like: like.chars().take(LONGEST_NAME).collect(),
                    pointer,
                },
                Finding::MixedScript => Warning::MixedScript {
                    subject,
                    text: text(),
                    pointer,
                },
            });
        }
    }

    fn alike(&mut self, object: &Object, path: &[Step<'_>]) {
        let mut shapes: HashMap<String, &str> = HashMap::new();
        for (key, _) in object {
            let other = shapes.insert(lookalike::shape(key), key);
            if let Some(other) = other.filter(|other| !(other.is_ascii() && key.is_ascii())) {
                self.warn(path, |pointer| Warning::KeysAlike {
                    first: other.chars().take(LONGEST_NAME).collect(),
                    second: key.chars().take(LONGEST_NAME).collect(),
                    pointer,
                });
            }
        }
    }

    fn empty_lines(&mut self, count: usize, path: &[Step<'_>]) {
        if count >= MANY_LINES {
            self.warn(path, |pointer| Warning::EmptyLines { count, pointer });
        }
    }

    fn warn(&mut self, path: &[Step<'_>], warning: impl FnOnce(String) -> Warning) {
        match self.warnings.len() < MOST_WARNINGS {
            true => self.warnings.push(warning(pointer(path))),
            false => self.left_out += 1,
        }
    }
}

/// The JSON pointer of a path.
fn pointer(path: &[Step<'_>]) -> String {
    let step = |step: &Step<'_>| match step {
        Step::Member(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        Step::Element(index) => format!("/{index}"),
    };
    path.iter().map(step).collect()
}

/// Printable ASCII with single spaces: nothing to find here.
fn is_unremarkable(text: &str) -> bool {
    let mut last = b'\n';
    let is_plain = |byte: u8| {
        let fits = matches!(byte, b'!'..=b'~') || byte == b' ' && last != b' ';
        last = byte;
        fits
    };
    text.bytes().all(is_plain) && !text.ends_with(' ')
}

/// So much of a suspicious name is kept.
const LONGEST_NAME: usize = 256;
const MOST_WARNINGS: usize = 32;
const MANY_LINES: usize = 20;
const MANY_SPACES: usize = 40;
