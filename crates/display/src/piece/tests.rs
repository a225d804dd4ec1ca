use super::*;

fn shown(text: &str, show: Show) -> String {
    let mut out = String::new();
    for piece in pieces(text, show) {
        match piece {
            Piece::Plain(plain) => out.push_str(plain),
            Piece::Escaped(escape) => out.push_str(&escape.text()),
        }
    }
    assert_eq!(unescape(&out).as_deref(), Some(text));
    out
}

fn check(text: &str, expect: &str) {
    assert_eq!(shown(text, Show::Text), expect);
}

#[test]
fn what_shows_as_itself() {
    for text in [
        "",
        "plain text: \"quoted\" \\n {}",
        "Grüße, naïve café – “ok”…",
        "Привет, мир",
        "漢字とかな 한국어",
        "हिन्दी",
        "ภาษาไทยที่นี่",
        "😀",
        "שלום",
    ] {
        check(text, text);
    }
}

#[test]
fn what_does_not() {
    check(
        "a\u{1b}[2K\r\u{7}\u{8}\u{7f}\u{9b}",
        "a⟨U+001B⟩[2K⟨U+000D⟩⟨U+0007⟩⟨U+0008⟩⟨U+007F⟩⟨U+009B⟩",
    );
    check("\tx", "⟨U+0009⟩x");
    check(
        "a\u{202e}b\u{2066}\u{200f}\u{61c}",
        "a⟨U+202E⟩b⟨U+2066⟩⟨U+200F⟩⟨U+061C⟩",
    );
    check(
        "a\u{200b}\u{feff}\u{2060}b\u{fe0f}",
        "a⟨U+200B⟩⟨U+FEFF⟩⟨U+2060⟩b⟨U+FE0F⟩",
    );
    check(
        "\u{e0041}\u{2028}\u{85}\u{e000}\u{378}\u{fffe}\u{10ffff}",
        "⟨U+E0041⟩⟨U+2028⟩⟨U+0085⟩⟨U+E000⟩⟨U+0378⟩⟨U+FFFE⟩⟨U+10FFFF⟩",
    );
    check("a\u{a0}b\u{3000}", "a⟨U+00A0⟩b⟨U+3000⟩");
    check("⟨U+0041⟩ «»", "⟨U+27E8⟩U+0041⟨U+27E9⟩ ⟨U+00AB⟩⟨U+00BB⟩");
}

#[test]
fn equal_looks_are_told_apart() {
    check("\u{e9}", "é");
    check("e\u{301}", "e⟨U+0301⟩");
    check("\u{212b}\u{c5}", "⟨U+212B⟩Å");
    check("\u{1100}\u{1161}\u{ac00}", "⟨U+1100⟩⟨U+1161⟩가");
    check("\u{928}\u{93c}\u{929}", "न⟨U+093C⟩ऩ");
    check("👨\u{200d}👩", "👨⟨U+200D⟩👩");
    check("🇺🇸", "⟨U+1F1FA⟩⟨U+1F1F8⟩");
}

#[test]
fn marks_do_not_pile_up() {
    let flood = format!("a{}", "\u{301}".repeat(10_000));
    check(&flood, "a⟨U+0301×10000⟩");
    let thai = format!("\u{e01}{}", "\u{e48}\u{e49}".repeat(50));
    let raw = shown(&thai, Show::Text)
        .chars()
        .filter(|c| matches!(c, '\u{e48}' | '\u{e49}'))
        .count();
    assert!(raw <= 3, "{raw}");
    check("\u{e48}", "⟨U+0E48⟩");
    check("a\u{e48}", "a⟨U+0E48⟩");
}

#[test]
fn spaces_can_be_counted() {
    check("a  b", "a  b");
    check("a ", "a⟨U+0020⟩");
    check(&format!("a{}b", " ".repeat(5000)), "a⟨U+0020×5000⟩b");
}

#[test]
fn right_to_left_words_move_nothing() {
    check("א/ב 1", "א⟨U+002F⟩ב⟨U+0020⟩1");
    check("rm א", "rm א");
    assert_eq!(shown("אx", Show::Label), "⟨U+05D0⟩x");
    assert_eq!(shown("pаy", Show::Ascii), "p⟨U+0430⟩y");
}

#[test]
fn broken_escapes_are_refused() {
    for text in [
        "⟨",
        "⟨U+⟩",
        "⟨U+D800⟩",
        "⟨U+110000⟩",
        "⟨0041⟩",
        "⟨U+0041×⟩",
        "⟨U+0041×99999999999⟩",
    ] {
        assert_eq!(unescape(text), None, "{text}");
    }
}
