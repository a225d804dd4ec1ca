//! User text inside a message: in backticks, on one line, safe for a terminal, and never long.

use std::fmt::{self, Write};

/// Displays user text in backticks. Control, format and other invisible characters are escaped, and
/// so is the backtick, so that the text can neither leave its quotes nor steer a terminal.
pub struct Quoted<'a>(pub &'a str);

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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(Quoted(text).to_string(), expect);
    }

    #[test]
    fn text_stays_inside_its_quotes() {
        check("a b\"c'é", "`a b\"c'é`");
        check(r"\d+", r"`\d+`");
        check("a`b", r"`a\u{60}b`");
        check("\u{1b}[31m\u{202e}\n", r"`\u{1b}[31m\u{202e}\n`");
        check(&"x".repeat(121), &format!("`{}…`", "x".repeat(120)));
    }
}
