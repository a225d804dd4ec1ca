//! The table of sessions.

use countersign_canon::Json;
use countersign_display::shell;

use crate::frame::Frame;
use crate::html::{El, Html, Link, el};
use crate::look::Look;
use crate::words::{self, command, duration, empty, hash, name};

/// What the table shows.
#[derive(Debug)]
pub struct SessionsPage<'a> {
    /// The sessions, newest first.
    pub sessions: &'a [Json],
    /// The filter.
    pub query: &'a str,
    /// What is wrong with the filter.
    pub trouble: Option<&'a str>,
    /// How many events were looked at for the filter, if not all.
    pub looked_at: Option<u64>,
    /// Where the next page begins.
    pub next: Option<&'a str>,
}

/// The page.
pub fn sessions(frame: &Frame<'_>, page: &SessionsPage<'_>) -> Html {
    let rows = page.sessions.iter().map(row);
    let table = match page.sessions.is_empty() {
        false => words::wide().with(
            words::table(
                "Sessions, the one that began last first",
                &[
                    "Session", "Tenant", "Events", "Began", "Lasted", "State", "Head",
                ],
            )
            .with(el("tbody").each(rows)),
        ),
        true if page.query.is_empty() => empty(
            "No agent was here yet.",
            "A session begins with the first call of an agent. Put an MCP server behind Countersign:",
            "countersign connect --dry-run",
        ),
        true => empty(
            "No session fits.",
            "Sessions are shown that have an event which fits every word.",
            "countersign log tail --query 'decision:deny since:1d'",
        ),
    };
    let next = page.next.map(|next| {
        let link = Link::to(&["sessions"])
            .maybe("q", Some(page.query))
            .with("cursor", next);
        el("p").with(
            el("a")
                .link(&link)
                .attr("rel", "next")
                .text("Older sessions"),
        )
    });
    let cli = match page.query.is_empty() {
        true => "countersign session list".to_owned(),
        false => format!("countersign log tail --query {}", shell(page.query)),
    };
    let main = el("div")
        .with(el("h1").text("Sessions"))
        .with(search(
            &Link::to(&["sessions"]),
            page.query,
            "decision:deny tool:mcp.* since:1h",
        ))
        .maybe(
            page.trouble
                .map(|text| el("p").class("trouble").attr("role", "alert").text(text)),
        )
        .maybe(page.looked_at.map(|count| {
            el("p")
                .class("note")
                .text(&format!("The newest {count} events were looked at."))
        }))
        .with(el("div").id("sessions").attr("data-live", "").with(table))
        .maybe(next)
        .with(command(&cli));
    frame.page("Sessions", main)
}

/// The one search box.
pub(crate) fn search(to: &Link, query: &str, example: &str) -> El {
    el("form")
        .class("search")
        .attr("role", "search")
        .attr("method", "get")
        .link(to)
        .with(el("label").attr("for", "q").text("Filter"))
        .with(
            el("input")
                .id("q")
                .attr("name", "q")
                .attr("type", "search")
                .attr("value", query)
                .attr("placeholder", example)
                .attr("autocomplete", "off")
                .attr("spellcheck", "false"),
        )
        .with(el("button").text("Show"))
}

fn row(session: &Json) -> El {
    let look = Look::at(session);
    let (tenant, id) = (look.text("tenant_id"), look.text("session_id"));
    let (first, last) = (look.number("first_unix_ms"), look.number("last_unix_ms"));
    let lasted = last
        .unwrap_or_default()
        .saturating_sub(first.unwrap_or_default());
    let state = match (look.number("erased_unix_ms"), look.is("terminated")) {
        (Some(_), _) => el("span").class("state off").text("ERASED ○"),
        (None, true) => el("span").class("state off").text("ENDED ■"),
        (None, false) => el("span").class("state ok").text("OPEN ▶"),
    };
    el("tr")
        .with(el("td").with(el("a").link(&words::session(tenant, id)).with(name(id))))
        .with(el("td").with(name(tenant)))
        .with(
            el("td")
                .class("n")
                .text(&look.number("events").unwrap_or_default().to_string()),
        )
        .with(el("td").with(words::time(first.unwrap_or_default())))
        .with(el("td").class("n").text(&duration(lasted)))
        .with(el("td").with(state))
        .with(el("td").with(hash(look.text("head"))))
}
