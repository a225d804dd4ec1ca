//! Small things that every page has: times, hashes, states, commands.

use jiff::Timestamp;

use crate::html::{El, Html, Link, el};

/// A moment, in UTC. The page says how long ago it is, if it may run scripts.
pub(crate) fn time(unix_ms: u64) -> El {
    let text = clock(unix_ms);
    el("time")
        .attr("datetime", &text)
        .number("data-ms", unix_ms)
        .text(&text)
}

/// A moment as text.
pub(crate) fn clock(unix_ms: u64) -> String {
    let moment = i64::try_from(unix_ms).ok();
    let moment = moment.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    moment.map_or_else(
        || format!("{unix_ms} ms"),
        |moment| moment.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
    )
}

/// A length of time.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A clock that runs out; the page counts down.
pub(crate) fn until(end_ms: u64, now_ms: u64) -> El {
    let left = match end_ms.checked_sub(now_ms) {
        Some(left) if left > 0 => format!("{} left", duration(left)),
        _ => "over".to_owned(),
    };
    el("span")
        .class("until")
        .number("data-until", end_ms)
        .text(&left)
}

/// A hash in short, which a click copies in full.
pub(crate) fn hash(full: &str) -> El {
    let bare = full.strip_prefix("sha256:").unwrap_or(full);
    let short: String = match bare.len() > 14 {
        true => {
            let end: String = bare.chars().rev().take(4).collect();
            let end: String = end.chars().rev().collect();
            let start: String = bare.chars().take(8).collect();
            format!("{start}…{end}")
        }
        false => bare.to_owned(),
    };
    copies(full, &short).attr("title", full)
}

/// Something that a click copies.
pub(crate) fn copies(full: &str, shown: &str) -> El {
    el("button")
        .attr("type", "button")
        .class("copy mono")
        .attr("data-copy", full)
        .attr("aria-label", format!("copy {full}"))
        .text(shown)
}

/// Room for something that may be wider than the screen; it scrolls by itself, with keys too.
pub(crate) fn wide() -> El {
    el("div")
        .class("wide")
        .attr("tabindex", "0")
        .attr("role", "group")
        .attr("aria-label", "scrolls sideways where there is little room")
}

/// A name that somebody else gave, cut where it goes on for too long.
pub(crate) fn name(text: &str) -> Html {
    Html::name(text)
}

/// What was decided or became of something: a word, a shape and a colour.
pub(crate) fn state(state: &str) -> El {
    let (class, word) = match state {
        "allow" | "warn" | "transform" | "allowed" => ("ok", "ALLOW ✓"),
        "deny" => ("bad", "DENY ✗"),
        "require_approval" | "escalate" | "pending" => ("wait", "HOLD ⏸"),
        "approved" => ("ok", "APPROVED ✓"),
        "denied" => ("bad", "DENIED ✗"),
        "consumed" | "started" => ("ok", "RUNNING ▶"),
        "executed" => ("ok", "EXECUTED ✓"),
        "failed" => ("bad", "FAILED ✗"),
        "not_started" => ("off", "NOT STARTED ○"),
        "expired" | "expired_unused" => ("off", "EXPIRED ⌛"),
        "cancelled" => ("off", "CANCELLED ○"),
        "superseded" => ("off", "SUPERSEDED ↻"),
        "unknown" => ("bad", "UNKNOWN ?"),
        other => return el("span").class("state off").text(other),
    };
    let class = match class {
        "ok" => "state ok",
        "bad" => "state bad",
        "wait" => "state wait",
        _ => "state off",
    };
    el("span").class(class).text(word)
}

/// A command that does the same in a terminal.
pub(crate) fn command(text: &str) -> El {
    el("div")
        .class("command")
        .with(el("code").attr("tabindex", "0").text(text))
        .with(copies(text, "copy"))
}

/// A page with nothing on it says what to do.
pub(crate) fn empty(what: &str, why: &str, next: &str) -> El {
    el("div")
        .class("empty")
        .with(el("p").class("what").text(what))
        .with(el("p").text(why))
        .with(command(next))
}

/// A table with these columns.
pub(crate) fn table(caption: &str, columns: &[&str]) -> El {
    let heads = columns
        .iter()
        .map(|name| el("th").attr("scope", "col").text(name));
    el("table")
        .with(el("caption").class("quiet").text(caption))
        .with(el("thead").with(el("tr").each(heads)))
}

/// A term and what it is.
pub(crate) fn fact(term: &str, value: impl Into<Html>) -> Html {
    [
        el("dt").text(term).html(),
        el("dd").with(value.into()).html(),
    ]
    .into_iter()
    .collect()
}

/// The path to a session.
pub(crate) fn session(tenant: &str, session: &str) -> Link {
    Link::to(&["sessions", session]).with("tenant_id", tenant)
}
