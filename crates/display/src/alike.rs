//! Names that look alike, and names that do not show as what they are.

use unicode_security::skeleton;

use crate::character::{Hidden, hidden};

/// Whether two different names could be taken for each other.
pub fn alike(one: &str, other: &str) -> bool {
    let others = outlines(other);
    one != other && outlines(one).iter().any(|outline| others.contains(outline))
}

/// Why a name does not show as what it is: the first of its characters that nobody sees, or that
/// changes its neighbours; a space at an end or beside another.
pub fn unseen(name: &str) -> Option<Hidden> {
    let spaces = name.starts_with(' ') || name.ends_with(' ') || name.contains("  ");
    let hidden = name.chars().find_map(hidden);
    hidden.or(spaces.then_some(Hidden::Space))
}

/// What is left of a name when blanks around it, characters that nobody sees and look-alike letters are gone:
/// once as it is, because `I` looks like `l`, and once in lower case, because people do not see case.
pub fn outlines(name: &str) -> [String; 2] {
    let seen: String = name.chars().filter(|c| !is_unseen(*c)).collect();
    let seen = seen.trim();
    // By way of upper case, which old forms of letters share with the usual ones: `ſ` and `s`.
    let lower = seen.to_uppercase().to_lowercase();
    [skeleton(seen).collect(), skeleton(&lower).collect()]
}

/// Whether a name looks the same without it.
fn is_unseen(c: char) -> bool {
    let is_blank = c.is_whitespace() && !matches!(hidden(c), Some(Hidden::Separator));
    is_invisible(c) || (!is_blank && hidden(c).is_some_and(Hidden::is_alarming))
}

/// Characters that take no room: joiners, marks of direction, tags, variation selectors.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_show_as_what_they_are() {
        for name in [
            "dana",
            "Dana Müller",
            "Ольга",
            "李雷",
            "d.ana@example.com",
            "O'Neil",
        ] {
            assert_eq!(unseen(name), None, "{name}");
        }
        for (name, why) in [
            (" dana", Hidden::Space),
            ("dana ", Hidden::Space),
            ("da  na", Hidden::Space),
            ("da\u{a0}na", Hidden::Space),
            ("dana\t", Hidden::Space),
            ("dana\n", Hidden::Control),
            ("dana\u{1b}[31m", Hidden::Control),
            ("da\u{200b}na", Hidden::Invisible),
            ("da\u{2800}na", Hidden::Invisible),
            ("dana\u{202e}", Hidden::Direction),
            ("dana\u{e0041}", Hidden::Tag),
            ("dana\u{301}", Hidden::Combining),
        ] {
            assert_eq!(unseen(name), Some(why), "{name:?}");
        }
    }

    #[test]
    fn names_that_people_tell_apart_are_not_alike() {
        for (one, other) in [
            ("read_file", "read_files"),
            ("get", "set"),
            ("a.b", "a-b"),
            ("send mail", "sendmail"),
            ("send\tmail", "sendmail"),
            ("x", "x"),
        ] {
            assert!(!alike(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("read", "reаd"),
            ("pay", "PAY"),
            ("list1", "listl"),
            ("a", "a\u{e0041}"),
            ("send", "send "),
            ("send", "\tsend\n"),
            ("send", "send\u{3000}"),
            ("send", "send\u{2028}"),
            ("send", "send\0"),
            ("send", "se\u{7}nd"),
            ("send", "send\u{2800}"),
            ("send", "\u{17f}end"),
            ("mail", "ma\u{131}l"),
        ] {
            assert!(alike(one, other), "{one} {other}");
        }
    }
}
