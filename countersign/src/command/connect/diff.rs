//! The difference between two texts, for people.

use std::fmt::Write as _;

use similar::{ChangeTag, TextDiff};

use crate::output::visible;

/// A unified difference, safe for a terminal. Empty if nothing differs.
pub(super) fn unified(old: &str, new: &str, name: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut out = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        if out.is_empty() {
            let name = line(name);
            let _ = writeln!(out, "--- {name}\n+++ {name}");
        }
        let _ = writeln!(out, "{}", hunk.header());
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            let _ = writeln!(out, "{sign}{}", line(change.value()));
            if change.missing_newline() {
                let _ = writeln!(out, "\\ No newline at end of file");
            }
        }
    }
    out
}

/// A line without its end. Tabs are what files are indented with; everything else that a terminal
/// would hide or obey is shown.
fn line(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let parts: Vec<String> = text.split('\t').map(visible).collect();
    parts.join("\t")
}

const CONTEXT: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_unified_and_safe_to_show() {
        let check = |old: &str, new: &str, expect: &str| {
            assert_eq!(unified(old, new, "f"), expect);
        };
        check("a\n", "a\n", "");
        check("", "", "");
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "1\n2\n3\n4\nX\n6\n7\n8\n9\n",
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n",
        );
        check(
            "\ta\u{1b}[2J\r\n",
            "\tb\u{202e}\r\n",
            "--- f\n+++ f\n@@ -1 +1 @@\n-\ta⟨U+001B⟩[2J\n+\tb⟨U+202E⟩\n",
        );
        check(
            "a",
            "b",
            "--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
        );
    }
}
