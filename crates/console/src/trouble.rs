//! The door, and what is shown when something is not there or not allowed.

use crate::frame::{Frame, Who};
use crate::html::{Html, Link, el};
use crate::words;

/// The page at the door.
pub fn login(frame: &Frame<'_>, trouble: Option<&str>, next: Option<&str>) -> Html {
    let form = el("form")
        .attr("method", "post")
        .link(&Link::to(&["login"]))
        .class("door")
        .maybe(next.map(|next| {
            el("input")
                .attr("type", "hidden")
                .attr("name", "next")
                .attr("value", next)
        }))
        .with(
            el("label")
                .attr("for", "token")
                .text("Token, or a signed token of your organisation (JWT)"),
        )
        .with(
            el("input")
                .id("token")
                .attr("name", "token")
                .attr("type", "password")
                .attr("autocomplete", "off")
                .attr("spellcheck", "false")
                .flag("required", true)
                .flag("autofocus", true),
        )
        .with(el("button").class("main").text("Come in"));
    let main = el("div")
        .class("narrow")
        .with(el("h1").text("Countersign"))
        .maybe(trouble.map(|text| el("p").class("trouble").attr("role", "alert").text(text)))
        .with(form)
        .with(el("p").text(
            "Whoever runs the daemon finds a link that lets one browser in, once, in what it prints when \
             it starts. A token for somebody else is made with:",
        ))
        .with(words::command(
            "countersign token create --role approver --tenant default --name NAME",
        ));
    frame.page("Come in", main)
}

/// What is shown instead of a page.
pub fn trouble(frame: &Frame<'_>, code: &str, title: &str, detail: &str) -> Html {
    let back = match frame.who {
        Some(Who { tabs, .. }) => tabs.first().map(|tab| tab.link()),
        None => None,
    };
    let main = el("div")
        .class("narrow")
        .with(el("h1").text(title))
        .with(el("p").class("trouble").attr("role", "alert").text(detail))
        .with(el("p").text("What this code means is told by:"))
        .with(words::command(&format!("countersign explain {code}")))
        .maybe(back.map(|link| el("p").with(el("a").link(&link).text("Back to the pages"))));
    frame.page(title, main)
}
