//! Keys that a careless reader takes for another key.
//!
//! Some JSON libraries match keys without regard to case, others end a key at its first NUL or trim it, and some
//! peers read `task_id` as `taskId`. If `Method` passed here as an unknown member, such a server would run a method
//! that nobody has looked at.

use std::borrow::Cow;

use countersign_display::is_invisible;

use super::error::Fault;

/// Refuses a key that is not `known`, but that differs from one of them in case, in what follows a NUL, in
/// blanks, in characters that nobody sees or in what joins its words alone.
pub(super) fn refuse(key: &str, known: &[&'static str]) -> Result<(), Fault> {
    if known.contains(&key) {
        return Ok(());
    }
    let read = key.split('\0').next().unwrap_or(key);
    let read: Cow<'_, str> = match read.is_ascii() {
        true => read.into(),
        false => read.chars().filter(|c| !is_invisible(*c)).collect(),
    };
    match known.iter().find(|known| folds_to(read.trim(), known)) {
        Some(known) => Err(Fault::LookAlike {
            found: key.escape_debug().to_string(),
            known,
        }),
        None => Ok(()),
    }
}

fn folds_to(key: &str, known: &str) -> bool {
    // The longest fold of an ASCII letter has three bytes.
    key.len() <= known.len() * 3 && folded(key).eq(folded(known))
}

/// The letters of a key; what it begins with belongs to it.
fn folded(key: &str) -> impl Iterator<Item = char> {
    let joins = |(at, c): &(usize, char)| *at > 0 && matches!(c, '_' | '-');
    let letters = key.char_indices().filter(move |one| !joins(one));
    letters.map(|(_, c)| fold(c))
}

/// Simple case folding, as far as it ends in ASCII.
fn fold(c: char) -> char {
    match c {
        'ſ' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    }
}
