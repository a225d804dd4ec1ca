//! The sorted ASCII form: what CPython's `json.dumps` writes with sorted keys, compact separators
//! and ASCII escapes.

use crate::json::Json;
use crate::number::Number;
use crate::sorted::{self, Spelling};
use crate::string::push_unicode_escape;

/// How CPython spells numbers and strings.
struct Python;

impl Spelling for Python {
    fn number(number: &Number, out: &mut Vec<u8>) {
        number.write_python(out);
    }

    fn string(text: &str, out: &mut Vec<u8>) {
        write_string(text, out);
    }
}

/// The text of a value.
pub(crate) fn text(value: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    sorted::write_as::<Python>(value, &mut out);
    out
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    if is_plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
    } else {
        text.chars().for_each(|c| write_char(c, out));
    }
    out.push(b'"');
}

/// Whether every byte stands for itself.
fn is_plain(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|byte| matches!(byte, b' '..=b'~' if !matches!(byte, b'"' | b'\\')))
}

fn write_char(c: char, out: &mut Vec<u8>) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\u{8}' => out.extend_from_slice(b"\\b"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\u{c}' => out.extend_from_slice(b"\\f"),
        '\r' => out.extend_from_slice(b"\\r"),
        ' '..='~' => out.push(c as u8),
        _ => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                push_unicode_escape(*unit, out);
            }
        }
    }
}
