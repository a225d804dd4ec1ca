//! Finding the id in a frame that was refused, so that whoever waits for an answer gets one.
//!
//! SECURITY: what is found here addresses an error message. Nothing is decided on it.

use super::Id;

/// What could be saved.
#[derive(Default)]
pub(super) struct Salvaged {
    pub(super) id: Option<Id>,
    /// The frame has a `result` or an `error` and no `method`.
    pub(super) answers: bool,
}

/// Looks for top-level members in bytes that need not be JSON.
pub(super) fn salvage(bytes: &[u8]) -> Salvaged {
    let mut tokens = Tokens { bytes, at: 0 };
    let mut depth = 0usize;
    let mut key: Option<&[u8]> = None;
    let mut last: &[u8] = b"";
    let mut ids = Vec::new();
    let (mut answer, mut method) = (false, false);
    while let Some(token) = tokens.next() {
        match token.first() {
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') => depth = depth.saturating_sub(1),
            Some(b':') if depth == 1 => key = Some(last),
            Some(b',') if depth == 1 => key = None,
            _ if depth == 1 && key == Some(b"\"id\"") => ids.push(token),
            _ => {}
        }
        if token == b":" && depth == 1 {
            answer |= matches!(last, b"\"result\"" | b"\"error\"");
            method |= last == b"\"method\"";
        }
        last = token;
    }
    // Two ids are no id.
    let id = match ids.as_slice() {
        [one] => Id::read(one).ok(),
        _ => None,
    };
    Salvaged {
        id,
        answers: answer && !method,
    }
}

/// The id in the end of a frame whose beginning does not have it, if it is the last member: many write it there.
pub(super) fn salvage_end(end: &[u8]) -> Option<Id> {
    let members = end.trim_ascii_end().strip_suffix(b"}")?;
    let key = memchr::memmem::rfind(members, KEY)?;
    let (before, id) = members.split_at_checked(key)?;
    let value = id
        .strip_prefix(KEY)?
        .trim_ascii_start()
        .strip_prefix(b":")?;
    let is_member = before.trim_ascii_end().ends_with(b",");
    Id::read(value.trim_ascii()).ok().filter(|_| is_member)
}

const KEY: &[u8] = b"\"id\"";

/// Strings, brackets, commas, colons, and runs of anything else.
struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        let start = self.at + blank.count();
        let rest = self.bytes.get(start..)?;
        let length = match rest.first()? {
            b'"' => string_length(rest),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            _ => rest.iter().take_while(|byte| !ends(**byte)).count(),
        };
        self.at = start + length;
        self.bytes.get(start..self.at)
    }
}

fn string_length(text: &[u8]) -> usize {
    let mut escaped = false;
    for (index, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

fn ends(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"{}[],:\"".contains(&byte)
}
