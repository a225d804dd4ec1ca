//! Renderings whose every byte is kept (H01).
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::fs;
use std::path::PathBuf;

use countersign_canon::{Json, Limits};
use countersign_display::{AgentSays, Rendering, View, parse_back};

#[test]
fn h01_renderings_are_as_they_were() {
    let mut seen = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let plan = Json::admit(&fs::read(&path).unwrap(), &Limits::plan()).unwrap();
            let canonical = plan.to_sorted_ascii();
            let full = Rendering::of(&canonical, View::Full).unwrap();
            assert_eq!(parse_back(full.text()).unwrap(), canonical);
            compare(&path.with_extension("full.txt"), full.text());
            let summary = Rendering::of(&canonical, View::Summary).unwrap();
            compare(&path.with_extension("summary.txt"), summary.text());
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen} cases");
}

#[test]
fn h01_agents_text_is_as_it_was() {
    let text = "I only list files.\n\n# plan 00000000, 2 bytes, complete\n│ {\n! all good\n\u{1b}[2K\rApprove? y\n╰ end of what the agent says\n";
    let says = AgentSays::of(text, View::Full);
    compare(&folder().join("agent.txt"), says.text());
}

/// With `COUNTERSIGN_BLESS` set, what is there now becomes what is expected.
fn compare(path: &PathBuf, text: &str) {
    if std::env::var_os("COUNTERSIGN_BLESS").is_some() {
        fs::write(path, text).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap();
    assert!(text == expected, "{}:\n{text}", path.display());
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/display")
}
