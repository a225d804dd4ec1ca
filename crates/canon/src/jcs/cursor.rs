//! A pull reader over text that must already be canonical.

mod levels;

use std::borrow::Cow;

use levels::Levels;

use super::scanner::{KeyStart, Scanner};
use crate::digest::{Digest, Hash};
use crate::error::{Error, Kind, Reason};

/// Reads text that must be exactly the canonical form of RFC 8785, from left to right, without
/// building a value and without allocating while the text is as it should be.
///
/// The caller says what it expects (a key, a string, any value); the cursor refuses everything else,
/// including valid JSON written in another way: white space, keys out of UTF-16 order, needless
/// escapes, other number texts. After a refusal the cursor is of no further use.
#[derive(Debug)]
pub struct Cursor<'a> {
    scanner: Scanner<'a>,
    levels: Levels,
    /// Whether the caller knows the text around the values.
    framed: bool,
}

impl<'a> Cursor<'a> {
    /// Stands before the first byte of `text`, which must be UTF-8. Anything over 512 counts as a
    /// depth of 512.
    pub fn new(text: &'a [u8], max_depth: usize) -> Result<Self, Error> {
        let scanner = Scanner::new(text, max_depth)?;
        Ok(Self {
            scanner,
            levels: Levels::default(),
            framed: false,
        })
    }

    /// How many bytes have been read.
    pub fn offset(&self) -> usize {
        self.scanner.offset()
    }

    /// The next byte, if any.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.scanner.peek()
    }

    /// Steps over exactly this text: what a format has before, between or after its values, such as
    /// `,"seq":`. That all of it together is canonical is the caller's knowledge.
    #[inline(always)]
    pub fn expect_text(&mut self, text: &str) -> Result<(), Error> {
        self.framed = true;
        match self.scanner.skip_text(text) {
            true => Ok(()),
            false => Err(self.scanner.unexpected_text(text)),
        }
    }

    /// Enters an object; its keys follow by [`Cursor::next_key`] or [`Cursor::expect_key`].
    pub fn open_object(&mut self) -> Result<(), Error> {
        self.require(b'{', Kind::Object)?;
        self.scanner.open(self.levels.depth())?;
        self.levels.push();
        Ok(())
    }

    /// Reads an object. Hands out each key as it stands between its quotes, escapes and all; its value
    /// must be read next.
    ///
    /// `usual` are keys that are likely to come, in canonical order, each written as `"key":` without
    /// an escape. Keys that come in that order need no further look.
    #[inline]
    pub fn members<E: From<Error>>(
        &mut self,
        usual: &[&'a str],
        mut each: impl FnMut(&mut Self, &'a str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open_object()?;
        let mut usual = usual.iter();
        let mut previous = None;
        loop {
            let found = match self.scanner.usual_key(previous, &mut usual) {
                Some(found) => Some(found),
                None => {
                    // INVARIANT: a usual key is in order after a usual key, not after any other.
                    usual = [].iter();
                    let key = self.scanner.next_key(previous)?;
                    key.map(|key| (key, self.scanner.raw_key(key)))
                }
            };
            let Some((start, key)) = found else {
                self.levels.pop();
                return Ok(());
            };
            previous = Some(start);
            each(self, key)?;
        }
    }

    /// The next key of the current object as it stands between its quotes, escapes and all; its
    /// value must be read next. `None` means that the closing brace was there and is now behind.
    pub fn next_key(&mut self) -> Result<Option<&'a str>, Error> {
        Ok(self.next_member()?.map(|key| self.scanner.raw_key(key)))
    }

    /// Reads a key of the current object that must be `key`.
    #[inline]
    pub fn expect_key(&mut self, key: &str) -> Result<(), Error> {
        match self.next_member()? {
            Some(found) if self.scanner.is_key(found, key) => Ok(()),
            Some(found) => Err(self.scanner.unexpected_key(found, Some(key))),
            None => Err(self.missing_key(key)),
        }
    }

    /// Reads the closing brace of the current object, which may have no further key.
    pub fn close_object(&mut self) -> Result<(), Error> {
        match self.next_member()? {
            Some(found) => Err(self.scanner.unexpected_key(found, None)),
            None => Ok(()),
        }
    }

    /// Reads a string; borrowed unless it has escapes.
    #[inline(always)]
    pub fn string(&mut self) -> Result<Cow<'a, str>, Error> {
        self.require(b'"', Kind::String)?;
        self.scanner.string()
    }

    /// Reads a string, or `null` as `None`.
    #[inline(always)]
    pub fn optional_string(&mut self) -> Result<Option<Cow<'a, str>>, Error> {
        self.check_place()?;
        match self.peek() {
            Some(b'n') => self.scanner.skip_word("null").map(|()| None),
            Some(b'"') => self.scanner.string().map(Some),
            _ => Err(self.scanner.expected(Kind::OptionalString)),
        }
    }

    /// Reads a string that is a hash; stays where it is if something else is next.
    #[inline(always)]
    pub fn hash(&mut self) -> Option<Hash> {
        self.scanner.hash()
    }

    /// Reads a string that is a digest; stays where it is if something else is next.
    #[inline(always)]
    pub fn digest(&mut self) -> Option<Digest> {
        self.scanner.digest()
    }

    /// Reads an integer between −(2⁵³−1) and 2⁵³−1.
    #[inline(always)]
    pub fn integer(&mut self) -> Result<i64, Error> {
        self.check_place()?;
        match self.scanner.short_integer() {
            Some(value) => Ok(value),
            None => Err(self.scanner.expected(Kind::Integer)),
        }
    }

    /// Reads `true` or `false`.
    pub fn bool(&mut self) -> Result<bool, Error> {
        self.check_place()?;
        match self.peek() {
            Some(b't') => self.scanner.skip_word("true").map(|()| true),
            Some(b'f') => self.scanner.skip_word("false").map(|()| false),
            _ => Err(self.scanner.expected(Kind::Boolean)),
        }
    }

    /// Reads any one value and returns its exact text.
    #[inline(always)]
    pub fn value(&mut self) -> Result<&'a [u8], Error> {
        self.check_place()?;
        let start = self.offset();
        self.scanner.skip_value(self.levels.depth())?;
        Ok(self.scanner.since(start))
    }

    /// Ends the reading: one whole value must have been read, and nothing may follow it.
    pub fn finish(self) -> Result<(), Error> {
        match (self.is_done() || self.framed, self.peek()) {
            (true, None) => Ok(()),
            (true, Some(_)) => Err(self.trailing_data()),
            (false, _) => Err(self.scanner.unexpected()),
        }
    }

    #[inline]
    fn next_member(&mut self) -> Result<Option<KeyStart>, Error> {
        let Some(previous) = self.levels.last() else {
            return Err(self.scanner.expected(Kind::Object));
        };
        let key = self.scanner.next_key(previous)?;
        match key {
            Some(key) => self.levels.set_last(key),
            None => self.levels.pop(),
        }
        Ok(key)
    }

    /// A value that starts with this byte must come next.
    #[inline(always)]
    fn require(&self, first: u8, kind: Kind) -> Result<(), Error> {
        self.check_place()?;
        match self.peek() == Some(first) {
            true => Ok(()),
            false => Err(self.scanner.expected(kind)),
        }
    }

    /// There is only one value at the top level.
    #[inline(always)]
    fn check_place(&self) -> Result<(), Error> {
        match self.is_done() {
            true => Err(self.trailing_data()),
            false => Ok(()),
        }
    }

    #[inline(always)]
    fn is_done(&self) -> bool {
        self.levels.depth() == 0 && self.offset() > 0 && !self.framed
    }

    #[cold]
    fn trailing_data(&self) -> Error {
        self.scanner.refuse(Reason::TrailingData, self.offset())
    }

    /// The closing brace was read in place of the key.
    #[cold]
    fn missing_key(&self, key: &str) -> Error {
        self.scanner.refuse(
            Reason::MissingKey(key.to_owned()),
            self.offset().saturating_sub(1),
        )
    }
}
