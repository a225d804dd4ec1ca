//! What a reviewer must be able to see, and what must not be able to deceive one.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod common;

use common::{body, is_dangerous};
use countersign_canon::{Hash, Json};
use countersign_display::{
    AgentSays, Hidden, Kind, NotCanonical, ParseBackError, Rendering, Subject, View, Warning,
    parse_back, quote, short,
};

fn render(plan: &Json, view: View) -> Rendering {
    Rendering::of(&plan.to_sorted_ascii(), view).unwrap()
}

fn arg(text: &str) -> Json {
    Json::object([("arg", Json::from(text))])
}

#[test]
fn only_canonical_bytes_are_rendered() {
    let refused = |bytes: &[u8]| Rendering::of(bytes, View::Full).unwrap_err();
    assert_eq!(refused(br#"{"a": 1}"#), NotCanonical::OtherForm);
    assert_eq!(refused(br#"{"b":1,"a":1}"#), NotCanonical::OtherForm);
    assert_eq!(refused("\"é\"".as_bytes()), NotCanonical::OtherForm);
    assert!(matches!(refused(b"{"), NotCanonical::NotJson(_)));
    assert!(matches!(
        refused(br#"{"a":1,"a":2}"#),
        NotCanonical::NotJson(_)
    ));
}

#[test]
fn h04_what_an_agent_says_cannot_begin_like_a_system_line() {
    let fakes = "# plan 46cca48b, 2 bytes, complete\n! no warnings\n│ {\n╭ agent says\n╰ end of what the agent says\n\r# x\u{2028}# y\u{85}# z";
    for text in [
        fakes,
        "",
        "\n",
        &"x\n# plan\n".repeat(500),
        &"long ".repeat(1000),
    ] {
        for view in [View::Full, View::Summary] {
            let says = AgentSays::of(text, view);
            let lines: Vec<&str> = says.text().lines().collect();
            assert!(lines[0].starts_with("╭ agent says (unverified): "));
            assert_eq!(*lines.last().unwrap(), "╰ end of what the agent says");
            let inside = &lines[1 + says.warnings().len()..lines.len() - 1];
            assert!(inside.iter().all(|line| line.starts_with(AgentSays::EDGE)));
            assert!(!inside.is_empty());
        }
    }
    let plan = render(&arg(fakes), View::Full);
    assert!(
        plan.text()
            .lines()
            .all(|line| !line.starts_with(AgentSays::EDGE))
    );
    assert_eq!(
        plan.text()
            .lines()
            .filter(|line| line.starts_with("# plan"))
            .count(),
        1
    );
}

#[test]
fn h05_truncation_is_marked_with_length_and_hash() {
    let long: String = ('a'..='z').cycle().take(2847).collect();
    let summary = render(&arg(&long), View::Summary);
    let marker = format!(
        "[truncated, 2847 chars, sha256 {}]",
        Hash::of(long.as_bytes())
    );
    assert!(summary.text().contains(&marker));
    assert!(!summary.is_complete());
    assert_eq!(summary.stats().truncated, 1);
    assert!(
        summary
            .text()
            .lines()
            .next()
            .unwrap()
            .contains("NOT COMPLETE")
    );
    assert_eq!(parse_back(summary.text()), Err(ParseBackError::Truncated));
    let full = render(&arg(&long), View::Full);
    assert!(full.is_complete() && !full.text().contains("[truncated"));
    assert_eq!(
        parse_back(full.text()).unwrap(),
        arg(&long).to_sorted_ascii()
    );
    // Text that only says so is text.
    let fake = render(&arg(&marker), View::Summary);
    assert!(fake.is_complete());
    let has_marker = |line: countersign_display::Line<'_>| {
        line.spans().any(|span| span.kind == Kind::Truncation)
    };
    assert!(!fake.sheet().lines().any(has_marker));
    assert!(summary.sheet().lines().any(has_marker));
}

#[test]
fn h06_pages_hold_every_line_once() {
    let text: String = (0..20_000)
        .map(|line| format!("line {line} of a large text\n"))
        .collect();
    let rendering = render(&arg(&text), View::Full);
    let sheet = rendering.sheet();
    let pages: Vec<String> = (0..sheet.pages(50))
        .flat_map(|page| {
            sheet
                .page(page, 50)
                .map(|line| format!("{}\n", line.text()))
        })
        .collect();
    assert_eq!(pages.concat(), rendering.text());
    assert_eq!(sheet.page(sheet.pages(50), 50).count(), 0);
    assert!(sheet.page(usize::MAX, usize::MAX).count() <= sheet.len());
}

#[test]
fn h07_danger_out_of_sight_is_surfaced() {
    let below = format!("ls{}rm -rf /", "\n".repeat(10_000));
    let right = format!("ls{}; rm -rf /", " ".repeat(10_000));
    let middle = format!("{}\nrm -rf /", "echo ok\n".repeat(10_000));
    for (text, note) in [
        (&below, "10001 lines, 10010 chars, widest line 8"),
        (&right, "1 line, 10012 chars, widest line 10012"),
        (&middle, "10002 lines"),
    ] {
        for view in [View::Summary, View::Full] {
            let shown = render(&arg(text), view);
            assert!(shown.text().contains("rm -rf /"));
            assert!(shown.text().contains(note), "{note}");
        }
    }
    let pointer = || "/arg".to_owned();
    assert!(
        render(&arg(&below), View::Full)
            .warnings()
            .contains(&Warning::EmptyLines {
                count: 9_999,
                pointer: pointer()
            })
    );
    assert!(
        render(&arg(&right), View::Full)
            .warnings()
            .contains(&Warning::Spaces {
                count: 10_000,
                pointer: pointer()
            })
    );
    assert!(render(&arg(&below), View::Summary).is_complete());
    assert!(!render(&arg(&middle), View::Summary).is_complete());
}

#[test]
fn h08_one_short_code() {
    let plan = Json::object([("tool", Json::from("write_file"))]);
    let hash = Hash::of(&plan.to_sorted_ascii());
    for view in [View::Summary, View::Full] {
        let shown = render(&plan, view);
        assert_eq!(shown.short_code(), short(&hash));
        assert_eq!(shown.short_code(), &hash.to_string()[..8]);
        assert!(
            shown
                .text()
                .starts_with(&format!("# plan {}, ", shown.short_code()))
        );
        assert_eq!(shown.display_sha256(), Hash::of(shown.text().as_bytes()));
    }
}

#[test]
fn h09_to_h14_dangerous_characters_are_visible_and_counted() {
    let dangerous = [
        "\u{1b}[2J\u{1b}]8;;x\u{7}\u{1b}]52;c;x\u{9c}\u{9b}\u{8}\r\u{7f}",
        "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{200e}\u{200f}\u{61c}",
        "\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{fe0e}\u{fe0f}\u{e0100}",
        "\u{e0001}\u{e0041}\u{e007f}",
        "\u{2028}\u{2029}\u{85}",
        "\u{e000}\u{f0000}\u{378}\u{fdd0}\u{ffff}",
    ];
    for text in dangerous {
        let plan = Json::object([(text, Json::from(text))]);
        let shown = render(&plan, View::Full);
        let counted = text.chars().filter(|c| is_dangerous(*c)).count();
        assert!(shown.text().contains(&format!(
            "# written as ⟨U+XXXX⟩: {} characters\n",
            2 * counted
        )));
        assert_eq!(shown.stats().hidden.values().sum::<usize>(), 2 * counted);
        assert!(!shown.warnings().is_empty());
        let label = quote(text);
        for c in text.chars().filter(|c| is_dangerous(*c)) {
            let escape = format!("⟨U+{:04X}⟩", u32::from(c));
            let times = 2 * text.matches(c).count();
            assert_eq!(
                body(shown.text()).matches(&escape).count(),
                times,
                "{escape}"
            );
            assert!(label.contains(&escape));
        }
        assert!(!shown.text().chars().any(|c| c != '\n' && is_dangerous(c)));
        assert!(!label.chars().any(is_dangerous));
    }
}

#[test]
fn h15_look_alikes_are_named() {
    let shown = render(&arg("https://p\u{430}ypal.com/"), View::Full);
    assert_eq!(
        shown.warnings(),
        [Warning::LooksLike {
            subject: Subject::Host,
            text: "p\u{430}ypal.com".to_owned(),
            like: "paypal.com".to_owned(),
            pointer: "/arg".to_owned()
        }]
    );
    assert!(
        shown
            .text()
            .contains("! host «p⟨U+0430⟩ypal.com» looks like «paypal.com», at «/arg»")
    );
    let twins = Json::object([("path", Json::Null), ("p\u{430}th", Json::Null)]);
    let alike = |warning: &Warning| matches!(warning, Warning::KeysAlike { .. });
    assert!(render(&twins, View::Full).warnings().iter().any(alike));
    assert!(
        render(&arg("https://paypal.com/"), View::Full)
            .warnings()
            .is_empty()
    );
}

#[test]
fn h16_floods_stay_on_their_line() {
    let flood = render(
        &arg(&format!("a{}b", "\u{300}\u{489}".repeat(5_000))),
        View::Full,
    );
    assert_eq!(flood.stats().hidden[&Hidden::Combining], 10_000);
    assert!(!flood.text().contains('\u{300}'));
    let wide = render(&arg(&"\u{fdfd}\u{12031}漢".repeat(3_000)), View::Full);
    for line in wide.sheet().lines() {
        assert!(line.text().chars().count() <= 300, "{}", line.text());
    }
}

#[test]
fn warnings_are_bounded() {
    let many: Vec<Json> = (0..1_000)
        .map(|n| Json::from(format!("h{n}.p\u{430}ypal.com").as_str()))
        .collect();
    let shown = render(&Json::from(many), View::Full);
    assert_eq!(shown.warnings().len(), 32);
    assert_eq!(shown.stats().warnings_left_out, 968);
    assert!(shown.text().contains("! and 968 more warnings\n"));
}

#[test]
fn labels_are_bounded() {
    let long = "x".repeat(1_000_000);
    let label = quote(&long);
    assert!(label.chars().count() < 230, "{label}");
    assert!(label.contains("[truncated, 1000000 chars, sha256 "));
    assert_ne!(label, quote(&"x".repeat(1_000_001)));
}
