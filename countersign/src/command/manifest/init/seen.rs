//! The manifest of an MCP server whose tools were seen.

use countersign_canon::Json;
use countersign_event::FETCHING;
use countersign_mcp::tools::Book;

use super::proposal::{commented, plain};

/// Tools that only read, as somebody has said, may run; every other one is left to a human.
pub(super) fn manifest(book: &Book) -> Json {
    let read = || Json::object([("side_effect", Json::from("read"))]);
    let fetched = FETCHING.into_iter().map(|name| (name.to_owned(), read()));
    let tools = book.pins().iter().map(|(name, pin)| {
        let effect = match pin.reads {
            true => [("side_effect", Json::from("read"))].to_vec(),
            false => [
                ("approval", Json::from("required")),
                ("side_effect", Json::from("mutate-external")),
            ]
            .to_vec(),
        };
        let which = [
            ("definition", Json::from(pin.digest.to_string())),
            ("server", Json::from(book.server())),
        ];
        let members = effect.into_iter().chain(which);
        (name.clone(), Json::object(members))
    });
    let budgets = BUDGETS.map(|(name, limit)| (name, Json::from(limit)));
    Json::object([
        ("schema", Json::from("countersign/manifest/v1")),
        ("name", Json::from(plain(book.server(), "server"))),
        ("version", Json::from("0.0.1")),
        ("publisher", Json::from("unknown")),
        (
            "permissions",
            Json::object([
                ("budgets", Json::object(budgets)),
                ("tools", Json::object(fetched.chain(tools))),
            ]),
        ),
        (
            "loops",
            Json::object([("identical_calls", Json::from(SAME_AGAIN))]),
        ),
    ])
}

pub(super) fn text(book: &Book, manifest: &Json) -> String {
    let pins = book.pins();
    let reading = pins.values().filter(|pin| pin.reads).count();
    let mut comments = vec![
        format!(
            "The tools of the MCP server {}, as they were seen. Read it before you rely on it.",
            book.server()
        ),
        format!(
            "{} tools, {reading} of which only read, as somebody has said; the others wait for a human.",
            pins.len()
        ),
        "`resources/read` and `prompts/get` fetch what the server has; take them out if the agent may not."
            .to_owned(),
    ];
    let waiting = book.proposed().len();
    if waiting > 0 {
        comments.push(format!(
            "{waiting} definitions wait to be looked at and are not here: `countersign tools review`."
        ));
    }
    commented(&comments, manifest)
}

/// Enough for a day with an agent.
const BUDGETS: [(&str, u64); 3] = [
    ("max_tool_calls", 500),
    ("max_steps", 1_000),
    ("max_wall_time_ms", 8 * 3_600_000),
];
/// So often an agent makes a call before it goes in circles: files are read again after they were changed.
const SAME_AGAIN: u64 = 10;
