//! One session: its actions, its time line, its events, and what is proven about them.

use countersign_canon::Json;
use countersign_display::shell;

use crate::frame::Frame;
use crate::graph;
use crate::html::{El, Html, Link, el};
use crate::look::Look;
use crate::timeline;
use crate::words::{self, command, duration, fact, hash, name, state};

mod action;

pub(crate) use action::{Action, actions};

/// How a history is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// One row an action.
    Compact,
    /// Lanes over time.
    Timeline,
    /// Every event.
    Raw,
}

impl View {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Timeline => "timeline",
            Self::Raw => "raw",
        }
    }

    /// The view of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Compact, Self::Timeline, Self::Raw]
            .into_iter()
            .find(|view| view.as_str() == name)
    }
}

/// What the page of a session shows.
#[derive(Debug)]
pub struct SessionPage<'a> {
    /// The session in a few numbers.
    pub session: &'a Json,
    /// Some of its events, in order.
    pub events: &'a [Json],
    /// How they are shown.
    pub view: View,
    /// Where these events begin, and where the next ones do.
    pub cursor: (Option<&'a str>, Option<&'a str>),
    /// The state that the next decision starts from.
    pub snapshot: Option<&'a Json>,
    /// The limits of the manifest in force.
    pub budgets: Option<&'a Json>,
    /// What checking it said.
    pub verified: Option<&'a Json>,
    /// How many of its events the newest checkpoint covers, and when that was.
    pub covered: Option<u64>,
    /// Whether a pack of evidence can be had here.
    pub has_pack: bool,
}

/// The page.
pub fn session(frame: &Frame<'_>, page: &SessionPage<'_>) -> Html {
    let look = Look::at(page.session);
    let (tenant, id) = (look.text("tenant_id"), look.text("session_id"));
    let here = words::session(tenant, id);
    let shown = match page.view {
        View::Compact => compact(page, &here),
        View::Timeline => timeline::timeline(page.events, &here),
        View::Raw => raw(page.events, &here),
    };
    let views = [View::Compact, View::Timeline, View::Raw].map(|view| {
        let link = here
            .clone()
            .with("view", view.as_str())
            .maybe("cursor", page.cursor.0);
        let mut link = el("a").link(&link).text(view.as_str());
        if view == page.view {
            link = link.attr("aria-current", "true");
        }
        el("li").with(link)
    });
    let next = page.cursor.1.map(|next| {
        let link = here
            .clone()
            .with("view", page.view.as_str())
            .with("cursor", next);
        el("p").with(el("a").link(&link).attr("rel", "next").text("Later events"))
    });
    let export = page.has_pack.then(|| {
        let link = Link::to(&["sessions", id, "pack"]).with("tenant_id", tenant);
        el("a")
            .class("button")
            .link(&link)
            .attr("download", "")
            .text("Export pack")
    });
    let main = el("div")
        .with(el("h1").text("Session ").with(name(id)))
        .with(head(look, page))
        .with(
            el("p")
                .class("buttons")
                .with(
                    el("a")
                        .class("button")
                        .link(
                            &here
                                .clone()
                                .with("view", page.view.as_str())
                                .with("verify", "now"),
                        )
                        .text("Verify now"),
                )
                .maybe(export),
        )
        .maybe(page.verified.map(verified))
        .with(
            el("div")
                .class("facts")
                .with(gauges(page))
                .with(graph::taint(page.snapshot, page.events, &here)),
        )
        .with(
            el("nav")
                .attr("aria-label", "Views")
                .with(el("ul").class("views").each(views)),
        )
        .with(el("div").id("history").attr("data-live", "").with(shown))
        .maybe(next)
        .with(command(&format!(
            "countersign session show {} --tenant {}",
            shell(id),
            shell(tenant)
        )));
    frame.page(&format!("Session {id}"), main)
}

fn head(look: Look<'_>, page: &SessionPage<'_>) -> El {
    let (first, last) = (look.number("first_unix_ms"), look.number("last_unix_ms"));
    let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
    let events = look.number("events").unwrap_or_default();
    let covered = match page.covered {
        None => "no checkpoint was published yet".to_owned(),
        Some(covered) if covered >= events => format!("all {events} events"),
        Some(covered) => {
            format!("{covered} of {events} events; the rest follows with the next one")
        }
    };
    let ended = match look.is("terminated") {
        true => "ended",
        false => "open",
    };
    el("dl")
        .class("head")
        .id("head")
        .attr("data-live", "")
        .with(fact("Tenant", name(look.text("tenant_id"))))
        .with(fact("State", Html::text(ended)))
        .with(fact("Events", Html::text(&events.to_string())))
        .with(fact("Began", words::time(first)))
        .with(fact(
            "Lasted",
            Html::text(&duration(last.saturating_sub(first))),
        ))
        .with(fact("Head", hash(look.text("head"))))
        .with(fact("In a checkpoint", Html::text(&covered)))
}

fn verified(report: &Json) -> El {
    let look = Look::at(report);
    let (class, word) = match look.is("valid") {
        true => ("state ok", "VERIFIED ✓"),
        false => ("state bad", "FAILED ✗"),
    };
    let list = |words: Vec<&str>, mark: &'static str| {
        el("ul").class("tight").each(
            words
                .into_iter()
                .map(|word| el("li").text(&format!("{mark} {word}")))
                .collect::<Vec<_>>(),
        )
    };
    el("section")
        .id("verified")
        .class("report")
        .attr("role", "status")
        .with(
            el("p")
                .with(el("span").class(class).text(word))
                .text(&format!(
                    " {} events, recomputed now",
                    look.number("events").unwrap_or_default()
                )),
        )
        .maybe(look.maybe_text("error").map(|error| {
            let seq = look.number("first_bad_seq").unwrap_or_default();
            el("p")
                .class("trouble")
                .text(&format!("Event {seq}: {error}"))
        }))
        .with(el("h3").text("Checked"))
        .with(list(look.texts("checked"), "✓"))
        .with(el("h3").text("Not checked"))
        .with(list(look.texts("not_checked"), "–"))
}

/// How much of each budget is used.
fn gauges(page: &SessionPage<'_>) -> El {
    let state = Look(page.snapshot).get("state");
    let budgets = Look(page.budgets);
    let rows = GAUGES.iter().filter_map(|(used, limit, label)| {
        let shown = |value: u64| match *used {
            "wall_time_ms" => duration(value),
            _ => value.to_string(),
        };
        let used = state.number(used)?;
        let Some(limit) = budgets.number(limit).filter(|limit| *limit > 0) else {
            return Some(fact(
                label,
                Html::text(&format!("{}, no limit", shown(used))),
            ));
        };
        let reading = format!("{} of {}", shown(used), shown(limit));
        let gauge = el("span")
            .with(
                el("meter")
                    .number("min", 0)
                    .number("max", limit)
                    .number("value", used.min(limit))
                    .number("high", limit.saturating_mul(8) / 10)
                    .attr("aria-label", format!("{label}: {reading}")),
            )
            .text(&format!(" {reading}"));
        Some(fact(label, gauge))
    });
    let rows: Vec<Html> = rows.collect();
    let body = match rows.is_empty() {
        true => el("p").text("The content of this session was erased."),
        false => el("dl").each(rows),
    };
    el("section")
        .attr("aria-label", "Budgets")
        .with(el("h3").text("Budgets"))
        .with(body)
}

fn compact(page: &SessionPage<'_>, here: &Link) -> El {
    let all = actions(page.events);
    let longest = all.iter().map(Action::took).max().unwrap_or(0).max(1);
    let rows = all.iter().map(|action| {
        let link = here.clone().with("seq", &action.seq.to_string());
        let outcome = match action.outcome {
            Some(outcome) => state(outcome),
            None => el("span").class("mono").text(action.kind),
        };
        let approval = action.approval.map(|id| {
            el("a")
                .link(&Link::to(&["inbox", id]))
                .with(state(match action.approved {
                    Some(true) => "approved",
                    Some(false) => "denied",
                    None => "pending",
                }))
        });
        let result = match (action.is_error, action.ended) {
            (Some(true), _) => "error ✗",
            (_, Some(_)) => "result ✓",
            _ => "",
        };
        el("tr")
            .with(
                el("td")
                    .class("n")
                    .with(el("a").link(&link).text(&action.seq.to_string())),
            )
            .with(el("td").with(words::time(action.began)))
            .with(
                el("td").with(name(action.title)).maybe(
                    action
                        .server
                        .map(|server| el("span").class("quiet").text(" of ").with(name(server))),
                ),
            )
            .with(el("td").with(outcome))
            .with(
                el("td")
                    .class("mono")
                    .with(name(action.reason.unwrap_or(""))),
            )
            .with(
                el("td")
                    .maybe(approval)
                    .text(" ")
                    .with(name(action.decided_by.unwrap_or(""))),
            )
            .with(el("td").text(result))
            .with(
                el("td")
                    .class("n")
                    .with(
                        el("meter")
                            .number("min", 0)
                            .number("max", longest)
                            .number("value", action.took())
                            .attr("aria-label", duration(action.took())),
                    )
                    .text(" ")
                    .text(&duration(action.took())),
            )
    });
    words::wide().with(
        words::table(
            "Actions, in the order in which they were proposed",
            &[
                "#", "When", "What", "Decision", "Reason", "Approval", "Result", "Took",
            ],
        )
        .with(el("tbody").each(rows)),
    )
}

fn raw(events: &[Json], here: &Link) -> El {
    let rows = events.iter().map(|event| {
        let look = Look::at(event);
        let seq = look.number("seq").unwrap_or_default();
        el("article")
            .class("raw")
            .with(
                el("p")
                    .with(
                        el("a")
                            .link(&here.clone().with("seq", &seq.to_string()))
                            .text(&format!("event {seq}")),
                    )
                    .text(" ")
                    .with(el("b").class("mono").text(look.text("event_type")))
                    .text(" ")
                    .with(words::time(look.number("ts_unix_ms").unwrap_or_default()))
                    .text(" ")
                    .with(hash(look.text("hash"))),
            )
            .with(el("pre").text(&look.get("payload").json()))
    });
    el("div").each(rows)
}

/// The page of one event, with the proof that it is in the log.
pub fn event(
    frame: &Frame<'_>,
    event: &Json,
    proof: Result<&Json, &str>,
    lines: Option<&str>,
) -> Html {
    let look = Look::at(event);
    let (tenant, id) = (look.text("tenant_id"), look.text("session_id"));
    let seq = look.number("seq").unwrap_or_default();
    let here = words::session(tenant, id);
    let members = look
        .members("payload")
        .filter(|(member, _)| *member != "sealed")
        .map(|(member, value)| {
            let text = match value.0.and_then(Json::as_str) {
                Some(text) => name(text),
                None => name(&value.json()),
            };
            fact(member, text)
        });
    let sealed = look.members("payload.sealed.commitments");
    let sealed: Vec<String> = sealed.map(|(place, _)| place.to_owned()).collect();
    let before = seq.checked_sub(1).map(|seq| {
        el("a")
            .link(&here.clone().with("seq", &seq.to_string()))
            .attr("rel", "prev")
            .text("Event before")
    });
    let main = el("div")
        .class("narrow")
        .with(
            el("h1")
                .text(&format!("Event {seq} of "))
                .with(el("a").link(&here).with(name(id))),
        )
        .with(
            el("p")
                .with(el("b").class("mono").text(look.text("event_type")))
                .text(" ")
                .with(words::time(look.number("ts_unix_ms").unwrap_or_default())),
        )
        .with(
            el("dl").with(fact("Hash", hash(look.text("hash")))).maybe(
                look.maybe_text("prev_hash")
                    .map(|prev| fact("After", hash(prev))),
            ),
        )
        .with(el("h2").text("What it says"))
        .with(el("dl").each(members))
        .maybe((!sealed.is_empty()).then(|| {
            el("p")
                .class("note")
                .text("Sealed, and not shown here: ")
                .text(&sealed.join(", "))
        }))
        .maybe(lines.map(|text| el("p").text(text)))
        .with(el("h2").text("Proof"))
        .with(match proof {
            Ok(proof) => proven(Look::at(proof)),
            Err(why) => el("p").class("note").text(why),
        })
        .with(
            el("p").maybe(before).text(" ").with(
                el("a")
                    .link(&here.clone().with("seq", &(seq + 1).to_string()))
                    .attr("rel", "next")
                    .text("Event after"),
            ),
        )
        .with(command(&format!(
            "countersign log show --session {} --seq {seq} --tenant {}",
            shell(id),
            shell(tenant)
        )));
    frame.page(&format!("Event {seq}"), main)
}

/// The way from an event to the root that a checkpoint signs.
fn proven(proof: Look<'_>) -> El {
    let path = proof.texts("path");
    let steps = path.iter().map(|step| el("li").with(hash(step)));
    el("div")
        .with(
            el("dl")
                .with(fact("Entry", hash(proof.text("event"))))
                .with(fact(
                    "Place",
                    Html::text(&format!(
                        "{} of {}",
                        proof.number("index").unwrap_or_default(),
                        proof.number("size").unwrap_or_default()
                    )),
                ))
                .with(fact("Root", hash(proof.text("root")))),
        )
        .with(el("p").text(&format!(
            "{} hashes beside the way from the entry to the root, lowest first:",
            path.len()
        )))
        .with(el("ol").class("tight").each(steps))
        .with(graph::path(path.len()))
        .with(el("h3").text("The signed checkpoint"))
        .with(
            el("pre")
                .attr("tabindex", "0")
                .attr("role", "region")
                .attr("aria-label", "The signed checkpoint")
                .lines(proof.text("checkpoint")),
        )
        .with(el("h3").text("All of it, for another program (C2SP tlog-proof)"))
        .with(
            el("pre")
                .attr("tabindex", "0")
                .attr("role", "region")
                .attr("aria-label", "The proof")
                .lines(proof.text("proof")),
        )
}

const GAUGES: &[(&str, &str, &str)] = &[
    ("steps_consumed", "max_steps", "Steps"),
    ("tool_calls_consumed", "max_tool_calls", "Tool calls"),
    ("model_calls_consumed", "max_model_calls", "Model calls"),
    ("wall_time_ms", "max_wall_time_ms", "Time"),
];
