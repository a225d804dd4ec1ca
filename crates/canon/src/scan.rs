//! Reads any strict JSON text without building a value.
//!
//! A [`Scan`] steps through a text as [`Json::admit`](crate::Json::admit) would, refuses the same
//! things (duplicate keys, lone surrogates, depth, trailing data), copies nothing, and says where in
//! the text each value stands. Numbers are checked by their grammar alone: what they mean is asked of
//! the part that is admitted later.
//!
//! ```
//! use countersign_canon::{Limits, scan::Scan};
//!
//! let text = br#"{"id": 7, "params": {"name": "x"}}"#;
//! let mut params = 0..0;
//! let mut scan = Scan::new(text, &Limits::event())?;
//! scan.object(|scan, key| {
//!     if key == "params" {
//!         params = scan.value()?;
//!     }
//!     Ok(())
//! })?;
//! scan.finish()?;
//! assert_eq!(&text[params], br#"{"name": "x"}"#);
//! # Ok::<(), countersign_canon::Error>(())
//! ```

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Error, Kind, Reason};
use crate::number::Literal;
use crate::pointer;
use crate::read::Limits;
use crate::string::{self, Fault, Span};

/// A place in a text, everything before which was strict JSON.
#[derive(Debug)]
pub struct Scan<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    max_depth: usize,
    /// The keys of all objects that are open, the innermost last.
    keys: Vec<Span>,
}

impl<'a> Scan<'a> {
    /// Starts at the first value of a text.
    pub fn new(text: &'a [u8], limits: &Limits) -> Result<Self, Error> {
        limits.check_size(text)?;
        if text.starts_with("\u{feff}".as_bytes()) {
            return Err(Error::new(Reason::ByteOrderMark, String::new(), Some(0)));
        }
        let text = std::str::from_utf8(text).map_err(|error| {
            let offset = Some(error.valid_up_to());
            Error::new(Reason::InvalidUtf8, String::new(), offset)
        })?;
        let mut scan = Self {
            text,
            at: 0,
            depth: 0,
            max_depth: limits.depth(),
            keys: Vec::new(),
        };
        scan.skip_white_space();
        Ok(scan)
    }

    /// The first byte of the value that is next.
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The place of the value that is next.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Reads an object. `member` is told each key and may read its value; a value that it does not
    /// read is stepped over.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.peek() != Some(b'{') {
            return Err(self.refuse(Reason::Expected(Kind::Object), self.at));
        }
        let first_key = self.keys.len();
        self.enter()?;
        let mut open = !self.take(b'}');
        while open {
            let key = self.key(first_key)?;
            let start = self.at;
            member(self, key)?;
            if self.at == start {
                self.value()?;
            }
            open = self.another(b'}')?;
        }
        self.check_many(first_key)?;
        self.keys.truncate(first_key);
        self.depth -= 1;
        Ok(())
    }

    /// Reads an array. `element` may read each value; one that it does not read is stepped over.
    pub fn array(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.peek() != Some(b'[') {
            return Err(self.refuse(Reason::Expected(Kind::Array), self.at));
        }
        self.enter()?;
        let mut open = !self.take(b']');
        while open {
            let start = self.at;
            element(self)?;
            if self.at == start {
                self.value()?;
            }
            open = self.another(b']')?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads a string.
    pub fn string(&mut self) -> Result<Cow<'a, str>, Error> {
        if self.peek() != Some(b'"') {
            return Err(self.refuse(Reason::Expected(Kind::String), self.at));
        }
        self.quoted().map(|(_, text)| text)
    }

    /// Reads any one value and says where it stands.
    pub fn value(&mut self) -> Result<Range<usize>, Error> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.quoted().map(drop)?,
            Some(b'{') => self.object(|_, _| Ok(()))?,
            Some(b'[') => self.array(|_| Ok(()))?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            _ => return Err(self.unexpected()),
        }
        Ok(start..self.at)
    }

    /// Ends the reading: nothing may follow.
    pub fn finish(mut self) -> Result<(), Error> {
        self.skip_white_space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.refuse(Reason::TrailingData, self.at)),
        }
    }

    /// A key, its colon and the white space around them.
    fn key(&mut self, first_key: usize) -> Result<Cow<'a, str>, Error> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        let (span, key) = self.quoted()?;
        let before = self.keys.get(first_key..).unwrap_or_default();
        if before.len() < FEW && before.iter().any(|other| self.denotes(other, &key)) {
            return Err(self.duplicate(span));
        }
        self.keys.push(span);
        self.skip_white_space();
        if !self.take(b':') {
            return Err(self.unexpected());
        }
        self.skip_white_space();
        Ok(key)
    }

    /// The keys of a large object, compared once it is complete: sorting has no bad inputs.
    fn check_many(&self, first_key: usize) -> Result<(), Error> {
        let keys = self.keys.get(first_key..).unwrap_or_default();
        if keys.len() <= FEW {
            return Ok(());
        }
        let mut sorted: Vec<(Cow<'a, str>, Span)> = keys
            .iter()
            .map(|span| (span.characters(self.text).unwrap_or_default(), *span))
            .collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.start.cmp(&b.1.start)));
        let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
        match pairs.find(|(a, b)| a.0 == b.0) {
            Some((_, (_, second))) => Err(self.duplicate(*second)),
            None => Ok(()),
        }
    }

    fn denotes(&self, span: &Span, key: &str) -> bool {
        match span.escaped {
            false => self.text.get(span.start..span.end) == Some(key),
            true => span.characters(self.text).is_ok_and(|other| other == key),
        }
    }

    fn quoted(&mut self) -> Result<(Span, Cow<'a, str>), Error> {
        let span = string::span(self.text, self.at).map_err(|fault| self.at_fault(fault))?;
        // Escapes are undone even where nobody asks for the text: that is what checks them.
        let text = span
            .characters(self.text)
            .map_err(|fault| self.at_fault(fault))?;
        self.at = span.end + 1;
        Ok((span, text))
    }

    fn number(&mut self) -> Result<(), Error> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        match Literal::scan(rest) {
            Some(literal) => {
                self.at += literal.text.len();
                Ok(())
            }
            None => Err(self.refuse(Reason::InvalidNumber, self.at)),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Error> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return Err(self.unexpected());
        }
        self.at += word.len();
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Error> {
        if self.depth >= self.max_depth {
            let limit = self.max_depth;
            return Err(self.refuse(Reason::TooDeep { limit }, self.at));
        }
        self.depth += 1;
        self.at += 1;
        self.skip_white_space();
        Ok(())
    }

    fn another(&mut self, close: u8) -> Result<bool, Error> {
        self.skip_white_space();
        if self.take(b',') {
            self.skip_white_space();
            return Ok(true);
        }
        match self.take(close) {
            true => Ok(false),
            false => Err(self.unexpected()),
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    #[cold]
    fn duplicate(&self, key: Span) -> Error {
        let text = key.characters(self.text).unwrap_or_default().into_owned();
        let quote = key.start - 1;
        let place = pointer::locate(self.text, quote) + &pointer::segment(&text);
        Error::new(Reason::DuplicateKey(text), place, Some(quote))
    }

    #[cold]
    fn unexpected(&self) -> Error {
        let reason = self
            .peek()
            .map_or(Reason::UnexpectedEnd, Reason::UnexpectedByte);
        self.refuse(reason, self.at)
    }

    #[cold]
    fn at_fault(&self, (reason, at): Fault) -> Error {
        self.refuse(reason, at)
    }

    #[cold]
    fn refuse(&self, reason: Reason, at: usize) -> Error {
        Error::new(reason, pointer::locate(self.text, at), Some(at))
    }
}

/// Up to here each key is compared with all before it.
const FEW: usize = 24;

#[cfg(test)]
mod tests;
