//! Any plan and any text: renderings read back, hide nothing, and no other text passes for one.
#![no_main]

use countersign_canon::{Json, Limits};
use countersign_display::{AgentSays, Rendering, View, parse_back, quote};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(plan) = Json::admit(bytes, &Limits::plan()) {
        let canonical = plan.to_sorted_ascii();
        let full = Rendering::of(&canonical, View::Full).unwrap();
        assert_eq!(parse_back(full.text()).unwrap(), canonical);
        let summary = Rendering::of(&canonical, View::Summary).unwrap();
        assert_eq!(summary.is_complete(), summary.text() == full.text());
        assert!(is_safe(full.text()) && is_safe(summary.text()));
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(canonical) = parse_back(text) {
        assert_eq!(Rendering::of(&canonical, View::Full).unwrap().text(), text);
    }
    let says = AgentSays::of(text, View::Full);
    let inside = says
        .text()
        .lines()
        .filter(|line| line.starts_with(AgentSays::EDGE))
        .count();
    assert_eq!(inside + 2 + says.warnings().len(), says.sheet().len());
    assert!(is_safe(says.text()));
    let label = quote(text);
    assert!(is_safe(&label) && !label.contains('\n'));
});

fn is_safe(text: &str) -> bool {
    let is_unsafe = |c: char| {
        c != '\n' && c.is_control()
            || matches!(c, '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
    };
    !text.contains(is_unsafe)
}
