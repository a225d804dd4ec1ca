//! A session over time: lanes for the model, tools, approvals and policy.

use countersign_canon::Json;

use crate::html::{El, Html, Link, el};
use crate::session::{Action, actions};
use crate::words::duration;

/// Lanes as a drawing. Verdicts have a shape and a colour each.
pub(crate) fn timeline(events: &[Json], here: &Link) -> El {
    let all = actions(events);
    let start = all.iter().map(|action| action.began).min().unwrap_or(0);
    let end = all.iter().map(|action| action.last).max().unwrap_or(start);
    let scale = Scale {
        start,
        span: end.saturating_sub(start).max(1),
    };
    let lanes = LANES.iter().enumerate().map(|(index, lane)| {
        let y = top(index);
        el("g")
            .with(
                el("rect")
                    .class("lane")
                    .number("x", 0)
                    .attr("y", y.to_string())
                    .number("width", LEFT + WIDTH + RIGHT)
                    .number("height", LANE - 6),
            )
            .with(
                el("text")
                    .class("label")
                    .number("x", 8)
                    .attr("y", (y + LANE / 2 + 2).to_string())
                    .text(lane),
            )
    });
    let marks = all.iter().flat_map(|action| marks(action, &scale, here));
    let height = top(LANES.len()) + 24;
    let axis = [0_u64, 1, 2, 3, 4].map(|part| {
        let at = scale.span.saturating_mul(part) / 4;
        el("text")
            .class("axis")
            .number("x", LEFT + WIDTH * part / 4)
            .number("y", height - 6)
            .attr("text-anchor", if part == 4 { "end" } else { "start" })
            .text(&format!("+{}", duration(at)))
    });
    let drawing = el("svg")
        .class("timeline")
        .attr("viewBox", format!("0 0 {} {height}", LEFT + WIDTH + RIGHT))
        .attr("role", "group")
        .attr("aria-label", format!("Time line of {} actions", all.len()))
        .each(lanes)
        .each(marks)
        .each(axis);
    let legend = [
        ("ok", "● allowed"),
        ("wait", "■ held"),
        ("bad", "◆ denied"),
        ("off", "▬ how long it took"),
    ]
    .map(|(class, text)| {
        let class = match class {
            "ok" => "state ok",
            "wait" => "state wait",
            "bad" => "state bad",
            _ => "state off",
        };
        el("span").class(class).text(text)
    });
    el("figure")
        .with(
            el("div")
                .class("wide")
                .attr("tabindex", "0")
                .attr("role", "region")
                .attr("aria-label", "Time line")
                .with(drawing),
        )
        .with(el("figcaption").class("legend").each(legend))
}

struct Scale {
    start: u64,
    span: u64,
}

impl Scale {
    fn x(&self, at: u64) -> u64 {
        let passed = u128::from(at.saturating_sub(self.start)) * u128::from(WIDTH);
        LEFT + u64::try_from(passed / u128::from(self.span))
            .unwrap_or(WIDTH)
            .min(WIDTH)
    }
}

fn marks(action: &Action<'_>, scale: &Scale, here: &Link) -> Vec<Html> {
    let link = here.clone().with("seq", &action.seq.to_string());
    let about = format!(
        "event {}: {} {}",
        action.seq,
        action.title,
        action.outcome.unwrap_or("")
    );
    let put = |shape: El| {
        el("a")
            .link(&link)
            .attr("aria-label", &about)
            .with(shape)
            .html()
    };
    let lane = match action.kind {
        "MODEL_CALL_STARTED" | "MODEL_CALL_FINISHED" => 0,
        _ => 1,
    };
    let mut marks = vec![put(bar(action.began, action.last, lane, scale, &about))];
    if let Some(asked) = action.asked {
        let until = action.answered.unwrap_or(action.last);
        marks.push(put(bar(asked, until, 2, scale, &about)));
    }
    if let Some(outcome) = action.outcome {
        marks.push(put(verdict(outcome, action.began, scale, &about)));
    }
    marks
}

fn bar(from: u64, to: u64, lane: usize, scale: &Scale, about: &str) -> El {
    let (x, end) = (scale.x(from), scale.x(to));
    el("rect")
        .class(match lane {
            0 => "bar model",
            1 => "bar tool",
            _ => "bar people",
        })
        .number("x", x)
        .number("y", top(lane) + 8)
        .number("width", end.saturating_sub(x).max(4))
        .number("height", LANE - 22)
        .number("rx", 2)
        .with(el("title").text(about))
}

/// A circle, a square or a diamond.
fn verdict(outcome: &str, at: u64, scale: &Scale, about: &str) -> El {
    let (x, y) = (scale.x(at), top(3) + LANE / 2 - 3);
    let title = el("title").text(about);
    match outcome {
        "deny" => el("path")
            .class("dot bad")
            .attr(
                "d",
                format!(
                    "M{x} {} L{} {y} L{x} {} L{} {y} Z",
                    y - 8,
                    x + 8,
                    y + 8,
                    x - 8
                ),
            )
            .with(title),
        "require_approval" => el("rect")
            .class("dot wait")
            .number("x", x - 6)
            .number("y", y - 6)
            .number("width", 12)
            .number("height", 12)
            .with(title),
        _ => el("circle")
            .class("dot ok")
            .number("cx", x)
            .number("cy", y)
            .number("r", 6)
            .with(title),
    }
}

const fn top(lane: usize) -> u64 {
    lane as u64 * LANE
}

const LANES: [&str; 4] = ["model", "tools", "approvals", "policy"];
const LANE: u64 = 44;
const LEFT: u64 = 110;
const WIDTH: u64 = 1000;
const RIGHT: u64 = 20;
