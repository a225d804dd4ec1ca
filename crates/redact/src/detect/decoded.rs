//! Text that was encoded for another syntax: `%3D` of URLs, `\u003d` of JSON, `&quot;` of HTML. What is found in
//! the text that it stands for is found in it.

use crate::span::Span;

/// A text, and where each of its bytes comes from.
pub(super) struct Decoded {
    pub(super) text: String,
    /// One more than there are bytes.
    from: Vec<usize>,
}

impl Decoded {
    /// What a text stands for, if that is another.
    pub(super) fn of(text: &str) -> Option<Self> {
        if !text.contains(['%', '\\', '&']) {
            return None;
        }
        let mut decoded = Self {
            text: String::with_capacity(text.len()),
            from: Vec::with_capacity(text.len() + 1),
        };
        let mut at = 0;
        while let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) {
            let (letter, length) = text
                .get(at..)
                .and_then(escaped)
                .unwrap_or((letter, letter.len_utf8()));
            decoded.text.push(letter);
            decoded.from.resize(decoded.text.len(), at);
            at += length;
        }
        decoded.from.push(text.len());
        (decoded.text.len() < text.len()).then_some(decoded)
    }

    /// The place in the encoded text.
    pub(super) fn back(&self, span: &Span) -> Option<Span> {
        Some(Span {
            start: *self.from.get(span.start)?,
            end: *self.from.get(span.end)?,
            mark: span.mark,
        })
    }
}

/// The ASCII letter that an escape stands for, and how long the escape is.
fn escaped(text: &str) -> Option<(char, usize)> {
    let (code, length) = match text.as_bytes() {
        [b'%', high, low, ..] => (hex(&[*high, *low])?, 3),
        [b'\\', b'u', a, b, c, d, ..] => (hex(&[*a, *b, *c, *d])?, 6),
        [b'\\', b'x', high, low, ..] => (hex(&[*high, *low])?, 4),
        [b'&', ..] => return entity(text),
        _ => return None,
    };
    let letter = char::from_u32(code).filter(char::is_ascii)?;
    Some((letter, length))
}

fn entity(text: &str) -> Option<(char, usize)> {
    let end = text
        .bytes()
        .take(LONGEST_ENTITY)
        .position(|byte| byte == b';')?;
    let name = text.get(1..end)?;
    let letter = match name {
        "quot" => '"',
        "apos" => '\'',
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "equals" => '=',
        "colon" => ':',
        name => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code).filter(char::is_ascii)?
        }
    };
    Some((letter, end + 1))
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |code, digit| {
        Some(code * 16 + char::from(*digit).to_digit(16)?)
    })
}

const LONGEST_ENTITY: usize = 10;
