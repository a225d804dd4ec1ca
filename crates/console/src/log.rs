//! The log: every event, and one box that finds any of them.

use countersign_canon::Json;
use countersign_display::shell;

use crate::frame::Frame;
use crate::html::{El, Html, Link, el};
use crate::look::Look;
use crate::sessions::search;
use crate::words::{self, command, empty, hash, name};

/// What the log shows.
#[derive(Debug)]
pub struct LogPage<'a> {
    /// What was asked for.
    pub query: &'a str,
    /// What is wrong with it.
    pub trouble: Option<&'a str>,
    /// Events, newest first.
    pub events: &'a [Json],
    /// How many events were looked at, if not all.
    pub looked_at: Option<u64>,
    /// Something that is no event: an approval, a session.
    pub found: &'a [Found],
    /// The newest checkpoint: how many events it covers, and its root.
    pub checkpoint: Option<(u64, String)>,
}

/// Something that a search found beside events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it is.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub link: Link,
}

/// The page.
pub fn log(frame: &Frame<'_>, page: &LogPage<'_>) -> Html {
    let rows = page.events.iter().map(row);
    let table = match (page.events.is_empty(), page.query.is_empty()) {
        (false, _) => words::wide().with(
            words::table(
                "Events, the newest first",
                &["#", "When", "Session", "Event", "About", "Hash"],
            )
            .with(el("tbody").each(rows)),
        ),
        (true, true) => empty(
            "The log is empty.",
            "Every proposal, decision, approval and result is an event. To record one by hand:",
            "countersign log append --session s1 --type MEMORY_WRITE --payload '{}'",
        ),
        (true, false) => empty(
            "Nothing fits.",
            "Look for a hash (8 digits or more), an id, a tool, a person, or use words such as \
             decision:deny since:1h.",
            "countersign log tail --query 'decision:deny since:1h'",
        ),
    };
    let found = page.found.iter().map(|found| {
        el("li")
            .text(&format!("{}: ", found.what))
            .with(el("a").link(&found.link).with(name(&found.name)))
    });
    let covered = match &page.checkpoint {
        None => el("p")
            .class("note")
            .text("No checkpoint was published yet."),
        Some((size, root)) => el("p")
            .class("note")
            .text(&format!(
                "The newest checkpoint covers {size} events, root "
            ))
            .with(hash(root)),
    };
    let cli = match page.query.contains(':') {
        true => format!("countersign log tail --query {}", shell(page.query)),
        false => "countersign log tail --follow".to_owned(),
    };
    let main = el("div")
        .with(el("h1").text("Log"))
        .with(search(
            &Link::to(&["log"]),
            page.query,
            "a hash, an id, a tool, a person, or tool:mcp.* since:1h",
        ))
        .maybe(
            page.trouble
                .map(|text| el("p").class("trouble").attr("role", "alert").text(text)),
        )
        .maybe((!page.found.is_empty()).then(|| el("ul").each(found)))
        .maybe(page.looked_at.map(|count| {
            el("p")
                .class("note")
                .text(&format!("The newest {count} events were looked at."))
        }))
        .with(el("div").id("events").attr("data-live", "").with(table))
        .with(el("div").id("covered").attr("data-live", "").with(covered))
        .with(command(&cli));
    frame.page("Log", main)
}

fn row(event: &Json) -> El {
    let look = Look::at(event);
    let payload = look.get("payload");
    let (tenant, session) = (look.text("tenant_id"), look.text("session_id"));
    let here = words::session(tenant, session);
    let seq = look.number("seq").unwrap_or_default().to_string();
    let about: Vec<String> = ABOUT
        .iter()
        .filter_map(|member| payload.get(member).0)
        .map(|value| match value.as_str() {
            Some(text) => text.to_owned(),
            None => Look::at(value).json(),
        })
        .collect();
    el("tr")
        .with(
            el("td").class("n").with(
                el("a")
                    .link(&here.clone().with("seq", &seq))
                    .text(&look.number("id").unwrap_or_default().to_string()),
            ),
        )
        .with(el("td").with(words::time(look.number("ts_unix_ms").unwrap_or_default())))
        .with(
            el("td").with(
                el("a")
                    .link(&here)
                    .with(name(session))
                    .text(&format!(" {seq}")),
            ),
        )
        .with(el("td").class("mono").text(look.text("event_type")))
        .with(el("td").with(name(&about.join(" "))))
        .with(el("td").with(hash(look.text("hash"))))
}

const ABOUT: &[&str] = &[
    "tool_name",
    "server",
    "outcome",
    "reason",
    "approved",
    "decided_by",
    "approval_id",
    "model_id",
    "memory_key",
    "checkpoint_id",
    "reason_code",
    "code",
    "to_agent",
];
