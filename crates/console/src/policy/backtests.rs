//! Backtests and replays: what another policy would have decided, and whether the same decide the same.

use crate::chart::{self, Share};
use crate::frame::{Who, form};
use crate::html::{El, Link, el};
use crate::look::Look;
use crate::policy::PolicyPage;
use crate::words::{self, command, name};

pub(super) fn backtests(who: Option<&Who>, page: &PolicyPage<'_>) -> El {
    let section = el("section")
        .id("backtests")
        .class("broad")
        .attr("aria-label", "Backtests")
        .with(el("h2").text("Backtests"));
    let section = match page.backtests.is_empty() {
        true => section.with(el("p").text(
            "What another policy would have decided about recorded actions. The command line does it \
             with all options, and for as long as it takes:",
        )),
        false => section,
    };
    section
        .each(page.backtests.iter().map(|json| run(Look::at(json))))
        .maybe(who.filter(|who| who.changes).map(ask))
        .with(command("countersign backtest --policy new-policy.rego"))
}

/// Sessions that were decided again by the policies that decided them.
pub(super) fn replays(who: Option<&Who>, page: &PolicyPage<'_>) -> El {
    let section = el("section")
        .id("replays")
        .attr("aria-label", "Replays")
        .with(el("h2").text("Replays"));
    let ask = who.filter(|who| who.changes).map(ask_replay);
    let how = command("countersign replay SESSION");
    if page.replays.is_empty() {
        return section
            .with(el("p").text(
                "A recorded session, decided again by the policies that decided it, must come out the \
                 same. What you ask of POST /v1/replays is listed here; a terminal does it too:",
            ))
            .maybe(ask)
            .with(how);
    }
    let rows = page.replays.iter().map(|json| {
        let look = Look::at(json);
        let (tenant, session) = (look.text("tenant_id"), look.text("session_id"));
        let report = look.get("report");
        let differences = report.list("diffs").count() as u64;
        let state = match (look.text("state"), report.is("identical")) {
            ("running", _) => el("span").class("state wait").text("RUNNING ▶"),
            ("done", true) => el("span").class("state ok").text("IDENTICAL ✓"),
            ("done", false) => el("span").class("state bad").text("DIFFERENT ✗"),
            _ => el("span").class("state bad").text("FAILED ✗"),
        };
        let link = Link::to(&["sessions", session]).with("tenant_id", tenant);
        let decisions = report.number("decisions_replayed").unwrap_or_default();
        el("tr")
            .with(
                el("td")
                    .with(el("a").link(&link).with(name(session)))
                    .maybe(
                        look.maybe_text("error")
                            .map(|why| el("p").class("trouble").text(why)),
                    ),
            )
            .with(el("td").with(state))
            .with(el("td").class("n").text(&decisions.to_string()))
            .with(el("td").class("n").text(&differences.to_string()))
    });
    let columns = ["Session", "State", "Decisions", "Differences"];
    section
        .with(words::wide().with(
            words::table("Sessions that were decided again", &columns).with(el("tbody").each(rows)),
        ))
        .maybe(ask)
        .with(how)
}

fn run(look: Look<'_>) -> El {
    let count = |member: &str| look.number(member).unwrap_or_default();
    let changes: Vec<Look<'_>> = look.list("changes").collect();
    let sum = |wanted: Turn| -> u64 {
        let counts = changes.iter().filter(|change| Turn::of(**change) == wanted);
        counts
            .map(|change| change.number("count").unwrap_or_default())
            .sum()
    };
    let shares = [
        Share {
            class: "share same",
            label: "the same",
            count: count("same"),
        },
        Share {
            class: "share stricter",
            label: "▲ stricter",
            count: sum(Turn::Stricter),
        },
        Share {
            class: "share looser",
            label: "▼ lets more through",
            count: sum(Turn::Looser),
        },
        Share {
            class: "share aside",
            label: "otherwise different",
            count: sum(Turn::Aside),
        },
    ];
    let head = el("p")
        .with(words::time(count("at_unix_ms")))
        .text(" · ")
        .with(el("b").with(name(look.text("name"))))
        .text(&format!(
            " · {} actions of {} sessions",
            count("actions"),
            count("sessions")
        ));
    let about = format!(
        "Of {} actions {} are decided the same, {} stricter, {} less strictly",
        count("actions"),
        count("same"),
        sum(Turn::Stricter),
        sum(Turn::Looser)
    );
    let notes = [
        (
            look.is("interrupted"),
            "It took too long and was stopped: there are more actions than these.".to_owned(),
        ),
        (
            count("unread_sessions") > 0,
            format!("{} sessions could not be read.", count("unread_sessions")),
        ),
    ];
    let notes = notes.into_iter().filter(|(holds, _)| *holds);
    el("article")
        .class("run")
        .with(head)
        .each(notes.map(|(_, text)| el("p").class("trouble").text(&text)))
        .with(chart::shares(&about, &shares))
        .maybe((!changes.is_empty()).then(|| {
            el("div")
                .class("facts")
                .with(verdicts(&changes))
                .with(tools(look))
        }))
}

/// From which verdict to which.
fn verdicts(changes: &[Look<'_>]) -> El {
    let counts = changes
        .iter()
        .map(|change| change.number("count").unwrap_or_default());
    let most = counts.max().unwrap_or(1);
    let rows = changes.iter().map(|change| {
        let (class, mark) = match Turn::of(*change) {
            Turn::Stricter => ("share stricter", "▲"),
            Turn::Looser => ("share looser", "▼"),
            Turn::Aside => ("share aside", "="),
        };
        let count = change.number("count").unwrap_or_default();
        el("tr")
            .with(el("td").with(words::state(change.text("from"))))
            .with(el("td").text(mark))
            .with(el("td").with(words::state(change.text("to"))))
            .with(el("td").class("drawn").with(chart::bar(class, count, most)))
    });
    words::wide().with(
        words::table(
            "What would have changed",
            &["Was", "Turn", "Would be", "Times"],
        )
        .with(el("tbody").each(rows)),
    )
}

/// The tools that it is about.
fn tools(look: Look<'_>) -> El {
    let tools: Vec<Look<'_>> = look.list("tools").collect();
    let counts = tools
        .iter()
        .map(|tool| tool.number("count").unwrap_or_default());
    let most = counts.max().unwrap_or(1);
    let rows = tools.iter().map(|tool| {
        let count = tool.number("count").unwrap_or_default();
        el("tr").with(el("td").with(name(tool.text("tool")))).with(
            el("td")
                .class("drawn")
                .with(chart::bar("bar tool", count, most)),
        )
    });
    words::wide().with(
        words::table("By tool, the most changed first", &["Tool", "Times"])
            .with(el("tbody").each(rows)),
    )
}

/// Which way a decision turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Stricter,
    Looser,
    Aside,
}

impl Turn {
    fn of(change: Look<'_>) -> Self {
        let strictness = |verdict: &str| match verdict {
            "allow" | "allowed" | "warn" => 0,
            "transform" => 1,
            "escalate" | "require_approval" => 2,
            _ => 3,
        };
        let (from, to) = (
            strictness(change.text("from")),
            strictness(change.text("to")),
        );
        match from.cmp(&to) {
            std::cmp::Ordering::Less => Self::Stricter,
            std::cmp::Ordering::Greater => Self::Looser,
            std::cmp::Ordering::Equal => Self::Aside,
        }
    }
}

fn ask_replay(who: &Who) -> El {
    let field = |id: &'static str, name: &'static str, about: &'static str, value: &str| {
        [
            el("label").attr("for", id).text(about),
            el("input")
                .id(id)
                .attr("name", name)
                .attr("value", value)
                .flag("required", true),
        ]
    };
    el("details")
        .with(el("summary").text("Decide a session again"))
        .with(
            form(who, &Link::to(&["policy", "replay"]))
                .each(field("replay-session", "session", "Session", ""))
                .each(field("replay-tenant", "tenant", "Tenant", "default"))
                .with(el("button").text("Decide it again")),
        )
}

fn ask(who: &Who) -> El {
    el("details")
        .with(el("summary").text("Try a policy on what was recorded"))
        .with(
            form(who, &Link::to(&["policy", "backtest"]))
                .with(el("label").attr("for", "trial-name").text("Name"))
                .with(
                    el("input")
                        .id("trial-name")
                        .attr("name", "name")
                        .attr("value", "trial.rego")
                        .flag("required", true),
                )
                .with(
                    el("label")
                        .attr("for", "trial-text")
                        .text("Policy, in Rego"),
                )
                .with(
                    el("textarea")
                        .id("trial-text")
                        .attr("name", "text")
                        .attr("rows", "8")
                        .class("mono")
                        .attr("spellcheck", "false")
                        .flag("required", true),
                )
                .with(el("button").text("Try it; nothing changes")),
        )
}
