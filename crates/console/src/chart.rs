//! Charts: drawn here, so that a page needs no script for them. Each says in words what it shows.

use crate::html::{El, Html, el};

/// A part of a whole.
pub(crate) struct Share<'a> {
    /// How it looks: a class of the style.
    pub(crate) class: &'static str,
    /// What it is.
    pub(crate) label: &'a str,
    pub(crate) count: u64,
}

/// One bar that is cut into shares, with a legend that has the numbers.
pub(crate) fn shares(about: &str, all: &[Share<'_>]) -> El {
    let total: u64 = all.iter().map(|share| share.count).sum();
    let mut x = 0;
    let mut before = 0;
    let parts = all.iter().filter(|share| share.count > 0).map(|share| {
        // Ends are cut from the sum, so that they leave no gap.
        before += share.count;
        let end = scaled(before, total, WIDTH);
        let part = el("rect")
            .class(share.class)
            .number("x", x)
            .number("y", 0)
            .number("width", (end - x).max(2))
            .number("height", 20)
            .with(el("title").text(&format!("{}: {}", share.label, share.count)));
        x = end;
        part
    });
    let parts: Vec<El> = parts.collect();
    let legend = all.iter().filter(|share| share.count > 0).map(|share| {
        let percent = share.count.saturating_mul(100).checked_div(total);
        el("li")
            .with(
                el("svg")
                    .class("swatch")
                    .attr("viewBox", "0 0 10 10")
                    .attr("aria-hidden", "true")
                    .with(
                        el("rect")
                            .class(share.class)
                            .number("width", 10)
                            .number("height", 10),
                    ),
            )
            .text(&format!(
                "{} {} ({} %)",
                share.label,
                share.count,
                percent.unwrap_or(0)
            ))
    });
    el("figure")
        .with(
            el("svg")
                .class("shares")
                .attr("viewBox", format!("0 0 {WIDTH} 20"))
                .attr("preserveAspectRatio", "none")
                .attr("role", "img")
                .attr("aria-label", about)
                .each(parts),
        )
        .with(el("ul").class("legend").each(legend))
}

/// A bar for one of several numbers, as long as it is large, with the number beside it.
pub(crate) fn bar(class: &'static str, count: u64, most: u64) -> Html {
    let length = match count {
        0 => 0,
        count => scaled(count, most, WIDTH).max(4),
    };
    let drawn = el("svg")
        .class("onebar")
        .attr("viewBox", format!("0 0 {WIDTH} 20"))
        .attr("preserveAspectRatio", "none")
        .attr("aria-hidden", "true")
        .with(
            el("rect")
                .class(class)
                .number("y", 2)
                .number("width", length)
                .number("height", 16),
        );
    let number = el("span").class("n").text(&count.to_string());
    [drawn.html(), number.html()].into_iter().collect()
}

fn scaled(part: u64, whole: u64, width: u64) -> u64 {
    let scaled = u128::from(part) * u128::from(width) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(width).min(width)
}

const WIDTH: u64 = 1000;
