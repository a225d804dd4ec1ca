//! How the daemon is, and how people answer.

use crate::frame::Frame;
use crate::html::{El, Html, el};
use crate::words::{self, command, duration, fact};

/// What the page shows.
#[derive(Debug, Default)]
pub struct Health<'a> {
    /// The doors that actions come by.
    pub doors: &'a [Door],
    /// How many of the newest actions were looked at for them.
    pub looked_at: u64,
    /// Whether the log can be read and written.
    pub is_ready: bool,
    /// How many events there are.
    pub events: u64,
    /// How many of them are in the tree.
    pub integrated: u64,
    /// How many of them the newest checkpoint covers, and when it was signed.
    pub checkpoint: Option<(u64, Option<u64>)>,
    /// How large the files of the log are.
    pub bytes: Option<u64>,
    /// How people are asked and answer.
    pub figures: Figures,
    /// Numbers in the text format of Prometheus.
    pub metrics: Option<&'a str>,
}

/// A door, and how far it reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// What it is called.
    pub name: String,
    /// How far it reaches.
    pub reach: Reach,
    /// Why so far.
    pub why: String,
    /// How many of the newest actions came by it.
    pub actions: u64,
    /// When the newest of them did.
    pub newest_unix_ms: Option<u64>,
}

/// How far a door reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// What is not allowed does not happen.
    Enforcing,
    /// It does not happen if whoever asks keeps to the answer.
    BestEffort,
    /// It happens, and is recorded.
    ObserveOnly,
    /// Nothing came by it.
    NotSeen,
}

impl Reach {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforcing => "enforcing",
            Self::BestEffort => "best effort",
            Self::ObserveOnly => "observe only",
            Self::NotSeen => "not seen",
        }
    }
}

/// How people are asked, and how they answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Actions that agents wanted.
    pub actions: u64,
    /// Requests to people.
    pub asked: u64,
    /// Requests that were approved.
    pub approved: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// The middle one of the times from question to answer.
    pub median_ms: Option<u64>,
    /// Approvals that came within a second.
    pub hasty: u64,
}

/// The page.
pub fn health(frame: &Frame<'_>, health: &Health<'_>) -> Html {
    let main = el("div")
        .with(el("h1").text("Health"))
        .with(
            el("div")
                .id("health")
                .attr("data-live", "")
                .class("facts")
                .with(store(frame, health))
                .with(people(&health.figures))
                .with(doors(health)),
        )
        .with(
            el("div")
                .id("latency")
                .attr("data-live", "")
                .with(el("h2").text("How long things take"))
                .with(histograms(health.metrics)),
        )
        .with(command("countersign doctor"));
    frame.page("Health", main)
}

fn events(count: u64) -> String {
    match count {
        1 => "1 event".to_owned(),
        _ => format!("{count} events"),
    }
}

fn store(frame: &Frame<'_>, health: &Health<'_>) -> El {
    let ready = match health.is_ready {
        true => el("span").class("state ok").text("READY ✓"),
        false => el("span").class("state bad").text("NOT READY ✗"),
    };
    let lag = health.events.saturating_sub(health.integrated);
    let checkpoint = match health.checkpoint {
        None => "none yet".to_owned(),
        Some((covered, at)) => {
            let age = at.map(|at| duration(frame.now_unix_ms.saturating_sub(at)));
            let behind = health.events.saturating_sub(covered);
            let age = age.map_or(String::new(), |age| format!(", {age} old"));
            format!("covers {}{age}, {behind} newer", events(covered))
        }
    };
    let bytes = health.bytes.map(|bytes| {
        fact(
            "On disk",
            Html::text(&format!("{} MiB", bytes.div_ceil(1 << 20))),
        )
    });
    el("section")
        .attr("aria-label", "Store")
        .with(el("h2").text("Store"))
        .with(
            el("dl")
                .with(fact("State", ready))
                .with(fact("Events", Html::text(&health.events.to_string())))
                .maybe(bytes)
                .with(fact(
                    "Integration lag",
                    Html::text(&format!("{}, not in the tree yet", events(lag))),
                ))
                .with(fact("Checkpoint", Html::text(&checkpoint))),
        )
}

fn people(figures: &Figures) -> El {
    let share = |part: u64, whole: u64| match whole {
        0 => "–".to_owned(),
        whole => format!("{} %", part.saturating_mul(100) / whole),
    };
    el("section")
        .attr("aria-label", "People")
        .with(el("h2").text("People"))
        .with(
            el("dl")
                .with(fact(
                    "Ask rate",
                    Html::text(&format!(
                        "{} of actions ({} of {})",
                        share(figures.asked, figures.actions),
                        figures.asked,
                        figures.actions
                    )),
                ))
                .with(fact("Approved", Html::text(&figures.approved.to_string())))
                .with(fact("Denied", Html::text(&figures.denied.to_string())))
                .with(fact(
                    "Median time to decide",
                    Html::text(&figures.median_ms.map_or("–".to_owned(), duration)),
                ))
                .with(fact(
                    "Approved within a second",
                    Html::text(&format!(
                        "{} ({})",
                        share(figures.hasty, figures.approved),
                        figures.hasty
                    )),
                )),
        )
        .with(
            el("p").class("note").text(
                "Who is asked too often stops reading: many approvals within a second say so.",
            ),
        )
}

fn doors(health: &Health<'_>) -> El {
    let rows = health.doors.iter().map(|door| {
        let (class, mark) = match door.reach {
            Reach::Enforcing => ("state ok", " ✓"),
            Reach::BestEffort => ("state wait", " ~"),
            Reach::ObserveOnly => ("state bad", " ○"),
            Reach::NotSeen => ("state off", ""),
        };
        let reach = format!("{}{mark}", door.reach.as_str());
        el("tr")
            .with(el("th").attr("scope", "row").with(words::name(&door.name)))
            .with(el("td").with(el("span").class(class).text(&reach)))
            .with(el("td").class("n").text(&door.actions.to_string()))
            .with(el("td").maybe(door.newest_unix_ms.map(words::time)))
            .with(el("td").class("why").text(&door.why))
    });
    let caption = format!(
        "What each door can promise, as the newest {} actions show it",
        health.looked_at
    );
    el("section")
        .class("broad")
        .attr("aria-label", "Doors")
        .with(el("h2").text("Doors"))
        .with(
            words::wide().with(
                words::table(&caption, &["Door", "Reach", "Actions", "Newest", "Why"])
                    .with(el("tbody").each(rows)),
            ),
        )
        .with(el("p").class("note").text(
            "Whether a forbidden action is refused at each door is tried by countersign doctor.",
        ))
}

/// Every histogram in the numbers, as bars.
fn histograms(metrics: Option<&str>) -> El {
    let Some(metrics) = metrics else {
        return el("p").class("note").text("Nothing is counted here.");
    };
    let all = HISTOGRAMS.iter().map(|(name, about)| {
        let buckets = buckets(metrics, name);
        let most = buckets.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let total: u64 = buckets.iter().map(|(_, count)| *count).sum();
        let bars = buckets.iter().enumerate().map(|(index, (bound, count))| {
            let height = count.saturating_mul(60).checked_div(most).unwrap_or(0);
            let height = if *count > 0 { height.max(2) } else { 0 };
            let x = index as u64 * 22 + 4;
            el("g")
                .with(
                    el("rect")
                        .class("bar tool")
                        .number("x", x)
                        .number("y", 64 - height)
                        .number("width", 18)
                        .number("height", height)
                        .with(el("title").text(&format!("up to {bound} s: {count}"))),
                )
                .maybe((index % 3 == 0).then(|| {
                    el("text")
                        .class("axis")
                        .number("x", x)
                        .number("y", 80)
                        .text(bound)
                }))
        });
        let width = (buckets.len() as u64 * 22 + 30).max(380);
        el("figure")
            .with(
                el("svg")
                    .class("histogram")
                    .attr("viewBox", format!("0 0 {width} 86"))
                    .attr("role", "img")
                    .attr("aria-label", format!("{about}: {total} measured"))
                    .each(bars),
            )
            .with(el("figcaption").text(&format!("{about} (seconds): {total} measured")))
    });
    el("div").class("figures").each(all)
}

/// The buckets of a histogram: each bound, and how many are between it and the one before.
fn buckets(metrics: &str, name: &str) -> Vec<(String, u64)> {
    let mut before = 0;
    let lines = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?.strip_prefix("_bucket{le=\"")?;
        let (bound, count) = rest.split_once("\"} ")?;
        Some((bound.to_owned(), count.trim().parse::<u64>().ok()?))
    });
    lines
        .map(|(bound, count)| {
            let own = count.saturating_sub(before);
            before = count;
            (bound, own)
        })
        .collect()
}

const HISTOGRAMS: &[(&str, &str)] = &[
    ("countersign_decide_seconds", "Policies judge an action"),
    ("countersign_append_seconds", "Events become durable"),
    ("countersign_hold_seconds", "Held actions wait for people"),
    ("countersign_upstream_seconds", "Tools answer"),
    ("countersign_http_request_seconds", "Requests are answered"),
];
