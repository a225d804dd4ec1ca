//! A report that a person can open in a browser: one page, no scripts, nothing from elsewhere.

use std::fmt::Write as _;

use super::{Action, Answer, PackReport};

/// The page.
pub fn html(name: &str, report: &PackReport) -> String {
    let (word, class) = match report.is_good() {
        true => ("VERIFIED ✓", "good"),
        false => ("FAILED ✗", "bad"),
    };
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{name}</title>\n<style>{STYLE}</style>\n\
         <h1 class=\"{class}\">{word} {name}</h1>\n",
        name = escaped(name)
    );
    // Writing to a string does not fail.
    if let Some((log, size)) = &report.log {
        let _ = writeln!(
            page,
            "<p>{} event(s), of the log <code>{}</code> when it had {size}.</p>",
            report.events,
            escaped(log)
        );
    }
    if let Some(problem) = &report.failure {
        let _ = writeln!(
            page,
            "<p class=\"bad\"><b>{}</b>: {}</p>",
            problem.name(),
            escaped(&problem.to_string())
        );
    }
    list(&mut page, "Checked", &report.checked);
    list(&mut page, "Not checked", &report.not_checked);
    if !report.actions.is_empty() {
        let _ = writeln!(page, "<h2>Actions</h2>");
    }
    for action in &report.actions {
        show(&mut page, action);
    }
    page.push_str("</html>\n");
    page
}

fn list(page: &mut String, title: &str, items: &[String]) {
    let _ = writeln!(page, "<h2>{title}</h2>\n<ul>");
    for item in items {
        let _ = writeln!(page, "<li>{}</li>", escaped(item));
    }
    let _ = writeln!(page, "</ul>");
}

fn show(page: &mut String, action: &Action) {
    let tool = action.tool.as_deref().unwrap_or("unknown tool");
    let _ = writeln!(
        page,
        "<section><h3>{} <small>call {} of session {}</small></h3>\n<dl>",
        escaped(tool),
        escaped(&action.call_id),
        escaped(&action.session_id)
    );
    for (question, answer) in [
        ("What authority was available?", &action.available),
        ("What authority was exercised?", &action.exercised),
        (
            "What changed between approval and execution?",
            &action.changed,
        ),
    ] {
        let class = match answer {
            Answer::Known(_) => "known",
            Answer::Unknown(_) => "unknown",
            Answer::Wrong(_) => "bad",
        };
        let text = escaped(answer.text());
        let _ = writeln!(page, "<dt>{question}</dt><dd class=\"{class}\">{text}</dd>");
    }
    let _ = writeln!(page, "</dl></section>");
}

/// SECURITY: names come from agents and tools. Nothing of them is markup, and what a browser could show
/// in another order is written out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() || is_invisible(c) => {
                let _ = write!(escaped, "⟨U+{:04X}⟩", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

fn is_invisible(c: char) -> bool {
    matches!(u32::from(c), 0xAD | 0x61C | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F
        | 0xFE00..=0xFE0F | 0xFEFF | 0xE0000..=0xE0FFF)
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.4rem}.good{color:#06622f}.bad{color:#a3121b}.unknown{color:#6b5900}\
section{border-top:1px solid #ccc;margin-top:1rem}dt{font-weight:600}dd{margin:0 0 .5rem 1rem;overflow-wrap:anywhere}\
small{font-weight:400;color:#555}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}\
.good{color:#6fd39a}.bad{color:#ff8f8f}.unknown{color:#e0c34b}small{color:#aaa}}";
