//! One text per plan, one plan per text.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod common;

use std::collections::HashMap;

use common::{Random, body, is_dangerous};
use countersign_canon::Hash;
use countersign_display::{AgentSays, Rendering, View, parse_back, quote};

/// H02, H03; the long form takes `COUNTERSIGN_DISPLAY_CASES`.
#[test]
fn h02_h03_random_plans_read_back_and_never_look_the_same() {
    let cases = std::env::var("COUNTERSIGN_DISPLAY_CASES");
    let cases = cases.map_or(100_000, |count| count.parse().unwrap());
    let mut random = Random::new(7);
    let mut seen: HashMap<Hash, Hash> = HashMap::new();
    let mut summaries: HashMap<Hash, Hash> = HashMap::new();
    for _ in 0..cases {
        let plan = random.json(4);
        let canonical = plan.to_sorted_ascii();
        let plan = Hash::of(&canonical);
        let full = Rendering::of(&canonical, View::Full).unwrap();
        assert!(full.is_complete());
        assert_eq!(parse_back(full.text()).unwrap(), canonical);
        // Without the heading, which has a part of the hash.
        let other = seen.insert(Hash::of(body(full.text()).as_bytes()), plan);
        assert!(other.is_none_or(|other| other == plan));
        let summary = Rendering::of(&canonical, View::Summary).unwrap();
        let other = summaries.insert(Hash::of(body(summary.text()).as_bytes()), plan);
        assert!(other.is_none_or(|other| other == plan));
        assert_eq!(summary.is_complete(), summary.text() == full.text());
        for text in [full.text(), summary.text()] {
            assert_eq!(text.chars().find(|c| *c != '\n' && is_dangerous(*c)), None);
        }
    }
    assert!(seen.len() > cases / 2);
}

#[test]
fn neighbours_look_different() {
    let mut random = Random::new(11);
    for _ in 0..20_000 {
        let text = random.string();
        let mut other: Vec<char> = text.chars().collect();
        match other.len() {
            0 => other.push(random.character()),
            length => match random.below(3) {
                0 => drop(other.remove(random.below(length))),
                1 => other.insert(random.below(length), random.character()),
                _ => other[random.below(length)] = random.character(),
            },
        }
        let other: String = other.into_iter().collect();
        if text != other {
            assert_ne!(quote(&text), quote(&other));
            let says = |text| AgentSays::of(text, View::Full).text().to_owned();
            assert_ne!(says(&text), says(&other));
        }
    }
}

/// Every code point, in every place where text of others is shown.
#[test]
fn h09_to_h14_no_code_point_hides() {
    for code in 0..=0x10_ffff {
        let Some(c) = char::from_u32(code) else {
            continue;
        };
        let text = format!("a{c}b{c}");
        for shown in [
            quote(&text),
            AgentSays::of(&text, View::Full).text().to_owned(),
        ] {
            assert_eq!(
                shown.chars().find(|c| *c != '\n' && is_dangerous(*c)),
                None,
                "U+{code:04X}"
            );
            if is_dangerous(c) && c != '\n' {
                assert!(shown.contains(&format!("⟨U+{code:04X}⟩")), "{shown}");
            }
        }
    }
}

#[test]
fn h16_no_line_is_wide() {
    let mut random = Random::new(13);
    for _ in 0..5_000 {
        let canonical = random.json(6).to_sorted_ascii();
        for line in Rendering::of(&canonical, View::Full)
            .unwrap()
            .sheet()
            .lines()
        {
            if line.text().starts_with("│ ") {
                assert!(line.text().chars().count() <= 180, "{}", line.text());
            }
            let joined: String = line.spans().map(|span| span.text).collect();
            assert_eq!(joined, line.text());
        }
    }
}

#[test]
fn texts_that_are_no_rendering_are_refused() {
    let mut random = Random::new(17);
    let mut refused = 0;
    for _ in 0..20_000 {
        let canonical = random.json(3).to_sorted_ascii();
        let rendering = Rendering::of(&canonical, View::Full).unwrap();
        let mut text: Vec<char> = rendering.text().chars().collect();
        let at = random.below(text.len());
        match random.below(3) {
            0 => drop(text.remove(at)),
            1 => text.insert(at, random.character()),
            _ => text[at] = random.character(),
        }
        let text: String = text.into_iter().collect();
        match parse_back(&text) {
            Ok(bytes) => {
                let again = Rendering::of(&bytes, View::Full).unwrap();
                assert_eq!(again.text(), text);
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 15_000, "{refused}");
}
