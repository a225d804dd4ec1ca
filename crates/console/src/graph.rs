//! Small drawings: from where untrusted content came and where it could go, and the way to a root.

use countersign_canon::Json;

use crate::html::{El, Html, Link, el};
use crate::look::Look;
use crate::session::actions;

/// Sources on the left, the session in the middle, what was tried after them on the right.
pub(crate) fn taint(snapshot: Option<&Json>, events: &[Json], here: &Link) -> El {
    let section = el("section")
        .attr("aria-label", "Untrusted content")
        .with(el("h3").text("Untrusted content"));
    let sources: Vec<(String, u64)> = Look(snapshot)
        .list("snapshot.taint")
        .map(|source| {
            let label = source.text("label");
            let name = source.maybe_text("name").unwrap_or(label);
            (
                name.to_owned(),
                source.number("first_seq").unwrap_or_default(),
            )
        })
        .collect();
    let Some(first) = sources.iter().map(|(_, seq)| *seq).min() else {
        return section.with(el("p").text("Nothing untrusted was taken in."));
    };
    let all = actions(events);
    let sinks: Vec<(String, u64, &str)> = all
        .iter()
        .filter(|action| action.seq > first && !matches!(action.side_effect, None | Some("read")))
        .map(|action| {
            (
                action.title.to_owned(),
                action.seq,
                action.outcome.unwrap_or("unknown"),
            )
        })
        .collect();
    let (left, right) = (sources.len().min(MOST), sinks.len().min(MOST));
    let height = left.max(right).max(1) as u64 * ROW + 16;
    let middle = height / 2;
    let from = sources
        .iter()
        .take(MOST)
        .enumerate()
        .map(|(index, (name, seq))| {
            let y = index as u64 * ROW + 26;
            piece(
                here,
                *seq,
                &format!("{name} #{seq}"),
                (4, y),
                "node",
                (SIDE + 50, middle),
            )
        });
    let to = sinks
        .iter()
        .take(MOST)
        .enumerate()
        .map(|(index, (name, seq, outcome))| {
            let y = index as u64 * ROW + 26;
            let class = match *outcome {
                "deny" => "node bad",
                "require_approval" => "node wait",
                _ => "node ok",
            };
            let word = match *outcome {
                "deny" => "✗",
                "require_approval" => "⏸",
                _ => "✓",
            };
            let text = format!("{word} {name} #{seq}");
            piece(here, *seq, &text, (FAR, y), class, (FAR - 105, middle))
        });
    let drawing = el("svg")
        .class("graph")
        .attr("viewBox", format!("0 0 {} {height}", FAR + SIDE))
        .attr("role", "group")
        .attr(
            "aria-label",
            format!(
                "{} sources, {} later actions with effects",
                sources.len(),
                sinks.len()
            ),
        )
        .each(from)
        .with(
            el("text")
                .class("label")
                .number("x", SIDE + 56)
                .number("y", middle + 4)
                .text("taken in"),
        )
        .each(to);
    let more = (sources.len() + sinks.len()).saturating_sub(left + right);
    section.with(drawing).maybe((more > 0).then(|| {
        el("p")
            .class("note")
            .text(&format!("{more} more are in the table below."))
    }))
}

fn piece(
    here: &Link,
    seq: u64,
    text: &str,
    (x, y): (u64, u64),
    class: &'static str,
    (to_x, to_y): (u64, u64),
) -> Html {
    let short: String = match text.chars().nth(26) {
        None => text.to_owned(),
        Some(_) => text.chars().take(25).chain(['…']).collect(),
    };
    let start = if x < to_x { x + SIDE - 12 } else { x };
    let line = el("line")
        .class("edge")
        .number("x1", start)
        .number("y1", y)
        .number("x2", to_x)
        .number("y2", to_y);
    let boxed = el("a")
        .link(&here.clone().with("seq", &seq.to_string()))
        .with(
            el("rect")
                .class(class)
                .number("x", x)
                .number("y", y - 14)
                .number("width", SIDE - 16)
                .number("height", 28)
                .number("rx", 4),
        )
        .with(
            el("text")
                .number("x", x + 8)
                .number("y", y + 5)
                .text(&short)
                .with(el("title").text(text)),
        );
    [line.html(), boxed.html()].into_iter().collect()
}

/// The way from an entry to its root, one step a hash.
pub(crate) fn path(steps: usize) -> El {
    let steps = steps.min(64) as u64;
    let height = (steps + 1) * 26 + 16;
    let points = (0..=steps).map(|step| {
        let y = height - 20 - step * 26;
        let mut group = el("g").with(
            el("circle")
                .class(if step == 0 || step == steps {
                    "dot ok"
                } else {
                    "dot"
                })
                .number("cx", 40)
                .number("cy", y)
                .number("r", 6),
        );
        if step < steps {
            group = group
                .with(
                    el("line")
                        .class("edge")
                        .number("x1", 40)
                        .number("y1", y)
                        .number("x2", 40)
                        .number("y2", y - 26),
                )
                .with(
                    el("line")
                        .class("edge")
                        .number("x1", 90)
                        .number("y1", y)
                        .number("x2", 40)
                        .number("y2", y - 26),
                )
                .with(
                    el("rect")
                        .class("node")
                        .number("x", 90)
                        .number("y", y - 7)
                        .number("width", 14)
                        .number("height", 14),
                )
                .with(
                    el("text")
                        .class("axis")
                        .number("x", 112)
                        .number("y", y + 4)
                        .text(&format!("hash {}", step + 1)),
                );
        }
        let label = match step {
            0 => Some("the entry"),
            step if step == steps => Some("the root"),
            _ => None,
        };
        group.maybe(label.map(|label| {
            el("text")
                .class("axis")
                .number("x", 200)
                .number("y", y + 4)
                .text(label)
        }))
    });
    el("svg")
        .class("path")
        .attr("viewBox", format!("0 0 300 {height}"))
        .attr("role", "img")
        .attr(
            "aria-label",
            format!("{steps} steps from the entry to the root"),
        )
        .each(points)
}

const MOST: usize = 8;
const ROW: u64 = 36;
const SIDE: u64 = 250;
const FAR: u64 = 470;
