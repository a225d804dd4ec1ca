//! User text inside a message: in backticks, on one line, safe for a terminal, and never long.

use std::fmt::{self, Write};

/// Displays user text in backticks. Characters that are not visible are escaped, and so is the
/// backtick, so that the text can neither leave its quotes nor steer a terminal.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('`')?;
        let mut chars = self.0.chars();
        for c in chars.by_ref().take(LONGEST) {
            write_visible(f, c)?;
        }
        if chars.next().is_some() {
            f.write_char('…')?;
        }
        f.write_char('`')
    }
}

fn write_visible(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '\'' | '"' | '\\' => f.write_char(c),
        '`' => write!(f, "{}", c.escape_unicode()),
        _ => write!(f, "{}", c.escape_debug()),
    }
}

const LONGEST: usize = 120;
