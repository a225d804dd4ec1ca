//! The pages that people see in a browser.
//!
//! A page is a function: answers of the API in, HTML out. There is no clock, no file, no network and no
//! state here; whoever serves a page says what time it is and who looks at it. Text gets into a page in
//! one way only ([`El::text`]), which escapes it and writes out every character that would not show as
//! itself, and a link leads nowhere but into this server ([`Link`]). Plans are shown by the lines of
//! `countersign_display`, one-to-one, because their hash is what an approver signs.
//!
//! ```
//! use countersign_console::{Link, el};
//!
//! let html = el("a").link(&Link::to(&["sessions", "a/b"])).text("<b>\u{202e}").html();
//! assert_eq!(html.as_str(), "<a href=\"/sessions/a%2Fb\">&lt;b&gt;⟨U+202E⟩</a>");
//! ```
#![forbid(unsafe_code)]

mod asset;
mod card;
mod chart;
mod frame;
mod graph;
mod health;
mod html;
mod inbox;
mod lease;
mod log;
mod look;
mod plan;
mod policy;
mod session;
mod sessions;
mod timeline;
mod trouble;
mod words;

pub use asset::{Asset, asset};
pub use card::Card;
pub use frame::{CSP, Frame, Tab, Who};
pub use health::{Door, Figures, Health, Reach, health};
pub use html::{El, Html, Link, el};
pub use inbox::{Inbox, inbox};
pub use lease::{Lease, lease};
pub use log::{Found, LogPage, log};
pub use policy::{PolicyPage, policy};
pub use session::{SessionPage, View, event, session};
pub use sessions::{SessionsPage, sessions};
pub use trouble::{came_in, login, trouble};
