//! The inbox: what is held, oldest and most dangerous first.

use countersign_canon::Json;

use crate::card::{self, Card};
use crate::frame::Frame;
use crate::html::{El, Html, Link, el};
use crate::look::Look;
use crate::words::{self, empty, state};

/// What the inbox shows.
#[derive(Debug)]
pub struct Inbox<'a> {
    /// What waits, in the order in which it is to be decided.
    pub waiting: &'a [Json],
    /// What was decided lately, newest first.
    pub decided: &'a [Json],
    /// The one that is looked at.
    pub card: Option<Card<'a>>,
}

/// The page.
pub fn inbox(frame: &Frame<'_>, inbox: &Inbox<'_>) -> Html {
    let open = inbox.card.as_ref().map(|card| card.id());
    let now = frame.now_unix_ms;
    let rows = inbox.waiting.iter().map(|row| item(row, open, now));
    let list = match inbox.waiting.is_empty() {
        true => empty(
            "Nothing waits for a decision.",
            "An action that a policy holds appears here at once. To see one without an agent:",
            "countersign action run --manifest m.yaml --session s1 --tool deploy --args '{\"to\":\"prod\"}' -- cat",
        ),
        false => el("ol").class("rows").each(rows),
    };
    let decided = inbox.decided.iter().map(|row| item(row, open, now));
    let side = el("section")
        .class("list")
        .attr("aria-label", "What is held")
        .with(
            el("div")
                .id("waiting")
                .attr("data-live", "")
                .with(el("h1").text("Inbox"))
                .with(list),
        )
        .maybe((!inbox.decided.is_empty()).then(|| {
            el("div")
                .id("decided")
                .attr("data-live", "")
                .with(el("h2").text("Lately"))
                .with(el("ol").class("rows").each(decided))
        }));
    let card = inbox.card.as_ref().map(|card| card::card(frame, card));
    let main = el("div").class("two").with(side).maybe(card).with(help());
    frame.page("Inbox", main)
}

fn item(row: &Json, open: Option<&str>, now: u64) -> El {
    let look = Look::at(row);
    let id = look.text("approval_id");
    let is_open = open == Some(id);
    let mut link = el("a").link(&Link::to(&["inbox", id]));
    if is_open {
        link = link.attr("aria-current", "true");
    }
    let age = now.saturating_sub(look.number("issued_at_ms").unwrap_or(now));
    let risk = match look.is("irreversible") {
        true => Some(el("span").class("risk bad").text("cannot be undone")),
        false => look
            .maybe_text("risk")
            .map(|risk| el("span").class("risk").text(risk)),
    };
    let link = link
        .with(
            el("span")
                .class("row1")
                .with(state(look.text("state")))
                .with(el("b").with(words::name(&look.texts("tools").join(", ")))),
        )
        .with(
            el("span")
                .class("row2")
                .maybe(risk)
                .with(
                    el("span")
                        .class("ago")
                        .number("data-ago", look.number("issued_at_ms").unwrap_or(now))
                        .text(&format!("{} ago", words::duration(age))),
                )
                .with(el("span").class("mono").text(look.text("short_code")))
                .with(el("span").with(words::name(look.text("requester")))),
        )
        .maybe(
            look.maybe_text("by")
                .map(|by| el("span").class("row2").text("by ").with(words::name(by))),
        );
    el("li").with(link)
}

/// The keys, as `?` shows them. The page's script reads them from here.
fn help() -> El {
    let rows = KEYS.iter().map(|(key, what)| {
        el("tr")
            .with(el("th").attr("scope", "row").with(el("kbd").text(key)))
            .with(el("td").text(what))
    });
    el("dialog")
        .id("help")
        .attr("aria-label", "Keys")
        .with(el("h2").text("Keys"))
        .with(el("table").with(el("tbody").each(rows)))
        .with(el("p").text("Enter approves nothing. Keys are off while you type."))
        .with(
            el("p").with(
                el("label")
                    .with(
                        el("input")
                            .attr("type", "checkbox")
                            .id("keys-on")
                            .flag("checked", true),
                    )
                    .text(" Use these keys"),
            ),
        )
        .with(
            el("p").with(
                el("label")
                    .with(el("input").attr("type", "checkbox").id("sound-on"))
                    .text(" Sound for what is new"),
            ),
        )
        .with(
            el("form")
                .attr("method", "dialog")
                .with(el("button").text("Close")),
        )
}

const KEYS: &[(&str, &str)] = &[
    ("j", "next"),
    ("k", "previous"),
    ("a", "approve: goes to the button, which Space presses"),
    ("d", "deny, with a reason"),
    ("e", "edit the arguments: asks for a new decision"),
    ("l", "lease: approve calls like this ahead of time"),
    ("?", "this help"),
];
