//! What stands around every page.

use crate::asset;
use crate::html::{El, Html, Link, el};
use crate::words;

/// Who looks at the page, and what may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// What people call them.
    pub name: String,
    /// What they are here for.
    pub role: &'static str,
    /// The pages that they may see.
    pub tabs: Vec<Tab>,
    /// Whether they may hand in decisions.
    pub decides: bool,
    /// Whether they may change policies and accept tools.
    pub changes: bool,
    /// What a form must send along.
    pub csrf: String,
}

/// One of the five pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// What is held.
    Inbox,
    /// What agents did.
    Sessions,
    /// Every event.
    Log,
    /// What decides.
    Policy,
    /// How the daemon is.
    Health,
}

/// A page, and what stands around it.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Who looks; nobody at the door.
    pub who: Option<&'a Who>,
    /// Which page it is.
    pub here: Option<Tab>,
    /// When the page was made.
    pub now_unix_ms: u64,
    /// How many actions wait for somebody.
    pub waiting: Option<usize>,
    /// Which events make it new; none for a page that stays as it is.
    pub follows: Option<&'a str>,
}

/// What a page may load and where it may send: its own files, its own server, and nothing else.
pub const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

impl Tab {
    /// Every page.
    pub const ALL: [Self; 5] = [
        Self::Inbox,
        Self::Sessions,
        Self::Log,
        Self::Policy,
        Self::Health,
    ];

    /// Its name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Inbox => "Inbox",
            Self::Sessions => "Sessions",
            Self::Log => "Log",
            Self::Policy => "Policy",
            Self::Health => "Health",
        }
    }

    /// Where it is.
    pub fn link(self) -> Link {
        Link::to(&[match self {
            Self::Inbox => "inbox",
            Self::Sessions => "sessions",
            Self::Log => "log",
            Self::Policy => "policy",
            Self::Health => "health",
        }])
    }
}

impl Frame<'_> {
    /// The whole document.
    pub fn page(&self, title: &str, main: impl Into<Html>) -> Html {
        let waits = self.waiting.filter(|count| *count > 0);
        let badge = waits.map_or(String::new(), |count| format!("({count}) "));
        let head = el("head")
            .with(el("meta").attr("charset", "utf-8"))
            .with(
                el("meta")
                    .attr("name", "viewport")
                    .attr("content", "width=device-width, initial-scale=1"),
            )
            .with(
                el("meta")
                    .attr("name", "color-scheme")
                    .attr("content", "light dark"),
            )
            .with(el("title").text(&format!("{badge}{title} · Countersign")))
            .with(
                el("link")
                    .attr("rel", "icon")
                    .attr("type", "image/svg+xml")
                    .link(&asset::link("icon.svg")),
            )
            .with(
                el("link")
                    .attr("rel", "stylesheet")
                    .link(&asset::link("console.css")),
            )
            .each(
                ["sign.js", "console.js"]
                    .map(|name| el("script").attr("type", "module").link(&asset::link(name))),
            );
        let main = el("main")
            .id("main")
            .attr("tabindex", "-1")
            .with(main.into());
        let csrf = self.who.map(|who| who.csrf.as_str()).unwrap_or_default();
        let mut body = el("body")
            .number("data-now", self.now_unix_ms)
            .attr("data-csrf", csrf);
        if let Some(follows) = self.follows {
            body = body.attr("data-follows", follows);
        }
        let skip = el("a")
            .class("skip")
            .link(&Link::here("main"))
            .text("Skip to the page");
        let body = body
            .maybe(self.who.map(|_| skip))
            .maybe(self.who.map(|who| self.header(who)))
            .with(main)
            .with(
                el("p")
                    .id("said")
                    .class("said")
                    .attr("role", "status")
                    .attr("aria-live", "polite"),
            );
        let html = el("html").attr("lang", "en").with(head).with(body).html();
        Html::document(html)
    }

    fn header(&self, who: &Who) -> El {
        let tabs = who.tabs.iter().map(|tab| {
            let is_here = self.here == Some(*tab);
            let mut link = el("a").link(&tab.link()).text(tab.title());
            if is_here {
                link = link.attr("aria-current", "page");
            }
            if let (Tab::Inbox, Some(count)) = (tab, self.waiting.filter(|count| *count > 0)) {
                let count = count.to_string();
                link = link.with(el("span").class("badge").text(&count));
            }
            el("li").with(link)
        });
        el("header")
            .class("bar")
            .with(
                el("a")
                    .class("mark")
                    .link(&Link::to(&[]))
                    .with(
                        el("img")
                            .link(&asset::link("icon.svg"))
                            .attr("alt", "")
                            .number("width", 20)
                            .number("height", 20),
                    )
                    .text(" Countersign"),
            )
            .with(
                el("nav")
                    .attr("aria-label", "Pages")
                    .with(el("ul").id("tabs").attr("data-live", "").each(tabs)),
            )
            .with(
                el("div")
                    .class("who")
                    .with(
                        el("span")
                            .id("line")
                            .class("line")
                            .attr("hidden", "")
                            .text("live"),
                    )
                    .with(
                        el("span")
                            .class("name")
                            .with(words::name(&who.name))
                            .text(&format!(" · {}", who.role)),
                    )
                    .with(
                        el("button")
                            .attr("type", "button")
                            .id("theme")
                            .class("plain")
                            .attr("hidden", "")
                            .text("Theme"),
                    )
                    .with(
                        form(who, &Link::to(&["logout"]))
                            .with(el("button").class("plain").text("Leave")),
                    ),
            )
    }
}

/// A form that shows that its page is ours.
pub(crate) fn form(who: &Who, to: &Link) -> El {
    el("form").attr("method", "post").link(to).with(
        el("input")
            .attr("type", "hidden")
            .attr("name", "csrf")
            .attr("value", &who.csrf),
    )
}
