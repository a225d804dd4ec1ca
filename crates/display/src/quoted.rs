//! Names, reasons and paths on one line.

use countersign_canon::Hash;

use crate::block::split_at_width;
use crate::piece::{Piece, Show, pieces};

/// A text in `«…»`, safe for any line of any channel: no character of it hides, moves its neighbours
/// or ends the line. One that is too long for a line is cut, with its length and hash.
pub fn quote(text: &str) -> String {
    quoted(text, Show::Label)
}

/// A word for a shell, in quotes where it needs them.
pub fn shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The first eight hex digits of a hash: the code that people compare and type.
pub fn short(hash: &Hash) -> String {
    hash.to_string().chars().take(SHORT).collect()
}

pub(crate) fn quoted(text: &str, show: Show) -> String {
    let mut shown = String::from("«");
    let mut room = WIDTH;
    for piece in pieces(text, show) {
        let is_whole = match piece {
            Piece::Plain(plain) => {
                let (fits, rest) = split_at_width(plain, &mut room);
                shown.push_str(fits);
                rest.is_empty()
            }
            Piece::Escaped(escape) => {
                let escape = escape.text();
                let fits = take(escape.chars().count(), &mut room);
                shown.push_str(if fits { &escape } else { "" });
                fits
            }
        };
        if !is_whole {
            return format!("{shown}»{}", truncated(text));
        }
    }
    shown + "»"
}

/// The marker of a text that is not shown in full.
pub(crate) fn truncated(text: &str) -> String {
    let (chars, hash) = (text.chars().count(), Hash::of(text.as_bytes()));
    format!("[truncated, {chars} chars, sha256 {hash}]")
}

/// Whether there is room; then it is taken.
pub(crate) fn take(width: usize, room: &mut usize) -> bool {
    let left = room.checked_sub(width);
    *room = left.unwrap_or(*room);
    left.is_some()
}

const SHORT: usize = 8;
/// The widest label in columns.
const WIDTH: usize = 120;
