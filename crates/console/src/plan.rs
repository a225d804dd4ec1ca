//! A plan as it is looked at, one-to-one.

use countersign_canon::Json;
use countersign_display::{Kind, Line, Rendering, Sheet, View};

use crate::html::{El, Html, el};
use crate::look::Look;
use crate::words::{hash, name};

/// What each call is asked to work on, where it is looked at first: the plan has it too, among everything
/// else that is bound.
pub(crate) fn arguments(plan: Look<'_>) -> El {
    let calls = plan.list("plan.tool_calls").take(MOST_CALLS);
    el("section")
        .attr("aria-label", "Arguments")
        .class("arguments")
        .each(calls.map(of_call))
}

fn of_call(call: Look<'_>) -> El {
    let canonical = call.get("args").0.map(Json::to_sorted_ascii);
    let canonical = canonical.unwrap_or_default();
    let title = el("p")
        .text("Arguments of ")
        .with(el("b").with(name(call.text("tool_name"))));
    let rendering = match canonical.len() {
        0..=MOST_BYTES => Rendering::of(&canonical, View::Full).ok(),
        _ => None,
    };
    match rendering {
        Some(rendering) => {
            let lines = rendering.sheet().lines().filter(|line| !is_heading(line));
            let sheet = sheet_of("The arguments, one-to-one", lines);
            el("div").with(title).with(sheet)
        }
        None => {
            let size = format!(": {} bytes, in the plan below", canonical.len());
            el("div").with(title.text(&size))
        }
    }
}

/// It would call the arguments a plan.
fn is_heading(line: &Line<'_>) -> bool {
    line.spans().any(|span| span.kind == Kind::Heading)
}

/// The plan, one-to-one.
pub(crate) fn what(code: &str, sheet: &Sheet, look: Look<'_>) -> El {
    el("section")
        .attr("aria-label", "What would run")
        .with(
            el("p")
                .class("codes")
                .text("Exactly this runs: code ")
                .with(el("b").class("mono code").text(code))
                .text(", plan ")
                .with(hash(look.text("plan_hash")))
                .text(", shown as ")
                .with(hash(look.text("display_sha256"))),
        )
        .with(sheet_of("The plan, one-to-one", sheet.lines()).id("plan"))
        .with(
            el("pre")
                .id("envelope")
                .attr("hidden", "")
                .text(look.text("envelope")),
        )
}

fn sheet_of<'s>(label: &'static str, lines: impl Iterator<Item = Line<'s>>) -> El {
    el("pre")
        .class("plan")
        .attr("tabindex", "0")
        .attr("role", "region")
        .attr("aria-label", label)
        .each(pieces(lines))
}

/// Lines in pieces that a browser lays out only when they are looked at. The text of all of them is
/// the text that is hashed.
pub(crate) fn pieces<'s>(lines: impl Iterator<Item = Line<'s>>) -> Vec<Html> {
    let mut pieces = Vec::new();
    let mut piece = el("span").class("piece");
    let mut count = 0;
    for line in lines {
        for span in line.spans() {
            piece = match class(span.kind) {
                Some(class) => piece.with(el("i").class(class).shown(span.text)),
                None => piece.shown(span.text),
            };
        }
        piece = piece.lines("\n");
        count += 1;
        if count == PIECE {
            pieces.push(piece.html());
            piece = el("span").class("piece");
            count = 0;
        }
    }
    pieces.push(piece.html());
    pieces
}

const fn class(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Heading => Some("heading"),
        Kind::Warning => Some("warning"),
        Kind::Gutter => Some("gutter"),
        Kind::Key => Some("key"),
        Kind::Escape => Some("escape"),
        Kind::Number | Kind::Literal => Some("literal"),
        Kind::Note => Some("quiet"),
        Kind::Truncation => Some("warning"),
        Kind::Mark | Kind::Text => None,
    }
}

/// As many lines are laid out together.
const PIECE: usize = 100;
/// More arguments than these are read in the plan.
const MOST_BYTES: usize = 4 << 10;
const MOST_CALLS: usize = 8;
