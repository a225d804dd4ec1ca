//! Names that look alike.

use unicode_security::confusable_detection::skeleton;

/// Whether two different names could be taken for each other.
pub fn alike(one: &str, other: &str) -> bool {
    let others = outlines(other);
    one != other && outlines(one).iter().any(|outline| others.contains(outline))
}

/// What is left of a name when invisible characters and look-alike letters are gone: once as it is,
/// because `I` looks like `l`, and once in lower case, because people do not see case.
pub(super) fn outlines(name: &str) -> [String; 2] {
    let visible: String = name.chars().filter(|c| !is_invisible(*c)).collect();
    let lower = visible.to_lowercase();
    [skeleton(&visible).collect(), skeleton(&lower).collect()]
}

/// Characters that take no room: joiners, marks of direction, tags, variation selectors.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
