//! Steps over canonical text, one token or one value at a time.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::num::NonZeroUsize;

use super::{order, short_escape};
use crate::digest::{Digest, Hash};
use crate::error::{Deviation, Error, Kind, Reason};
use crate::number::{self, Literal};
use crate::pointer;
use crate::read::clamp_depth;
use crate::string::{self, Span, plain_end};

/// Where a key starts, behind its quote. Never zero, because a brace and a quote stand before it.
/// The key is known by this alone so that it travels in a register.
pub(super) type KeyStart = NonZeroUsize;

/// A place in a text, everything before which was canonical.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    max_depth: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a [u8], max_depth: usize) -> Result<Self, Error> {
        match std::str::from_utf8(text) {
            Ok(text) => Ok(Self {
                text,
                at: 0,
                max_depth: clamp_depth(max_depth),
            }),
            Err(error) => {
                let offset = Some(error.valid_up_to());
                Err(Error::new(Reason::InvalidUtf8, String::new(), offset))
            }
        }
    }

    #[inline]
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    /// The text from `start` to here.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes().get(start..self.at).unwrap_or_default()
    }

    /// Steps over exactly this text, or stays.
    #[inline(always)]
    pub(super) fn skip_text(&mut self, text: &str) -> bool {
        let found = self.from(self.at).starts_with(text.as_bytes());
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// Steps over a string that is a hash, or stays.
    #[inline(always)]
    pub(super) fn hash(&mut self) -> Option<Hash> {
        let [b'"', hex @ .., b'"'] = self.from(self.at).first_chunk::<66>()? else {
            return None;
        };
        let hash = Hash::from_hex(hex)?;
        self.at += 66;
        Some(hash)
    }

    /// Steps over a string that is a digest, or stays.
    #[inline(always)]
    pub(super) fn digest(&mut self) -> Option<Digest> {
        let text = self.from(self.at).first_chunk::<73>()?;
        let [hex @ .., b'"'] = text.strip_prefix(b"\"sha256:")?.first_chunk::<65>()? else {
            return None;
        };
        let hash = Hash::from_hex(hex)?;
        self.at += 73;
        Some(hash.to_digest())
    }

    /// Any value, inside `depth` containers.
    #[inline]
    pub(super) fn skip_value(&mut self, depth: usize) -> Result<(), Error> {
        match self.peek() {
            Some(b'"') => self.skip_string().map(drop),
            _ => self.skip_other_value(depth),
        }
    }

    /// Any value but a string.
    fn skip_other_value(&mut self, depth: usize) -> Result<(), Error> {
        match self.peek() {
            Some(b'{') => self.skip_object(depth),
            Some(b'[') => self.skip_array(depth),
            Some(b'-' | b'0'..=b'9') => self.skip_number(),
            Some(b't') => self.skip_word("true"),
            Some(b'f') => self.skip_word("false"),
            Some(b'n') => self.skip_word("null"),
            _ => Err(self.unexpected()),
        }
    }

    fn skip_object(&mut self, depth: usize) -> Result<(), Error> {
        self.open(depth)?;
        let mut previous = None;
        while let Some(key) = self.next_key(previous)? {
            previous = Some(key);
            self.skip_value(depth + 1)?;
        }
        Ok(())
    }

    fn skip_array(&mut self, depth: usize) -> Result<(), Error> {
        self.open(depth)?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        self.skip_value(depth + 1)?;
        while self.peek() == Some(b',') {
            self.at += 1;
            self.skip_value(depth + 1)?;
        }
        self.skip_byte(b']')
    }

    /// The opening bracket that is next, inside `depth` containers.
    pub(super) fn open(&mut self, depth: usize) -> Result<(), Error> {
        if depth >= self.max_depth {
            return Err(self.refuse(
                Reason::TooDeep {
                    limit: self.max_depth,
                },
                self.at,
            ));
        }
        self.at += 1;
        Ok(())
    }

    /// Up to the value of the next member, or past the closing brace.
    #[inline]
    pub(super) fn next_key(
        &mut self,
        previous: Option<KeyStart>,
    ) -> Result<Option<KeyStart>, Error> {
        match (self.peek(), previous) {
            (Some(b'}'), _) => {
                self.at += 1;
                return Ok(None);
            }
            (Some(b','), Some(_)) => self.at += 1,
            (Some(b'"'), None) => {}
            _ => return Err(self.unexpected()),
        }
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        let key = KeyStart::MIN.saturating_add(self.at);
        self.skip_string()?;
        if let Some(previous) = previous {
            self.check_order(previous, key)?;
        }
        self.skip_byte(b':')?;
        Ok(Some(key))
    }

    /// Up to the value of the next member if its key is one of these, written as `"key":`. The others
    /// before it are gone from them then, or all are.
    #[inline]
    pub(super) fn usual_key(
        &mut self,
        previous: Option<KeyStart>,
        keys: &mut std::slice::Iter<'_, &'a str>,
    ) -> Option<(KeyStart, &'a str)> {
        let rest = match previous {
            Some(_) => self.from(self.at).strip_prefix(b",")?,
            None => self.from(self.at),
        };
        let key = keys.find(|key| begins_with(rest, key.as_bytes()))?;
        let quote = self.bytes().len() - rest.len();
        self.at = quote + key.len();
        let name = key.get(1..key.len() - 2)?;
        Some((KeyStart::MIN.saturating_add(quote), name))
    }

    #[inline]
    fn check_order(&self, before: KeyStart, key: KeyStart) -> Result<(), Error> {
        match order::quoted_utf16(self.from(before.get()), self.from(key.get())) {
            Some(Ordering::Less) => Ok(()),
            _ => self.check_order_closely(before, key),
        }
    }

    #[inline(never)]
    fn check_order_closely(&self, before: KeyStart, key: KeyStart) -> Result<(), Error> {
        let quote = key.get() - 1;
        match order::utf16(&self.key(before), &self.key(key)) {
            Ordering::Less => Ok(()),
            Ordering::Equal => Err(self.duplicate_key(key)),
            Ordering::Greater => Err(self.deviation(Deviation::KeyOrder, quote)),
        }
    }

    /// The key that was just read, as it stands between its quotes.
    #[inline]
    pub(super) fn raw_key(&self, key: KeyStart) -> &'a str {
        self.text.get(key.get()..self.key_end()).unwrap_or_default()
    }

    /// Whether the key that was just read denotes `expected`.
    #[inline]
    pub(super) fn is_key(&self, key: KeyStart, expected: &str) -> bool {
        let raw = self
            .bytes()
            .get(key.get()..self.key_end())
            .unwrap_or_default();
        if expected.as_bytes().contains(&b'\\') || raw != expected.as_bytes() {
            return self.key(key) == expected;
        }
        true
    }

    /// The quote and the colon of the key that was just read are behind.
    #[inline]
    fn key_end(&self) -> usize {
        self.at.saturating_sub(2)
    }

    /// What a key denotes.
    fn key(&self, key: KeyStart) -> Cow<'a, str> {
        let span = string::span(self.text, key.get() - 1);
        span.and_then(|span| span.characters(self.text))
            .unwrap_or_default()
    }

    /// The string that is next, without its escapes.
    #[inline(always)]
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, Error> {
        let start = self.at + 1;
        match self.skip_string()? {
            false => Ok(Cow::Borrowed(
                self.text.get(start..self.at - 1).unwrap_or_default(),
            )),
            true => self.unescaped(start),
        }
    }

    /// The string with escapes that was just read.
    #[inline(never)]
    fn unescaped(&self, start: usize) -> Result<Cow<'a, str>, Error> {
        let span = Span {
            start,
            end: self.at - 1,
            escaped: true,
        };
        span.characters(self.text)
            .map_err(|(reason, at)| self.refuse(reason, at))
    }

    /// The string that is next; says whether it has escapes.
    #[inline(always)]
    fn skip_string(&mut self) -> Result<bool, Error> {
        let end = plain_end(self.bytes(), self.at + 1);
        if self.bytes().get(end) != Some(&b'"') {
            return self.skip_escaped(end).map(|()| true);
        }
        self.at = end + 1;
        Ok(false)
    }

    /// A string from the first byte that is not plain.
    #[inline(never)]
    fn skip_escaped(&mut self, mut end: usize) -> Result<(), Error> {
        loop {
            match self.from(end) {
                [b'"', ..] => break,
                [b'\\', escape @ ..] => match canonical_escape_length(escape) {
                    Some(length) => end = plain_end(self.bytes(), end + 1 + length),
                    None => return Err(self.deviation(Deviation::Escape, end)),
                },
                [control, ..] => return Err(self.refuse(Reason::ControlCharacter(*control), end)),
                [] => return Err(self.refuse(Reason::UnexpectedEnd, end)),
            }
        }
        self.at = end + 1;
        Ok(())
    }

    fn skip_number(&mut self) -> Result<(), Error> {
        match self.short_integer() {
            Some(_) => Ok(()),
            None => self.skip_other_number(),
        }
    }

    /// Steps over an integer of at most 53 bits in canonical form, or stays.
    #[inline]
    pub(super) fn short_integer(&mut self) -> Option<i64> {
        let rest = self.from(self.at);
        let negative = rest.first() == Some(&b'-');
        let digits = rest.get(usize::from(negative)..)?;
        let (magnitude, count) = leading_digits(digits);
        let needless_zero = digits.first() == Some(&b'0') && (count > 1 || negative);
        let goes_on = matches!(digits.get(count), Some(b'0'..=b'9' | b'.' | b'e' | b'E'));
        if count == 0 || needless_zero || goes_on || magnitude > LARGEST_INTEGER {
            return None;
        }
        self.at += usize::from(negative) + count;
        Some(if negative { -magnitude } else { magnitude })
    }

    fn skip_other_number(&mut self) -> Result<(), Error> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(literal) = Literal::scan(rest) else {
            return Err(self.refuse(Reason::InvalidNumber, self.at));
        };
        let value = number::finite(&literal).map_err(|reason| self.refuse(reason, self.at))?;
        let mut canonical = Vec::with_capacity(LONGEST_NUMBER);
        number::write_es6_double(value, &mut canonical);
        if canonical != literal.text.as_bytes() {
            return Err(self.deviation(Deviation::Number, self.at));
        }
        self.at += literal.text.len();
        Ok(())
    }

    pub(super) fn skip_word(&mut self, word: &str) -> Result<(), Error> {
        if !self.from(self.at).starts_with(word.as_bytes()) {
            return Err(self.unexpected());
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    fn skip_byte(&mut self, byte: u8) -> Result<(), Error> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    #[inline]
    fn from(&self, start: usize) -> &'a [u8] {
        self.bytes().get(start..).unwrap_or_default()
    }

    /// The next byte cannot stand here.
    #[cold]
    pub(super) fn unexpected(&self) -> Error {
        match self.peek() {
            None => self.refuse(Reason::UnexpectedEnd, self.at),
            Some(b' ' | b'\t' | b'\n' | b'\r') => self.deviation(Deviation::WhiteSpace, self.at),
            Some(byte) => self.refuse(Reason::UnexpectedByte(byte), self.at),
        }
    }

    /// Another kind of value, or none at all, stands here.
    #[cold]
    pub(super) fn expected(&self, kind: Kind) -> Error {
        match self.peek() {
            Some(b'"' | b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.refuse(Reason::Expected(kind), self.at)
            }
            _ => self.unexpected(),
        }
    }

    #[cold]
    pub(super) fn unexpected_key(&self, key: KeyStart, expected: Option<&str>) -> Error {
        let found = self.key(key).into_owned();
        let expected = expected.map(str::to_owned);
        self.refuse(Reason::UnexpectedKey { found, expected }, key.get() - 1)
    }

    /// Another text than that of a format stands here.
    #[cold]
    pub(super) fn unexpected_text(&mut self, expected: &str) -> Error {
        let missing = |key: &str, at| self.refuse(Reason::MissingKey(key.to_owned()), at);
        let key = expected.split('"').nth(1);
        let found = KeyStart::MIN.saturating_add(self.at + 1);
        match (self.from(self.at), key) {
            ([b'}', ..], Some(key)) => missing(key, self.at),
            ([b'{', b'}', ..], Some(key)) => missing(key, self.at + 1),
            ([b'{' | b',', b'"', ..], _) if key.is_none_or(|key| self.key(found) != key) => {
                self.unexpected_key(found, key)
            }
            (rest, _) => {
                let pairs = rest.iter().zip(expected.as_bytes());
                self.at += pairs
                    .take_while(|(found, expected)| found == expected)
                    .count();
                self.unexpected()
            }
        }
    }

    #[cold]
    fn duplicate_key(&self, key: KeyStart) -> Error {
        let quote = key.get() - 1;
        let key = self.key(key).into_owned();
        let member = pointer::locate(self.text, quote) + &pointer::segment(&key);
        Error::new(Reason::DuplicateKey(key), member, Some(quote))
    }

    #[cold]
    fn deviation(&self, deviation: Deviation, at: usize) -> Error {
        self.refuse(Reason::NotCanonical(deviation), at)
    }

    #[cold]
    pub(super) fn refuse(&self, reason: Reason, at: usize) -> Error {
        Error::new(reason, pointer::locate(self.text, at), Some(at))
    }
}

/// What `starts_with` says. Keys are short: their first and last bytes, which overlap, are all of
/// them, and are compared without a call.
#[inline]
fn begins_with(text: &[u8], key: &[u8]) -> bool {
    let Some(text) = text.get(..key.len()) else {
        return false;
    };
    match key.len() {
        8..=16 => {
            text.first_chunk::<8>() == key.first_chunk::<8>()
                && text.last_chunk::<8>() == key.last_chunk::<8>()
        }
        17..=32 => {
            text.first_chunk::<16>() == key.first_chunk::<16>()
                && text.last_chunk::<16>() == key.last_chunk::<16>()
        }
        _ => text == key,
    }
}

/// The length of the escape whose backslash was just before, if RFC 8785 would write it so.
#[inline]
fn canonical_escape_length(escape: &[u8]) -> Option<usize> {
    match escape {
        [b'"' | b'\\' | b'b' | b't' | b'n' | b'f' | b'r', ..] => Some(1),
        [b'u', b'0', b'0', high @ b'0'..=b'1', low, ..] => {
            let low = match low {
                b'0'..=b'9' => low - b'0',
                b'a'..=b'f' => low - b'a' + 10,
                _ => return None,
            };
            short_escape((high - b'0') << 4 | low)
                .is_none()
                .then_some(5)
        }
        _ => None,
    }
}

/// The value of the first digits, and how many there are; at most as many as the largest integer has.
#[inline]
fn leading_digits(text: &[u8]) -> (i64, usize) {
    let (mut value, mut count) = text.first_chunk().map_or((0, 0), first_digits);
    if !matches!(text.get(count), Some(b'0'..=b'9')) {
        return (value, count);
    }
    for byte in text.iter().take(MOST_INTEGER_DIGITS).skip(count) {
        let digit @ 0..=9 = byte.wrapping_sub(b'0') else {
            break;
        };
        value = value * 10 + i64::from(digit);
        count += 1;
    }
    (value, count)
}

/// The value of the digits at the start of eight bytes, and how many there are.
#[inline]
fn first_digits(text: &[u8; 8]) -> (i64, usize) {
    let digits = u64::from_le_bytes(*text) ^ (ONES * 0x30);
    // A byte from 10 to 15 reaches 16 with six more; being below 16 before, none carries further.
    let others = (digits | ((digits & (ONES * 0x0f)) + ONES * 6)) & (ONES * 0xf0);
    let count = others.trailing_zeros() / 8;
    // The first digit is in the lowest byte. What follows the digits goes; zeros come before them.
    let digits = digits.checked_shl(64 - 8 * count).unwrap_or(0);
    // Pairs, then fours, then all eight.
    let pairs = (digits.wrapping_mul(10)).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100)).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    let eight = (fours.wrapping_mul(10_000)).wrapping_add(fours >> 32) & 0xffff_ffff;
    (eight as i64, count as usize)
}

const ONES: u64 = 0x0101_0101_0101_0101;
const LARGEST_INTEGER: i64 = (1 << 53) - 1;
/// 2⁵³ − 1 has sixteen digits.
const MOST_INTEGER_DIGITS: usize = 16;
/// Room for any number in canonical form.
const LONGEST_NUMBER: usize = 32;
