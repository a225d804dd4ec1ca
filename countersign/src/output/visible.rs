//! Text from elsewhere, made safe for a terminal.

/// Shows what a terminal would hide or obey: control characters, direction overrides, invisible and
/// private characters appear as `⟨U+XXXX⟩`. The brackets themselves are shown the same way, so that
/// no text can imitate another.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\n' || !is_hidden(character) {
            shown.push(character);
        } else {
            shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(character)));
        }
    }
    shown
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '⟨' | '⟩'
            | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{10ffff}')
}

/// The same for a value inside a line: a line break in it is shown too, so that no value can forge a
/// line of its own.
pub(crate) fn inline(text: &str) -> String {
    visible(text).replace('\n', "⟨U+000A⟩")
}

#[cfg(test)]
mod tests {
    use super::{inline, visible};

    #[test]
    fn a_value_stays_on_its_line() {
        assert_eq!(inline("x\nVERIFIED ✓"), "x⟨U+000A⟩VERIFIED ✓");
    }

    #[test]
    fn nothing_reaches_the_terminal_unseen() {
        let check = |text: &str, shown: &str| assert_eq!(visible(text), shown);
        check("plain, ünïcode 😀", "plain, ünïcode 😀");
        check("a\u{1b}[31mb", "a⟨U+001B⟩[31mb");
        check("x\u{202e}y", "x⟨U+202E⟩y");
        check("tag\u{e0041}", "tag⟨U+E0041⟩");
        check("⟨U+001B⟩", "⟨U+27E8⟩U+001B⟨U+27E9⟩");
    }
}
