//! The report of a replay as a page: one file, no scripts, nothing from elsewhere.

use std::fmt::Write as _;

use countersign_canon::Json;
use countersign_display::quote;
use countersign_replay::Report;

use crate::clock;

/// The page.
pub(crate) fn html(report: &Report) -> String {
    let (word, class) = match report.is_identical() {
        true => ("IDENTICAL ✓", "good"),
        false => ("DIFFERENT ✗", "bad"),
    };
    let session = escaped(report.scope.session.as_str());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{session}</title>\n<style>{STYLE}</style>\n\
         <h1 class=\"{class}\">{word} {session}</h1>\n\
         <p>{} replay of {} events, {} steps, {} decisions.</p>\n",
        report.mode.as_str(),
        report.events,
        report.steps,
        report.decisions,
    );
    timeline(report, &mut page);
    for diff in &report.diffs {
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "<section><h2>event {}: {} {}</h2>\n<dl><dt>recorded</dt><dd>{}</dd>\n\
             <dt>replayed</dt><dd>{}</dd>\n<dt>why</dt><dd>{}</dd></dl></section>",
            diff.seq,
            escaped(diff.field),
            escaped(&diff.pointer),
            value(&diff.recorded),
            value(&diff.replayed),
            escaped(&diff.cause),
        );
    }
    page.push_str("</html>\n");
    page
}

/// Every step from left to right in its time, and the same as a table.
fn timeline(report: &Report, page: &mut String) {
    let times = report.timeline.iter().map(|taken| taken.ts_unix_ms);
    let (Some(first), Some(last)) = (times.clone().min(), times.max()) else {
        return;
    };
    let length = (last - first).max(1);
    page.push_str("<div class=\"line\" aria-hidden=\"true\">");
    for taken in &report.timeline {
        let class = if taken.same { "good" } else { "bad" };
        let left = (taken.ts_unix_ms - first).saturating_mul(1000) / length;
        let (whole, tenth) = (left / 10, left % 10);
        let _ = write!(
            page,
            "<i class=\"{class}\" style=\"left:{whole}.{tenth}%\"></i>"
        );
    }
    page.push_str(
        "</div>\n<table><tr><th>event</th><th>when</th><th>tool</th><th>recorded</th><th>replayed</th><th></th></tr>\n",
    );
    for taken in &report.timeline {
        let (word, class) = match taken.same {
            true => ("same ✓", "good"),
            false => ("different ✗", "bad"),
        };
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{word}</td></tr>",
            taken.seq,
            clock::text(taken.ts_unix_ms),
            escaped(&taken.tool),
            escaped(&taken.recorded),
            escaped(&taken.replayed),
        );
    }
    page.push_str("</table>\n");
}

fn value(value: &Json) -> String {
    match value {
        Json::Null => "nothing".to_owned(),
        Json::String(text) => escaped(text),
        value => escaped(&String::from_utf8_lossy(&value.to_sorted())),
    }
}

/// SECURITY: names and results come from agents and tools. Two texts never look the same, and nothing of
/// them is markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in quote(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.4rem}h2{font-size:1.1rem}.good{color:#06622f}.bad{color:#a3121b}\
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem;border-bottom:1px solid #ccc;overflow-wrap:anywhere}\
.line{position:relative;height:1.5rem;margin:1rem .5rem;border-bottom:2px solid #888}\
.line i{position:absolute;bottom:-.35rem;width:.6rem;height:.6rem;border-radius:50%;background:currentColor;margin-left:-.3rem}\
section{border-top:1px solid #ccc;margin-top:1rem}dt{font-weight:600}dd{margin:0 0 .5rem 1rem;overflow-wrap:anywhere}\
@media(prefers-color-scheme:dark){body{background:#111;color:#eee}.good{color:#6fd39a}.bad{color:#ff8f8f}}";

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_event::Scope;
    use countersign_replay::{Diff, Mode, Taken};

    #[test]
    fn nothing_that_a_tool_is_called_is_markup() {
        let evil = "<script>alert(1)</script>\u{202e}";
        let report = Report {
            scope: Scope::new("t", "s").unwrap(),
            mode: Mode::Exact,
            steps: 1,
            events: 3,
            decisions: 1,
            decided_at_the_door: 0,
            timeline: vec![Taken {
                seq: 0,
                ts_unix_ms: 5,
                tool: evil.to_owned(),
                recorded: "allow".to_owned(),
                replayed: "deny".to_owned(),
                same: false,
            }],
            diffs: vec![Diff {
                seq: 1,
                field: "policy_decision",
                pointer: String::new(),
                recorded: Json::from(evil),
                replayed: Json::Null,
                cause: evil.to_owned(),
            }],
        };
        let page = html(&report);
        assert!(
            !page.contains("<script") && !page.contains('\u{202e}'),
            "{page}"
        );
        assert!(page.contains("DIFFERENT ✗") && page.contains("different ✗"));
        assert!(page.contains("⟨U+202E⟩"), "{page}");
    }
}
