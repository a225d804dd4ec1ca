//! Leases: what one would cover, before anybody signs it.

use countersign_canon::Json;

use crate::frame::Frame;
use crate::html::{El, Html, Link, el};
use crate::look::{Look, parsed};
use crate::words::{self, name};

/// A lease that nobody has signed yet.
#[derive(Debug)]
pub struct Lease<'a> {
    /// The request that it is modelled on.
    pub json: &'a Json,
    /// The text that a signature covers, if it can be granted; its grantor and key are filled in by
    /// whoever signs.
    pub text: Option<&'a str>,
    /// Its terms in words.
    pub terms: &'a [String],
    /// Past requests, and why they would not have been covered.
    pub past: &'a [(String, Option<String>)],
    /// Why it cannot be granted.
    pub trouble: Option<&'a str>,
    /// What was asked for.
    pub asked: &'a [(String, String)],
    /// Who may grant, with their keys.
    pub people: &'a Json,
}

/// What a lease would be; asking shows what it covers and grants nothing.
pub(crate) fn lease_form(
    id: &str,
    plan: Look<'_>,
    asked: &[(String, String)],
    is_open: bool,
) -> El {
    let value = |name: &str, other: &str| {
        let found = asked.iter().find(|(known, _)| known == name);
        found.map_or(other.to_owned(), |(_, value)| value.clone())
    };
    let field = |name: &'static str, label: &str, other: &str| {
        el("p")
            .with(el("label").attr("for", format!("lease-{name}")).text(label))
            .with(
                el("input")
                    .id(&format!("lease-{name}"))
                    .attr("name", name)
                    .attr("autocomplete", "off")
                    .attr("value", value(name, other)),
            )
    };
    let call = plan.list("plan.tool_calls").next().unwrap_or(Look(None));
    let rules: Vec<String> = call
        .members("args")
        .map(|(name, value)| format!("{name}=exact:{}", value.json()))
        .collect();
    let rules = value("arguments", &rules.join("\n"));
    el("details")
        .id("lease")
        .flag("open", is_open)
        .with(el("summary").text("Lease: approve calls like this ahead of time"))
        .with(
            el("form")
                .attr("method", "get")
                .link(&Link::to(&["inbox", id, "lease"]))
                .with(field("uses", "Uses, at most", "3"))
                .with(field("within", "For how long", "30m"))
                .with(
                    el("label")
                        .attr("for", "lease-arguments")
                        .text("What each argument may be, a line each: NAME=KIND:VALUE"),
                )
                .with(
                    el("textarea")
                        .id("lease-arguments")
                        .attr("name", "arguments")
                        .attr("rows", "4")
                        .class("mono")
                        .attr("spellcheck", "false")
                        .lines(&rules),
                )
                .with(el("p").class("quiet").text(
                    "exact:JSON, one_of:[JSON,…], range:MIN..MAX, path_under:/PATH, host_in:HOST,…, \
                     prefix:TEXT, or NAME=absent",
                ))
                .with(field("budget", "Largest sum of one argument: NAME=LIMIT", ""))
                .with(el("button").text("Show what it would cover")),
        )
}

/// The page of a lease that can be granted.
pub fn lease(frame: &Frame<'_>, lease: &Lease<'_>) -> Html {
    let look = Look::at(lease.json);
    let id = look.text("approval_id");
    let envelope = parsed(look.text("envelope"));
    let covered = lease.past.iter().filter(|(_, why)| why.is_none()).count();
    let past = lease.past.iter().map(|(id, why)| {
        let covers = match why {
            None => el("td").with(el("span").class("state ok").text("covered ✓")),
            Some(why) => el("td")
                .with(el("span").class("state off").text("not covered ✗"))
                .text(" ")
                .with(name(why)),
        };
        el("tr")
            .with(el("td").with(el("a").link(&Link::to(&["inbox", id])).text(id)))
            .with(covers)
    });
    let grant = lease.text.map(|text| {
        el("section")
            .id("choices")
            .class("choices")
            .attr("aria-label", "Grant")
            .with(el("pre").id("lease-text").attr("hidden", "").text(text))
            .with(
                el("p")
                    .id("key-state")
                    .text("A lease is signed with your own key, in this browser."),
            )
            .with(
                el("button")
                    .attr("type", "button")
                    .id("grant")
                    .class("main")
                    .flag("disabled", true)
                    .text("Grant this lease"),
            )
    });
    let terms = lease.terms.iter().map(|line| el("li").shown(line));
    let main = el("div")
        .class("narrow")
        .id("card")
        .attr("data-people", Look::at(lease.people).json())
        .attr("data-approval", id)
        .with(el("h1").text("A lease, not granted yet"))
        .maybe(
            lease
                .trouble
                .map(|text| el("p").class("trouble").attr("role", "alert").text(text)),
        )
        .maybe((!lease.terms.is_empty()).then(|| el("ul").each(terms)))
        .maybe(lease.text.map(|_| {
            let count = lease.past.len();
            el("h2").text(&format!(
                "It would have answered {covered} of {count} past requests of the session"
            ))
        }))
        .maybe((!lease.past.is_empty()).then(|| {
            words::table("Past requests", &["Request", "Covered"]).with(el("tbody").each(past))
        }))
        .maybe(grant)
        .with(lease_form(id, Look::at(&envelope), lease.asked, true))
        .with(
            el("p").with(
                el("a")
                    .link(&Link::to(&["inbox", id]))
                    .text("Back to the request"),
            ),
        );
    frame.page("Lease", main)
}
