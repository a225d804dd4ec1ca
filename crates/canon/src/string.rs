//! JSON strings: finding where one ends, undoing its escapes, and fast scanning.

use std::borrow::Cow;

use crate::error::Reason;

/// A reason and the byte it concerns.
pub(crate) type Fault = (Reason, usize);

/// The inside of a JSON string, by its place in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) escaped: bool,
}

impl Span {
    /// The characters that the string denotes.
    #[inline]
    pub(crate) fn characters<'a>(&self, text: &'a str) -> Result<Cow<'a, str>, Fault> {
        let raw = text.get(self.start..self.end).unwrap_or_default();
        match self.escaped {
            false => Ok(Cow::Borrowed(raw)),
            true => unescape(raw, self.start).map(Cow::Owned),
        }
    }
}

/// Finds the end of the string whose opening quote is at `quote`. It holds no raw control character;
/// its escapes are not looked at.
#[inline]
pub(crate) fn span(text: &str, quote: usize) -> Result<Span, Fault> {
    let start = quote + 1;
    let end = plain_end(text.as_bytes(), start);
    match text.as_bytes().get(end) {
        Some(b'"') => Ok(Span {
            start,
            end,
            escaped: false,
        }),
        _ => escaped_span(text, start, end),
    }
}

fn escaped_span(text: &str, start: usize, mut end: usize) -> Result<Span, Fault> {
    loop {
        match text.as_bytes().get(end) {
            Some(b'"') => {
                return Ok(Span {
                    start,
                    end,
                    escaped: true,
                });
            }
            Some(b'\\') => end = plain_end(text.as_bytes(), end + 2),
            Some(&control) => return Err((Reason::ControlCharacter(control), end)),
            None => return Err((Reason::UnexpectedEnd, text.len())),
        }
    }
}

/// Undoes the escapes in `raw`, which starts at byte `start` of its text.
fn unescape(raw: &str, start: usize) -> Result<String, Fault> {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, from_backslash)) = split_at_backslash(rest) {
        out.push_str(plain);
        let at = start + raw.len() - from_backslash.len();
        let (c, length) = escape(from_backslash).map_err(|reason| (reason, at))?;
        out.push(c);
        rest = from_backslash.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    Ok(out)
}

fn split_at_backslash(text: &str) -> Option<(&str, &str)> {
    text.split_at_checked(text.find('\\')?)
}

/// The character denoted by the escape at the start of `text`, and the length of the escape.
fn escape(text: &str) -> Result<(char, usize), Reason> {
    let c = match text.as_bytes().get(1) {
        Some(b'u') => return unicode_escape(text),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(&same @ (b'"' | b'\\' | b'/')) => char::from(same),
        _ => return Err(Reason::InvalidEscape),
    };
    Ok((c, 2))
}

fn unicode_escape(text: &str) -> Result<(char, usize), Reason> {
    let first = code_unit(text).ok_or(Reason::InvalidEscape)?;
    let second = text.get(6..).and_then(code_unit);
    let mut decoded = char::decode_utf16([Some(first), second].into_iter().flatten());
    match decoded.next() {
        Some(Ok(c)) => Ok((c, 6 * c.len_utf16())),
        _ => Err(Reason::LoneSurrogate),
    }
}

/// The code unit of a `\uXXXX` at the start of `text`.
fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    // `from_str_radix` alone would let `+123` pass.
    let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

/// Appends `\uXXXX` in lower case.
pub(crate) fn push_unicode_escape(unit: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        let digit = char::from_digit(u32::from(unit >> shift & 0xf), 16).unwrap_or_default();
        out.push(digit as u8);
    }
}

/// The first byte at or after `from` that is a quote, a backslash or a control character; the
/// length of `bytes` if there is none.
#[inline]
pub(crate) fn plain_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    plain_end_bytewise(bytes, at)
}

fn plain_end_bytewise(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let plain = rest
        .iter()
        .take_while(|&&b| b >= 0x20 && b != b'"' && b != b'\\')
        .count();
    bytes.len().min(from) + plain
}

/// Marks the high bit of bytes that end a plain run. The lowest mark is always right; a borrow may
/// set wrong marks above it.
#[inline]
fn special_bytes(word: u64) -> u64 {
    // With bit 1 flipped, the quote (0x22) joins the control characters below 0x21, and the space
    // (0x20) leaves for 0x22.
    let quote_or_control = word ^ (ONES * 0x02);
    let backslash = word ^ (ONES * 0x5c);
    let low = quote_or_control.wrapping_sub(ONES * 0x21) & !quote_or_control;
    let zero = backslash.wrapping_sub(ONES) & !backslash;
    (low | zero) & HIGH_BITS
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_runs_end_at_every_special_byte_and_at_no_other() {
        for length in 0..40 {
            for position in 0..length {
                for byte in 0..=255u8 {
                    let mut bytes = vec![b'x'; length];
                    bytes[position] = byte;
                    let special = byte < 0x20 || byte == b'"' || byte == b'\\';
                    let expect = if special { position } else { length };
                    assert_eq!(plain_end(&bytes, 0), expect, "byte {byte} at {position}");
                }
            }
        }
    }

    fn check(raw: &str, expect: Result<&str, Reason>) {
        let text = format!("\"{raw}\"");
        let read = span(&text, 0)
            .and_then(|span| span.characters(&text))
            .map_err(|fault| fault.0);
        assert_eq!(read.as_deref(), expect.as_ref().map(|s| *s), "{raw}");
    }

    #[test]
    fn escapes() {
        check("", Ok(""));
        check("é\u{7f}", Ok("é\u{7f}"));
        check(r#"\"\\\/\b\f\n\r\t"#, Ok("\"\\/\u{8}\u{c}\n\r\t"));
        check(r"\u00e9\u00E9\u0000", Ok("éé\0"));
        check(r"\ud83d\ude00x", Ok("😀x"));
        check(r"\ue000\uffff", Ok("\u{e000}\u{ffff}"));
        check(r"\ud800", Err(Reason::LoneSurrogate));
        check(r"\ud800\u0041", Err(Reason::LoneSurrogate));
        check(r"\ud800\ud800", Err(Reason::LoneSurrogate));
        check(r"\ud800x", Err(Reason::LoneSurrogate));
        check(r"\udc00\ud800", Err(Reason::LoneSurrogate));
        check(r"\u12", Err(Reason::InvalidEscape));
        check(r"\u+123", Err(Reason::InvalidEscape));
        check(r"\u12é4", Err(Reason::InvalidEscape));
        check(r"\x41", Err(Reason::InvalidEscape));
        check(r"\é", Err(Reason::InvalidEscape));
        check("\\\n", Err(Reason::InvalidEscape));
        check("a\tb", Err(Reason::ControlCharacter(b'\t')));
    }
}
