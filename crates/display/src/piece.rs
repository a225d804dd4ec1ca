//! Text, cut into what shows as itself and what is written as a code point; and back.

use unicode_normalization::char::{canonical_combining_class, compose};
use unicode_script::UnicodeScript;

use crate::character::{Hidden, hidden, is_mark, is_right_to_left};

/// What may stay as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// Everything that shows as itself; the rest of the line must be empty.
    Text,
    /// The same without right-to-left letters, which would move what follows on the line.
    Label,
    /// ASCII.
    Ascii,
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// Shows as itself.
    Plain(&'t str),
    /// The same character so many times, written as a code point.
    Escaped(Escape),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Escape {
    pub(crate) character: char,
    pub(crate) count: usize,
    pub(crate) why: Hidden,
}

impl Escape {
    /// `⟨U+XXXX⟩`, or `⟨U+XXXX×12⟩` for a row of twelve.
    pub(crate) fn text(&self) -> String {
        let code = u32::from(self.character);
        match self.count {
            1 => format!("⟨U+{code:04X}⟩"),
            count => format!("⟨U+{code:04X}×{count}⟩"),
        }
    }
}

/// The parts of a text, in order.
pub(crate) fn pieces(text: &str, show: Show) -> Pieces<'_> {
    Pieces {
        rest: text,
        show,
        before: Before::default(),
    }
}

/// Undoes the escapes. `None` if one is not well formed.
pub(crate) fn unescape(shown: &str) -> Option<String> {
    let mut text = String::with_capacity(shown.len());
    let mut rest = shown;
    while let Some((plain, escape)) = rest.split_once('⟨') {
        text.push_str(plain);
        let (code, after) = escape.split_once('⟩')?;
        let code = code.strip_prefix("U+")?;
        let (code, count) = match code.split_once('×') {
            Some((code, count)) => (code, count.parse().ok()?),
            None => (code, 1),
        };
        let c = char::from_u32(u32::from_str_radix(code, 16).ok()?)?;
        if count > LONGEST_ROW {
            return None;
        }
        text.extend(std::iter::repeat_n(c, count));
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

pub(crate) struct Pieces<'t> {
    rest: &'t str,
    show: Show,
    before: Before,
}

/// What stands directly before, as far as it was shown as itself.
#[derive(Default)]
struct Before {
    base: Option<char>,
    last: Option<char>,
    marks: usize,
    is_right_to_left: bool,
}

enum Judged {
    /// So many bytes show as themselves.
    Raw(usize),
    Escape(Escape),
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let text = self.rest;
        let mut plain = 0;
        while let Some(c) = self.rest.chars().next() {
            match self.judge(c) {
                Judged::Raw(length) => {
                    self.pass(length);
                    plain += length;
                }
                Judged::Escape(escape) if plain == 0 => {
                    self.before = Before::default();
                    let length = escape.count * c.len_utf8();
                    self.rest = self.rest.get(length..).unwrap_or_default();
                    return Some(Piece::Escaped(escape));
                }
                Judged::Escape(_) => break,
            }
        }
        let plain = text.get(..plain)?;
        (!plain.is_empty()).then_some(Piece::Plain(plain))
    }
}

impl Pieces<'_> {
    fn judge(&self, c: char) -> Judged {
        let once = |why| {
            Judged::Escape(Escape {
                character: c,
                count: 1,
                why,
            })
        };
        if self.before.is_right_to_left && !is_right_to_left(c) && !c.is_alphabetic() {
            // SECURITY: a sign or digit between right-to-left words would show in another place.
            return once(Hidden::Reordered);
        }
        match c {
            ' ' => self.spaces(),
            '!'..='~' => Judged::Raw(ascii_run(self.rest)),
            _ => match hidden(c) {
                Some(why) => Judged::Escape(Escape {
                    character: c,
                    count: self.rest.chars().take_while(|next| *next == c).count(),
                    why,
                }),
                None if self.show == Show::Ascii => once(Hidden::Reserved),
                None if is_right_to_left(c) && self.show == Show::Label => once(Hidden::Reordered),
                None if is_mark(c) && !self.carries(c) => once(Hidden::Combining),
                None => Judged::Raw(c.len_utf8()),
            },
        }
    }

    /// Spaces in a row show as themselves unless they are many or nothing comes after them.
    fn spaces(&self) -> Judged {
        let count = self.rest.bytes().take_while(|byte| *byte == b' ').count();
        match count > MOST_SPACES || count == self.rest.len() {
            true => Judged::Escape(Escape {
                character: ' ',
                count,
                why: Hidden::Space,
            }),
            false => Judged::Raw(count),
        }
    }

    /// Whether a mark may stand on what is before it: the same script, only a few of them, and no
    /// other spelling that would look the same.
    fn carries(&self, mark: char) -> bool {
        let (Some(base), Some(last)) = (self.before.base, self.before.last) else {
            return false;
        };
        let class = canonical_combining_class(mark);
        let is_ordered = class == 0 || canonical_combining_class(last) <= class;
        self.before.marks < MOST_MARKS
            && base.script() == mark.script()
            && mark != last
            && is_ordered
            && compose(base, mark).is_none()
            && compose(last, mark).is_none()
    }

    fn pass(&mut self, length: usize) {
        let (passed, rest) = self.rest.split_at_checked(length).unwrap_or_default();
        self.rest = rest;
        let Some(last) = passed.chars().next_back() else {
            return;
        };
        match is_mark(last) {
            true => self.before.marks += 1,
            false => {
                self.before.base = Some(last);
                self.before.marks = 0;
            }
        }
        self.before.last = Some(last);
        self.before.is_right_to_left = is_right_to_left(last);
    }
}

fn ascii_run(text: &str) -> usize {
    text.bytes()
        .take_while(|byte| matches!(byte, b'!'..=b'~'))
        .count()
}

/// So many spaces in a row can still be counted by eye.
const MOST_SPACES: usize = 8;
/// So many marks one letter may carry.
const MOST_MARKS: usize = 3;
/// No plan is longer, so no row is.
const LONGEST_ROW: usize = 4 << 20;

#[cfg(test)]
mod tests;
