//! The door, and what is shown when something is not there or not allowed.

use crate::frame::{Frame, Who};
use crate::html::{Html, Link, el};
use crate::words;

/// The page at the door. Who runs an issuer signs in there.
pub fn login(
    frame: &Frame<'_>,
    trouble: Option<&str>,
    next: Option<&str>,
    issuer: Option<&str>,
) -> Html {
    let sign_in = issuer.map(|issuer| {
        let place = Link::to(&["login", "issuer"]).maybe("next", next);
        let name = issuer.split_once("://").map_or(issuer, |(_, rest)| rest);
        let name = name.trim_end_matches('/');
        el("div")
            .class("door")
            .with(
                el("a")
                    .class("button main")
                    .id("sign-in")
                    .link(&place)
                    .text("Sign in at ")
                    .with(Html::name(name)),
            )
            .with(el("p").class("note").text("Or with a token:"))
    });
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
                .flag("autofocus", issuer.is_none()),
        )
        .with(el("button").class("main").text("Come in"));
    let main = el("div")
        .class("narrow")
        .with(el("h1").text("Countersign"))
        .maybe(trouble.map(|text| el("p").class("trouble").attr("role", "alert").text(text)))
        .maybe(sign_in)
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

/// What somebody sees who has signed in at the issuer, until the browser goes on.
pub fn came_in(frame: &Frame<'_>, name: &str, next: &Link) -> Html {
    let main = el("div")
        .class("narrow")
        .with(el("h1").text("You are in"))
        .with(el("p").text("The issuer names you ").with(Html::name(name)))
        .with(el("p").with(el("a").link(next).text("Go on")));
    frame.page("You are in", main)
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
