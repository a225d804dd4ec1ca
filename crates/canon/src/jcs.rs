//! The canonical form of RFC 8785 (JCS): writing it, and reading text that must already have it.

mod cursor;
mod order;
mod scanner;

pub use cursor::Cursor;

use crate::error::{Error, Reason};
use crate::json::{Json, Object};
use crate::read::Limits;
use crate::string::{plain_end, push_unicode_escape};

/// Checks that `text` is exactly the canonical text of a value admitted under `limits`.
///
/// Numbers are always held to what a double keeps, because RFC 8785 knows no others.
pub fn check(text: &[u8], limits: &Limits) -> Result<(), Error> {
    limits.check_size(text)?;
    let mut cursor = Cursor::new(text, limits.max_depth)?;
    cursor.value()?;
    cursor.finish()
}

/// Appends the canonical text of a value.
pub(crate) fn write(value: &Json, out: &mut Vec<u8>) -> Result<(), Error> {
    match value {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Number(number) => number.write_es6(out).map_err(refuse)?,
        Json::String(text) => write_string(text, out),
        Json::Array(elements) => write_array(elements, out)?,
        Json::Object(object) => write_object(object, out)?,
    }
    Ok(())
}

fn refuse(reason: Reason) -> Error {
    Error::new(reason, String::new(), None)
}

fn write_array(elements: &[Json], out: &mut Vec<u8>) -> Result<(), Error> {
    out.push(b'[');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(element, out).map_err(|error| error.within_element(index))?;
    }
    out.push(b']');
    Ok(())
}

fn write_object(object: &Object, out: &mut Vec<u8>) -> Result<(), Error> {
    if object
        .iter()
        .all(|(key, _)| order::is_code_point_order(key))
    {
        return write_members(object.iter(), out);
    }
    let mut members: Vec<_> = object.iter().collect();
    members.sort_by(|a, b| order::utf16(a.0, b.0));
    write_members(members.into_iter(), out)
}

fn write_members<'a>(
    members: impl Iterator<Item = (&'a str, &'a Json)>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    out.push(b'{');
    for (index, (key, value)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(key, out);
        out.push(b':');
        write(value, out).map_err(|error| error.within_member(key))?;
    }
    out.push(b'}');
    Ok(())
}

/// Appends the canonical text of a string.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some((plain, [special, after @ ..])) = rest.split_at_checked(plain_end(rest, 0)) {
        out.extend_from_slice(plain);
        write_escape(*special, out);
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    match short_escape(byte) {
        Some(letter) => out.extend_from_slice(&[b'\\', letter]),
        None => push_unicode_escape(byte.into(), out),
    }
}

/// What follows the backslash in the two-character escape of a byte that has one.
fn short_escape(byte: u8) -> Option<u8> {
    match byte {
        b'"' | b'\\' => Some(byte),
        0x08 => Some(b'b'),
        b'\t' => Some(b't'),
        b'\n' => Some(b'n'),
        0x0c => Some(b'f'),
        b'\r' => Some(b'r'),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
