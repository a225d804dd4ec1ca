//! Every page, with the permission that it needs.

use super::table::{CURSOR, TENANT, get, parameter};
use super::{Endpoint, Parameter, Route, Verb};
use crate::role::Permission;
use crate::shape::Shape;

/// A page, or something that a page does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    Home,
    Enter,
    SignIn,
    SignedIn,
    Leave,
    Asset,
    Inbox,
    Card,
    Edit,
    Lease,
    Sessions,
    Session,
    Pack,
    Log,
    Policy,
    AcceptTool,
    Backtest,
    Replay,
    Health,
}

const fn page(
    path: &'static str,
    permission: Permission,
    page: Page,
    query: &'static [Parameter],
    summary: &'static str,
) -> Route {
    Route {
        query,
        answer: (200, None),
        ..get(path, permission, Endpoint::Page(page), summary, Shape::Map)
    }
}

const fn form(
    path: &'static str,
    permission: Permission,
    what: Page,
    max_body: usize,
    summary: &'static str,
) -> Route {
    Route {
        method: Verb::Post,
        max_body,
        answer: (303, None),
        ..page(path, permission, what, &[], summary)
    }
}

const QUERY: Parameter = parameter("q", "Words such as `decision:deny tool:mcp.* since:1h`");

#[rustfmt::skip]
pub(super) const ROUTES: &[Route] = &[
    page("/", Permission::Look, Page::Home, &[], "The page to begin with"),
    form("/login", Permission::Enter, Page::Enter, 64 << 10, "Let a browser in with a token"),
    page("/login/issuer", Permission::Enter, Page::SignIn, &[
        parameter("next", "The page to see afterwards"),
    ], "Sign in at the issuer"),
    Route {
        // The issuer may say more than anybody asked for.
        takes_any_query: true,
        ..page("/login/back", Permission::Enter, Page::SignedIn, &[
            parameter("code", "What the issuer gives for a token"),
            parameter("state", "Which browser it is for"),
            parameter("iss", "Who says so"),
            parameter("error", "Why there is no code"),
        ], "Back from the issuer")
    },
    form("/logout", Permission::Look, Page::Leave, 4 << 10, "Let a browser go"),
    page("/assets/{name}", Permission::Knock, Page::Asset, &[], "The files that pages load"),
    page("/inbox", Permission::ReadApprovals, Page::Inbox, &[], "What is held"),
    page("/inbox/{approval}", Permission::ReadApprovals, Page::Card, &[], "One request"),
    form("/inbox/{approval}/edit", Permission::Decide, Page::Edit, 5 << 20, "Ask for other arguments"),
    page("/inbox/{approval}/lease", Permission::Decide, Page::Lease, &[
        parameter("uses", "How often"),
        parameter("within", "How long"),
        parameter("arguments", "What each argument may be, a line each"),
        parameter("budget", "The largest sum of one argument"),
    ], "What a lease would cover"),
    page("/sessions", Permission::ReadSessions, Page::Sessions, &[QUERY, CURSOR], "What agents did"),
    page("/sessions/{session}", Permission::ReadSessions, Page::Session, &[
        TENANT,
        CURSOR,
        parameter("view", "`compact`, `timeline` or `raw`"),
        parameter("seq", "One event"),
        parameter("verify", "Check it now"),
    ], "One session"),
    page("/sessions/{session}/pack", Permission::ReadPolicy, Page::Pack, &[TENANT], "A pack of evidence"),
    page("/log", Permission::ReadSessions, Page::Log, &[QUERY], "Every event"),
    page("/policy", Permission::ReadPolicy, Page::Policy, &[], "What decides"),
    form("/policy/tools", Permission::ChangePolicy, Page::AcceptTool, 64 << 10, "Accept what a tool says it is"),
    form("/policy/backtest", Permission::ChangePolicy, Page::Backtest, 2 << 20, "Try a policy on what was recorded"),
    form("/policy/replay", Permission::ChangePolicy, Page::Replay, 64 << 10, "Decide a recorded session again"),
    page("/health", Permission::ReadMetrics, Page::Health, &[], "How the daemon is"),
];
