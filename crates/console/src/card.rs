//! One request: everything that a decision needs, and the choices.

use countersign_canon::Json;
use countersign_display::{AgentSays, Sheet, View};

use crate::frame::{Frame, Who, form};
use crate::html::{El, Html, Link, el};
use crate::lease::lease_form;
use crate::look::{Look, parsed};
use crate::plan::{arguments, pieces, what};
use crate::words::{self, clock, command, fact, hash, name, state, until};

/// A request, as it stands.
#[derive(Debug)]
pub struct Card<'a> {
    /// What the API answers.
    pub json: &'a Json,
    /// The lines that approvers sign.
    pub sheet: &'a Sheet,
    /// What has to be given back to approve it.
    pub code: &'a str,
    /// The decision that held it, as it is recorded.
    pub decision: Option<&'a Json>,
    /// What happened before it in its session, oldest first.
    pub before: &'a [Json],
    /// The state of its session.
    pub snapshot: Option<&'a Json>,
    /// Who may decide, with their keys.
    pub people: &'a Json,
    /// What went wrong with what was asked for last.
    pub trouble: Option<&'a str>,
}

impl<'a> Card<'a> {
    pub(crate) fn id(&self) -> &'a str {
        Look::at(self.json).text("approval_id")
    }
}

pub(crate) fn card(frame: &Frame<'_>, card: &Card<'_>) -> El {
    let look = Look::at(card.json);
    let envelope = parsed(look.text("envelope"));
    let plan = Look::at(&envelope);
    let now = frame.now_unix_ms;
    let votes = look.list("votes").count();
    let standing = format!("{} {votes}", look.text("state"));
    let is_open = look.text("state") == "pending";
    let who = frame.who.filter(|who| who.decides && is_open);
    el("article")
        .id("card")
        .class("card")
        .attr("data-live", "")
        .attr("data-standing", standing)
        .attr("data-approval", card.id())
        .attr("data-display", look.text("display_sha256"))
        .attr("data-people", Look::at(card.people).json())
        .maybe(
            card.trouble
                .map(|text| el("p").class("trouble").attr("role", "alert").text(text)),
        )
        .with(
            el("p")
                .class("top")
                .with(state(look.text("state")))
                .text(" ")
                .with(outcome(look)),
        )
        .with(el("h2").class("sentence").with(sentence(look, plan)))
        .with(arguments(plan))
        .with(why(card, look))
        .with(what(card.code, card.sheet, look))
        .maybe(who.map(|who| choices(who, card, look, plan)))
        .maybe((is_open && who.is_none()).then(|| {
            el("p")
                .class("note")
                .text("Your role may look at this, and not decide it.")
        }))
        .with(
            el("div")
                .class("facts")
                .with(touches(look, plan))
                .with(times(look, plan, now))
                .with(people(look, plan))
                .with(before(card, look)),
        )
        .maybe(said(plan))
        .with(in_terminal(card, look))
}

/// One plain sentence.
fn sentence(look: Look<'_>, plan: Look<'_>) -> Html {
    let lineage = plan.texts("lineage");
    let asks = bare(lineage.last().copied().unwrap_or("somebody"));
    let person = bare(lineage.first().copied().unwrap_or("somebody"));
    let calls: Vec<&str> = look.texts("tools");
    let server = plan
        .list("plan.tool_calls")
        .find_map(|call| call.maybe_text("server"));
    let mut pieces = vec![el("b").with(name(asks)).html()];
    if lineage.len() > 1 {
        pieces.push(Html::text(" for "));
        pieces.push(el("b").with(name(person)).html());
    }
    pieces.push(Html::text(" wants to run "));
    pieces.push(el("b").with(name(&calls.join(", "))).html());
    if let Some(server) = server {
        pieces.push(Html::text(" of "));
        pieces.push(el("b").with(name(server)).html());
    }
    if look.is("irreversible") {
        pieces.push(Html::text(", which cannot be undone"));
    }
    pieces.into_iter().collect()
}

fn bare(principal: &str) -> &str {
    principal
        .split_once(':')
        .map_or(principal, |(_, name)| name)
}

/// Who decided, and when.
fn outcome(look: Look<'_>) -> Html {
    let votes = look.list("votes").map(|vote| {
        let word = match vote.is("approved") {
            true => "approved by ",
            false => "denied by ",
        };
        let reason = vote.maybe_text("reason").map(|reason| {
            el("span")
                .class("reason")
                .text(" “")
                .with(name(reason))
                .text("”")
        });
        el("span")
            .class("vote")
            .text(word)
            .with(el("b").with(name(vote.text("approver"))))
            .text(" ")
            .with(words::time(vote.number("at_ms").unwrap_or_default()))
            .maybe(reason)
            .text(" ")
            .html()
    });
    votes.collect()
}

fn why(card: &Card<'_>, look: Look<'_>) -> El {
    let decision = Look(card.decision).get("payload");
    let reason = look.maybe_text("why").unwrap_or("not recorded");
    let codes = decision.texts("reason_codes").join(", ");
    let session = words::session(look.text("tenant_id"), look.text("session_id"));
    let seq = Look(card.decision).number("seq");
    let details = [
        ("Rule", decision.text("policy_ref")),
        ("Policies said", &codes),
        ("Effect", decision.text("side_effect")),
        ("Point", decision.text("intervention_point")),
    ];
    let details = details
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(term, value)| fact(term, name(value)));
    let decided = seq.map(|seq| {
        let link = session.clone().with("seq", &seq.to_string());
        fact(
            "Decided",
            el("a")
                .link(&link)
                .text(&format!("event {seq} of the session")),
        )
    });
    let policies = decision
        .maybe_text("policy_digest")
        .map(|digest| fact("Policies", hash(digest)));
    el("section")
        .attr("aria-label", "Why it was held")
        .class("why")
        .with(
            el("p")
                .text("Held: ")
                .with(el("b").class("mono").with(name(reason))),
        )
        .with(el("dl").each(details).maybe(policies).maybe(decided))
}

fn touches(look: Look<'_>, plan: Look<'_>) -> El {
    let calls = plan.list("plan.tool_calls").map(|call| {
        let undo = match call.is("irreversible") {
            true => "cannot be undone",
            false => "can be undone",
        };
        let server = call.maybe_text("server").unwrap_or("no server");
        el("li")
            .with(el("b").with(name(call.text("tool_name"))))
            .text(&format!(": {}, {undo}, ", call.text("side_effect_class")))
            .with(name(server))
    });
    let scope = plan.get("plan.scope");
    let guarded = plan.list("plan.preconditions").take(MOST).map(|one| {
        match (one.text("kind"), one.text("subject")) {
            ("resource", "command") => el("li")
                .text("runs the command ")
                .with(el("b").class("mono").with(name(one.text("fingerprint")))),
            (kind, subject) => el("li")
                .text(&format!("{kind} must not change: "))
                .with(name(subject)),
        }
    });
    let session = words::session(look.text("tenant_id"), look.text("session_id"));
    el("section")
        .attr("aria-label", "What it can touch")
        .with(el("h3").text("What it can touch"))
        .with(el("ul").each(calls).each(guarded))
        .with(
            el("dl")
                .with(fact("Folder", name(scope.text("workspace_root"))))
                .with(fact("Trust", Html::text(scope.text("trust"))))
                .with(fact(
                    "Session",
                    el("a")
                        .link(&session)
                        .with(name(look.text("tenant_id")))
                        .text(" / ")
                        .with(name(look.text("session_id"))),
                )),
        )
}

fn times(look: Look<'_>, plan: Look<'_>, now: u64) -> El {
    let decide = match look.number("decide_by_ms") {
        Some(end) => el("span").text(&clock(end)).text(" ").with(until(end, now)),
        None => el("span").text("when you can: it waits"),
    };
    let execute = match (look.number("execute_by_ms"), plan.number("execute_by_ms")) {
        (Some(end), _) | (None, Some(end)) => {
            el("span").text(&clock(end)).text(" ").with(until(end, now))
        }
        (None, None) => {
            let within = plan.number("execute_within_ms").unwrap_or_default();
            let text = format!("within {} of the approval", words::duration(within));
            el("span").text(&text)
        }
    };
    el("section")
        .attr("aria-label", "Clocks")
        .with(el("h3").text("Clocks"))
        .with(
            el("dl")
                .with(fact(
                    "Asked",
                    words::time(look.number("issued_at_ms").unwrap_or_default()),
                ))
                .with(fact("Decide by", decide))
                .with(fact("Execute by", execute)),
        )
}

fn people(look: Look<'_>, plan: Look<'_>) -> El {
    let required = look.number("required").unwrap_or(1);
    let so_far = look
        .list("votes")
        .filter(|vote| vote.is("approved"))
        .count();
    let deny = match plan.text("quorum.deny") {
        "veto" => "one denial is enough",
        _ => "denials can be outvoted",
    };
    let roster = plan.texts("quorum.roster").join(", ");
    let lineage = plan.texts("lineage").join(" ▸ ");
    let edited = plan.maybe_text("supersedes").map(|id| {
        fact(
            "Edited from",
            el("a").link(&Link::to(&["inbox", id])).text(id),
        )
    });
    let again = plan
        .maybe_text("parent_action_id")
        .map(|id| fact("Takes up", Html::text(id)));
    el("section")
        .attr("aria-label", "People")
        .with(el("h3").text("People"))
        .with(
            el("dl")
                .with(fact(
                    "Quorum",
                    Html::text(&format!("{so_far} of {required} approvals; {deny}")),
                ))
                .with(fact("May decide", name(&roster)))
                .with(fact("Lineage", name(&lineage)))
                .maybe(edited)
                .maybe(again),
        )
}

/// What happened before, and what the session has taken in.
fn before(card: &Card<'_>, look: Look<'_>) -> El {
    let events = card.before.iter().map(|event| {
        let event = Look::at(event);
        let payload = event.get("payload");
        let word = ["outcome", "tool_name", "reason_code", "code", "memory_key"]
            .iter()
            .find_map(|member| payload.maybe_text(member));
        el("li")
            .text(&format!("{} ", event.number("seq").unwrap_or_default()))
            .with(el("span").class("mono").text(event.text("event_type")))
            .text(" ")
            .with(name(word.unwrap_or("")))
    });
    let sources = Look(card.snapshot).list("snapshot.taint").map(|source| {
        let label = source.text("label");
        let from = source.maybe_text("name").unwrap_or(label);
        let first = source.number("first_seq").unwrap_or_default();
        let count = source.number("count").unwrap_or_default();
        el("li").with(el("b").with(name(from))).text(&format!(
            " ({label}), first at event {first}, {count} in all"
        ))
    });
    let sources: Vec<El> = sources.collect();
    let taint = match sources.is_empty() {
        true => el("p").text("Nothing untrusted was taken in."),
        false => el("ul").each(sources),
    };
    el("section")
        .attr("aria-label", "The session so far")
        .with(el("h3").text("Before, in this session"))
        .with(el("ol").class("tight").each(events))
        .with(
            el("p").with(
                el("a")
                    .link(&words::session(
                        look.text("tenant_id"),
                        look.text("session_id"),
                    ))
                    .text("The whole session"),
            ),
        )
        .with(el("h3").text("Untrusted content"))
        .with(taint)
}

fn said(plan: Look<'_>) -> Option<El> {
    let said = AgentSays::of(plan.maybe_text("agent_says")?, View::Full);
    let pre = el("pre")
        .class("plan says")
        .attr("tabindex", "0")
        .attr("role", "region")
        .attr("aria-label", "What the agent says; nobody has checked it")
        .each(pieces(said.sheet().lines()));
    Some(el("section").attr("aria-label", "The agent says").with(pre))
}

fn choices(who: &Who, card: &Card<'_>, look: Look<'_>, plan: Look<'_>) -> El {
    let id = card.id();
    let is_final = look.is("irreversible");
    let typed = is_final.then(|| {
        el("p")
            .with(
                el("label")
                    .attr("for", "typed")
                    .text("This cannot be undone. Type the code above to approve: "),
            )
            .with(
                el("input")
                    .id("typed")
                    .class("mono")
                    .attr("autocomplete", "off")
                    .attr("spellcheck", "false")
                    .attr("maxlength", "16"),
            )
    });
    let approve = el("div").class("choice").maybe(typed).with(
        el("button")
            .attr("type", "button")
            .id("approve")
            .class("main")
            .attr("data-vote", "approved")
            .attr("data-code", if is_final { card.code } else { "" })
            .flag("disabled", true)
            .text("Approve once"),
    );
    let deny = el("form")
        .class("choice")
        .id("denial")
        .with(
            el("label")
                .attr("for", "reason")
                .text("Reason, which the agent is told"),
        )
        .with(
            el("input")
                .id("reason")
                .attr("maxlength", "2000")
                .attr("autocomplete", "off"),
        )
        .with(
            el("button")
                .id("deny")
                .class("danger")
                .attr("data-vote", "denied")
                .flag("disabled", true)
                .text("Deny"),
        );
    let args = plan.list("plan.tool_calls").next();
    let args = args.map(|call| call.get("args").json()).unwrap_or_default();
    let edit = el("details")
        .id("edit")
        .with(el("summary").text("Edit: ask for the same call with other arguments"))
        .with(
            form(who, &Link::to(&["inbox", id, "edit"]))
                .with(el("label").attr("for", "args").text("Arguments, as JSON"))
                .with(
                    el("textarea")
                        .id("args")
                        .attr("name", "args")
                        .attr("rows", "6")
                        .class("mono")
                        .attr("spellcheck", "false")
                        .text(&args),
                )
                .with(el("label").attr("for", "edit-reason").text("Reason"))
                .with(el("input").id("edit-reason").attr("name", "reason"))
                .with(el("p").text(
                    "The policies judge it again, and people decide it from the start. This request is \
                     superseded.",
                ))
                .with(el("button").text("Ask for this instead")),
        );
    let is_one = plan.list("plan.tool_calls").count() == 1 && !is_final;
    let lease = is_one.then(|| lease_form(id, plan, &[], false));
    el("section")
        .id("choices")
        .class("choices")
        .attr("aria-label", "Decide")
        .with(
            el("div")
                .id("keyring")
                .class("keyring")
                .with(el("p").id("key-state").text(
                    "Decisions are signed with your own key, in this browser. Without scripts, decide in \
                     a terminal, as shown below.",
                ))
                .with(
                    el("div")
                        .id("key-tools")
                        .attr("hidden", "")
                        .with(
                            el("label")
                                .class("file")
                                .text("Use a key file ")
                                .with(el("input").attr("type", "file").id("key-file")),
                        )
                        .with(
                            el("button")
                                .attr("type", "button")
                                .id("key-new")
                                .text("Make a key in this browser"),
                        )
                        .with(
                            el("button")
                                .attr("type", "button")
                                .id("key-forget")
                                .text("Forget the key"),
                        ),
                ),
        )
        .with(el("div").class("buttons").with(approve).with(deny))
        .with(edit)
        .maybe(lease)
}

fn in_terminal(card: &Card<'_>, look: Look<'_>) -> El {
    let (id, code) = (card.id(), card.code);
    let line = match look.text("state") {
        "pending" => format!("countersign approval approve {id} --code {code}"),
        _ => format!("countersign approval show {id}"),
    };
    el("section")
        .attr("aria-label", "In a terminal")
        .class("terminal")
        .with(el("h3").text("In a terminal"))
        .with(command(&line))
}

const MOST: usize = 50;
