//! What decides: the manifest, policies, their tests, the shadow, backtests, tools.

use countersign_canon::Json;

use crate::frame::{Frame, Who, form};
use crate::html::{El, Html, Link, el};
use crate::look::Look;
use crate::words::{self, command, fact, hash, name};

mod backtests;

/// What the page shows.
#[derive(Debug)]
pub struct PolicyPage<'a> {
    /// Which policies are in force.
    pub in_force: &'a Json,
    /// The manifest in force.
    pub manifest: Option<&'a Json>,
    /// The tests of the policies, as they came out just now, and which lines they reach:
    /// `{passed, failed, tests:[{place, name, failure}], files:[{name, covered, lines, missed:[…]}]}`.
    pub tests: Option<&'a Json>,
    /// How often policies in the shadow would have decided otherwise: policy, decided, would, count.
    pub shadow: &'a [(String, String, String, u64)],
    /// How many decisions were looked at for it.
    pub decisions: u64,
    /// Backtests, newest first.
    pub backtests: &'a [Json],
    /// Sessions that were decided again, newest first.
    pub replays: &'a [Json],
    /// The tools of servers, with what waits to be accepted.
    pub tools: Option<&'a Json>,
    /// What went wrong with what was asked for last.
    pub trouble: Option<&'a str>,
}

/// The page.
pub fn policy(frame: &Frame<'_>, page: &PolicyPage<'_>) -> Html {
    let who = frame.who;
    let main = el("div")
        .with(el("h1").text("Policy"))
        .maybe(
            page.trouble
                .map(|text| el("p").class("trouble").attr("role", "alert").text(text)),
        )
        .with(
            el("div")
                .class("facts")
                .with(in_force(page))
                .with(tests(page))
                .with(shadow(page))
                .with(backtests::replays(who, page))
                .with(backtests::backtests(who, page)),
        )
        .with(tools(who, page))
        .with(manifest(page));
    frame.page("Policy", main)
}

fn in_force(page: &PolicyPage<'_>) -> El {
    let look = Look::at(page.in_force);
    let policies = look.list("policies").map(|policy| {
        el("tr")
            .with(el("td").with(name(policy.text("name"))))
            .with(el("td").text(policy.text("mode")))
            .with(el("td").with(hash(policy.text("digest"))))
    });
    let policies: Vec<El> = policies.collect();
    let table = match policies.is_empty() {
        true => el("p").text("No policies beside the manifest."),
        false => words::wide().with(
            words::table(
                "Policies beside the manifest",
                &["Policy", "Mode", "Digest"],
            )
            .with(el("tbody").each(policies)),
        ),
    };
    let kept = match look.text("kept_in") {
        "files" => "in files; SIGHUP reads them again".to_owned(),
        _ => match look.number("version") {
            Some(version) => format!("by the API, version {version}"),
            None => "by the API, no version yet".to_owned(),
        },
    };
    el("section")
        .attr("aria-label", "In force")
        .with(el("h2").text("In force"))
        .with(
            el("dl")
                .with(fact("All together", hash(look.text("digest"))))
                .maybe(
                    look.maybe_text("manifest_digest")
                        .map(|digest| fact("Manifest", hash(digest))),
                )
                .with(fact("Kept", Html::text(&kept)))
                .maybe(
                    look.is("observing")
                        .then(|| fact("Mode", el("b").text("observing: nothing is refused"))),
                ),
        )
        .with(table)
}

fn tests(page: &PolicyPage<'_>) -> El {
    let section = el("section")
        .id("tests")
        .attr("aria-label", "Tests")
        .with(el("h2").text("Tests"));
    let Some(report) = page.tests.map(Look::at) else {
        return section
            .with(el("p").text(
                "There are no policies beside the manifest. With them come tests: policies come into \
                 force only if theirs pass. To run them with coverage:",
            ))
            .with(command("countersign policy test policies/"));
    };
    let count = |member: &str| report.number(member).unwrap_or_default();
    let state = match (count("passed"), count("failed")) {
        (0, 0) => el("span").class("state wait").text("NO TESTS !"),
        (_, 0) => el("span").class("state ok").text("PASSED ✓"),
        _ => el("span").class("state bad").text("FAILED ✗"),
    };
    section
        .with(el("p").with(state).text(&format!(
            " {} passed, {} failed, just now",
            count("passed"),
            count("failed")
        )))
        .with(coverage(report))
        .maybe((count("passed") + count("failed") > 0).then(|| each_test(report)))
}

fn coverage(report: Look<'_>) -> El {
    let rows = report.list("files").map(|file| {
        let (covered, all) = (
            file.number("covered").unwrap_or_default(),
            file.number("lines").unwrap_or_default(),
        );
        let missed = file.list("missed").filter_map(|line| line.0?.as_u64());
        let missed: Vec<String> = missed.map(|line| line.to_string()).collect();
        el("tr")
            .with(el("td").with(name(file.text("name"))))
            .with(
                el("td")
                    .class("n")
                    .with(
                        el("meter")
                            .number("min", 0)
                            .number("max", all.max(1))
                            .number("value", covered)
                            .attr("aria-label", format!("{covered} of {all} lines covered")),
                    )
                    .text(&format!(" {covered} of {all} lines")),
            )
            .with(el("td").class("n").text(&match missed.is_empty() {
                true => "–".to_owned(),
                false => missed.join(", "),
            }))
    });
    words::wide().with(
        words::table("Coverage", &["File", "Covered", "Lines not reached"])
            .with(el("tbody").each(rows)),
    )
}

fn each_test(report: Look<'_>) -> El {
    let rows = report.list("tests").map(|test| {
        let state = match test.maybe_text("failure") {
            None => el("span").class("state ok").text("PASSED ✓"),
            Some(_) => el("span").class("state bad").text("FAILED ✗"),
        };
        el("tr")
            .with(
                el("td").with(name(test.text("name"))).maybe(
                    test.maybe_text("failure")
                        .map(|why| el("p").class("trouble").text(why)),
                ),
            )
            .with(el("td").with(state))
            .with(el("td").with(name(test.text("place"))))
    });
    let columns = ["Test", "State", "Where"];
    el("details")
        .flag("open", true)
        .with(el("summary").text("Each test"))
        .with(words::wide().with(words::table("Each test", &columns).with(el("tbody").each(rows))))
}

fn shadow(page: &PolicyPage<'_>) -> El {
    let rows = page.shadow.iter().map(|(policy, decided, would, count)| {
        el("tr")
            .with(el("td").with(name(policy)))
            .with(el("td").with(words::state(decided)))
            .with(el("td").with(words::state(would)))
            .with(el("td").class("n").text(&count.to_string()))
    });
    let body = match page.shadow.is_empty() {
        true => el("p").text(&format!(
            "No policy in the shadow would have decided otherwise in the newest {} decisions.",
            page.decisions
        )),
        false => words::wide().with(
            words::table(
                &format!("In the newest {} decisions", page.decisions),
                &["Policy", "Decided", "Would have", "Times"],
            )
            .with(el("tbody").each(rows)),
        ),
    };
    el("section")
        .id("shadow")
        .attr("aria-label", "Shadow")
        .with(el("h2").text("Shadow"))
        .with(body)
        .with(command("countersign serve --shadow new-policy.rego"))
}

fn tools(who: Option<&Who>, page: &PolicyPage<'_>) -> El {
    let section = el("section")
        .id("tools")
        .attr("aria-label", "Tools")
        .with(el("h2").text("Tools"));
    let tools: Vec<Look<'_>> = page
        .tools
        .map(Look::at)
        .into_iter()
        .flat_map(|tools| tools.list("tools"))
        .collect();
    if tools.is_empty() {
        return section
            .with(el("p").text(
                "No MCP server was seen yet. What a tool says about itself is pinned when it is first \
                 seen, and a change waits here:",
            ))
            .with(command("countersign mcp -- npx some-server"));
    }
    let rows = tools.iter().map(|tool| {
        let state = match tool.text("state") {
            "waiting" => el("span").class("state wait").text("CHANGED ⏸"),
            other => el("span").class("state ok").text(other),
        };
        let changes: Vec<El> = tool.list("changes").flat_map(change).collect();
        let flags = tool
            .texts("flags")
            .into_iter()
            .map(|flag| el("p").class("trouble").text(&format!("! {flag}")))
            .collect::<Vec<_>>();
        let accept = who
            .filter(|who| who.changes && tool.text("state") == "waiting")
            .map(|who| {
                let hidden = |name: &'static str, value: &str| {
                    el("input")
                        .attr("type", "hidden")
                        .attr("name", name)
                        .attr("value", value)
                };
                form(who, &Link::to(&["policy", "tools"]))
                    .with(hidden("server", tool.text("server")))
                    .with(hidden("tool", tool.text("tool")))
                    .with(hidden("digest", tool.text("digest")))
                    .with(el("button").text("Accept this definition"))
            });
        let diff = (!changes.is_empty()).then(|| {
            el("pre")
                .class("diff")
                .attr("tabindex", "0")
                .attr("role", "region")
                .attr("aria-label", "What changed")
                .each(changes)
        });
        el("tr")
            .with(el("td").with(name(tool.text("server"))))
            .with(el("td").with(name(tool.text("tool"))))
            .with(el("td").with(state))
            .with(el("td").with(hash(tool.text("digest"))))
            .with(el("td").each(flags).maybe(diff).maybe(accept))
    });
    section.with(
        words::wide().with(
            words::table(
                "What servers say their tools are",
                &["Server", "Tool", "State", "Digest", "What changed"],
            )
            .with(el("tbody").each(rows)),
        ),
    )
}

/// One member that is another one now: where it is, what it was, what it is.
fn change(change: Look<'_>) -> Vec<El> {
    let (before, after) = (change.maybe_text("before"), change.maybe_text("after"));
    let sign = match (before, after) {
        (None, _) => "+",
        (_, None) => "-",
        _ => "~",
    };
    let line = |sign: &str, text: &str| el("i").text(&format!("{sign} {text}")).lines("\n");
    let place = line(sign, change.text("pointer"));
    let before = before.map(|before| line("  -", before).class("gone"));
    let after = after.map(|after| line("  +", after).class("new"));
    [Some(place), before, after].into_iter().flatten().collect()
}

fn manifest(page: &PolicyPage<'_>) -> El {
    let section = el("section")
        .attr("aria-label", "Manifest")
        .with(el("h2").text("Manifest"));
    match page.manifest {
        None => section
            .with(el("p").text("There is no manifest, so every call is held. To begin with one:"))
            .with(command("countersign manifest init > manifest.yaml")),
        Some(manifest) => section.with(
            el("pre")
                .class("manifest")
                .attr("tabindex", "0")
                .attr("role", "region")
                .attr("aria-label", "The manifest in force")
                .lines(&pretty(manifest, 0)),
        ),
    }
}

/// JSON over several lines.
fn pretty(value: &Json, depth: usize) -> String {
    let (pad, end) = ("  ".repeat(depth + 1), "  ".repeat(depth));
    match value {
        Json::Object(members) if !members.is_empty() => {
            let lines: Vec<String> = members
                .iter()
                .map(|(name, value)| {
                    let name = Look::at(&Json::from(name)).json();
                    format!("{pad}{name}: {}", pretty(value, depth + 1))
                })
                .collect();
            format!("{{\n{}\n{end}}}", lines.join(",\n"))
        }
        Json::Array(values) if values.iter().any(|one| one.as_object().is_some()) => {
            let lines: Vec<String> = values
                .iter()
                .map(|value| format!("{pad}{}", pretty(value, depth + 1)))
                .collect();
            format!("[\n{}\n{end}]", lines.join(",\n"))
        }
        other => Look::at(other).json(),
    }
}
