//! Text from elsewhere, made safe for a terminal.

use countersign_display::shell;

/// Shows what a terminal would hide or obey: control characters, direction overrides, invisible and
/// private characters appear as `⟨U+XXXX⟩`. The brackets themselves are shown the same way, so that
/// no text can imitate another.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character == '\n' || !is_hidden(character) {
            true => shown.push(character),
            false => shown.push_str(&escaped(character)),
        }
    }
    shown
}

fn escaped(character: char) -> String {
    format!("⟨U+{:04X}⟩", u32::from(character))
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '⟨' | '⟩'
            // Blank, and not the space that everybody knows.
            | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}'
            | '\u{2800}' | '\u{3000}'
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

/// Words for a shell to follow a command of ours: what they hold is neither obeyed nor taken for an option.
pub(crate) fn words<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.into_iter().map(inline).collect();
    let is_option = |word: &String| word.starts_with('-');
    let marker = words.iter().any(is_option).then_some("--".to_owned());
    let words = words.iter().map(|word| shell(word));
    marker
        .into_iter()
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// An option with its value, as one word: the value may look like an option itself.
pub(crate) fn option(name: &str, value: &str) -> String {
    shell(&format!("{name}={}", inline(value)))
}

/// The same for a cell of a table, cut where it is too long for one.
pub(super) fn cell(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(LONGEST));
    let mut room = LONGEST;
    // Where there is still room for the mark of a cut.
    let mut whole = 0;
    for character in text.chars() {
        let piece = match is_hidden(character) {
            true => escaped(character),
            false => character.to_string(),
        };
        let Some(left) = room.checked_sub(piece.chars().count()) else {
            shown.truncate(whole);
            shown.push('…');
            return shown;
        };
        room = left;
        shown.push_str(&piece);
        if room > 0 {
            whole = shown.len();
        }
    }
    shown
}

/// Longer than any digest with its name.
const LONGEST: usize = 80;

#[cfg(test)]
mod tests {
    use super::{LONGEST, cell, inline, option, visible, words};

    #[test]
    fn words_for_a_shell_are_words_and_nothing_else() {
        assert_eq!(
            words(["files", "look", "sha256:0a"]),
            "files look sha256:0a"
        );
        assert_eq!(words(["a;b", "$(c)", "d'e"]), r"'a;b' '$(c)' 'd'\''e'");
        assert_eq!(words(["--data=a b", "x"]), "-- '--data=a b' x");
        assert_eq!(words(["a\u{1b}[2J"]), "'a⟨U+001B⟩[2J'");
    }

    #[test]
    fn an_option_for_a_shell_stays_an_option() {
        assert_eq!(option("--server", "ctx"), "--server=ctx");
        assert_eq!(option("--server", "-a b"), "'--server=-a b'");
    }

    #[test]
    fn a_cell_is_as_long_as_a_cell_may_be() {
        let check = |text: &str, shown: &str| assert_eq!(cell(text), shown);
        check("short", "short");
        check("a\nb\u{a0}c", "a⟨U+000A⟩b⟨U+00A0⟩c");
        check(&"i".repeat(LONGEST), &"i".repeat(LONGEST));
        let cut = format!("{}…", "i".repeat(LONGEST - 1));
        check(&"i".repeat(LONGEST + 1), &cut);
        // No escape is cut in the middle.
        let blank = "\u{2800}".repeat(LONGEST);
        assert_eq!(cell(&blank), format!("{}…", "⟨U+2800⟩".repeat(9)));
        let full = format!("1234{blank}");
        assert_eq!(cell(&full), format!("1234{}…", "⟨U+2800⟩".repeat(9)));
    }

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
        check("l\u{a0}m\u{2800}n\u{3000}o", "l⟨U+00A0⟩m⟨U+2800⟩n⟨U+3000⟩o");
        check("⟨U+001B⟩", "⟨U+27E8⟩U+001B⟨U+27E9⟩");
    }
}
