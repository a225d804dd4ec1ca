//! The strict reader: one pass, recursive descent, no repair.

use std::collections::BTreeSet;

use super::{Limits, Numbers};
use crate::error::{Error, Reason};
use crate::json::{Json, Object};
use crate::number::{Literal, Number};
use crate::pointer;
use crate::string::{self, Fault};

/// Reads exactly one value.
pub(super) fn read(text: &[u8], limits: &Limits) -> Result<Json, Error> {
    if text.starts_with(BYTE_ORDER_MARK) {
        return Err(Error::new(Reason::ByteOrderMark, String::new(), Some(0)));
    }
    let (text, end) = match std::str::from_utf8(text) {
        Ok(text) => (text, Reason::UnexpectedEnd),
        // The readable part is read to find out where in the document the rest begins.
        Err(_) => (readable_part(text), Reason::InvalidUtf8),
    };
    let mut reader = Reader {
        text,
        end,
        at: 0,
        max_depth: limits.depth(),
        numbers: limits.numbers,
    };
    reader.document()
}

fn readable_part(text: &[u8]) -> &str {
    text.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

#[derive(Clone)]
struct Reader<'a> {
    text: &'a str,
    /// What is wrong when the text ends too early.
    end: Reason,
    at: usize,
    max_depth: usize,
    numbers: Numbers,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Json, Error> {
        self.skip_white_space();
        let value = self.value(0)?;
        self.skip_white_space();
        match (self.peek(), &self.end) {
            (Some(_), _) => Err(self.refuse(Reason::TrailingData, self.at)),
            (None, Reason::UnexpectedEnd) => Ok(value),
            (None, _) => Err(self.unexpected()),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json, Error> {
        match self.peek() {
            Some(b'"') => self.string().map(Json::String),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.not_a_value()),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, Error> {
        let open = self.at;
        self.enter(depth)?;
        if self.take(b'}') {
            return Ok(Json::Object(Object::new()));
        }
        let mut members = Vec::new();
        while {
            members.push(self.member(depth)?);
            self.another(b'}')?
        } {}
        match Object::from_unique(members) {
            Some(object) => Ok(Json::Object(object)),
            None => Err(self.duplicate_key(open, depth)),
        }
    }

    fn member(&mut self, depth: usize) -> Result<(String, Json), Error> {
        let key = match self.peek() {
            Some(b'"') => self.string()?,
            _ => return Err(self.unexpected()),
        };
        self.skip_white_space();
        if !self.take(b':') {
            return Err(self.unexpected());
        }
        self.skip_white_space();
        Ok((key, self.value(depth + 1)?))
    }

    fn array(&mut self, depth: usize) -> Result<Json, Error> {
        self.enter(depth)?;
        let mut elements = Vec::new();
        if self.take(b']') {
            return Ok(Json::Array(elements));
        }
        while {
            elements.push(self.value(depth + 1)?);
            self.another(b']')?
        } {}
        Ok(Json::Array(elements))
    }

    /// Consumes an opening bracket and the white space behind it.
    fn enter(&mut self, depth: usize) -> Result<(), Error> {
        if depth >= self.max_depth {
            return Err(self.refuse(
                Reason::TooDeep {
                    limit: self.max_depth,
                },
                self.at,
            ));
        }
        self.at += 1;
        self.skip_white_space();
        Ok(())
    }

    /// Consumes a comma and says that another item follows, or the closing bracket.
    fn another(&mut self, close: u8) -> Result<bool, Error> {
        self.skip_white_space();
        if self.take(b',') {
            self.skip_white_space();
            return Ok(true);
        }
        if self.take(close) {
            return Ok(false);
        }
        Err(self.unexpected())
    }

    fn string(&mut self) -> Result<String, Error> {
        let span = string::span(self.text, self.at).map_err(|fault| self.at_fault(fault))?;
        let text = span
            .characters(self.text)
            .map_err(|fault| self.at_fault(fault))?;
        self.at = span.end + 1;
        Ok(text.into_owned())
    }

    fn number(&mut self) -> Result<Json, Error> {
        let Some(literal) = Literal::scan(self.rest()) else {
            return Err(self.not_a_number());
        };
        let number = Number::admit(&literal, self.numbers);
        let number = number.map_err(|reason| self.refuse(reason, self.at))?;
        self.at += literal.text.len();
        Ok(Json::Number(number))
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, Error> {
        if !self.rest().starts_with(word) {
            return Err(self.unexpected());
        }
        self.at += word.len();
        Ok(value)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
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

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Reads the members again, up to the first key that was there before.
    #[cold]
    fn duplicate_key(&self, open: usize, depth: usize) -> Error {
        let mut again = Reader {
            at: open + 1,
            ..self.clone()
        };
        let mut seen = BTreeSet::new();
        loop {
            again.skip_white_space();
            let at = again.at;
            match again.member(depth) {
                Ok((key, _)) if seen.contains(&key) => {
                    let member = pointer::locate(self.text, at) + &pointer::segment(&key);
                    return Error::new(Reason::DuplicateKey(key), member, Some(at));
                }
                Ok((key, _)) => seen.insert(key),
                Err(error) => return error,
            };
            if let Err(error) = again.another(b'}') {
                return error;
            }
        }
    }

    fn not_a_value(&self) -> Error {
        let words = ["NaN", "Infinity"];
        match words.iter().any(|word| self.rest().starts_with(word)) {
            true => self.refuse(Reason::NotANumber, self.at),
            false => self.unexpected(),
        }
    }

    fn not_a_number(&self) -> Error {
        let reason = match self.rest().starts_with("-Infinity") {
            true => Reason::NotANumber,
            false => Reason::InvalidNumber,
        };
        self.refuse(reason, self.at)
    }

    fn unexpected(&self) -> Error {
        let reason = self.peek().map_or(self.end.clone(), Reason::UnexpectedByte);
        self.refuse(reason, self.at)
    }

    fn at_fault(&self, fault: Fault) -> Error {
        match fault {
            (Reason::UnexpectedEnd, at) => self.refuse(self.end.clone(), at),
            (reason, at) => self.refuse(reason, at),
        }
    }

    #[cold]
    fn refuse(&self, reason: Reason, at: usize) -> Error {
        Error::new(reason, pointer::locate(self.text, at), Some(at))
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[cfg(test)]
mod tests;
