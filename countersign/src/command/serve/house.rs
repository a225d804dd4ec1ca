//! What the console shows that only the whole program knows: packs, tools, tests of policy files.

use std::sync::Arc;

use countersign_api::House;
use countersign_canon::{Digest, Json};
use countersign_engine::Engine;
use countersign_event::Scope;
use countersign_mcp::tools::{Book, Definition, diff, flags};
use countersign_store::Folder;

use crate::acceptance::{self, AcceptedTool, By};
use crate::books::Books;
use crate::command::tools::before;
use crate::command::{evidence, policy};
use crate::errors::Failure;

/// The data folder, what writes its log, and the policies that were given as files.
pub(super) struct Home {
    pub(super) engine: Arc<Engine>,
    pub(super) folder: Folder,
    pub(super) manifest: Option<String>,
    pub(super) policies: Vec<String>,
}

impl House for Home {
    fn pack(&self, scope: &Scope) -> Result<Vec<u8>, String> {
        evidence::session_pack(&self.folder, scope).map_err(told)
    }

    fn tools(&self) -> Result<Json, String> {
        let (books, unread) = Books::new(self.folder.path()).all().map_err(told)?;
        if let Some(unread) = unread.into_iter().next() {
            return Err(told(unread.failure));
        }
        let tools = books.iter().flat_map(tools).collect();
        Ok(Json::object([("tools", Json::Array(tools))]))
    }

    fn accept_tool(&self, by: &str, server: &str, tool: &str, digest: &str) -> Result<(), String> {
        let books = Books::new(self.folder.path());
        let turn = books.turn().map_err(told)?;
        let mut book = turn.of(server).map_err(told)?;
        let digest: Digest = digest
            .parse()
            .map_err(|_| "this is no digest of a definition".to_owned())?;
        if !book.accept_seen(tool, digest, false) {
            return Err(format!(
                "`{tool}` of `{server}` has no such definition any more: look again"
            ));
        }
        let accepted = AcceptedTool {
            tool,
            definition: digest,
            reads: false,
        };
        let store = self.engine.store();
        acceptance::keep_tool(store, &turn, &book, &accepted, By::Caller(by)).map_err(told)
    }

    fn tests(&self) -> Result<Option<Json>, String> {
        if self.policies.is_empty() {
            return Ok(None);
        }
        let report = policy::tested(&self.policies, self.manifest.as_deref()).map_err(told)?;
        let count = |file: &Json, member: &str| {
            let lines = file.get(member).and_then(Json::as_array);
            lines.unwrap_or_default().len() as u64
        };
        let files = report.get("coverage").and_then(Json::as_array);
        let files = files.unwrap_or_default().iter().map(|file| {
            let covered = count(file, "covered");
            Json::object([
                ("name", Json::from(file.get("file").and_then(Json::as_str))),
                ("covered", Json::from(covered)),
                ("lines", Json::from(covered + count(file, "not_covered"))),
                (
                    "missed",
                    file.get("not_covered").cloned().unwrap_or(Json::Null),
                ),
            ])
        });
        let number = |member: &str| Json::from(report.get(member).and_then(Json::as_u64));
        Ok(Some(Json::object([
            ("passed", number("passed")),
            ("failed", number("failed")),
            (
                "tests",
                report.get("results").cloned().unwrap_or(Json::Null),
            ),
            ("files", Json::Array(files.collect())),
        ])))
    }
}

/// What waits comes first.
fn tools(book: &Book) -> Vec<Json> {
    let waiting = book.proposed().iter().map(|(tool, definition)| {
        let before = before(book, definition);
        waiting(book.server(), tool, definition, &before)
    });
    let accepted = book.pins().iter().map(|(tool, pin)| {
        Json::object([
            ("server", Json::from(book.server())),
            ("tool", Json::from(tool.as_str())),
            ("state", Json::from(pin.origin.as_str())),
            ("digest", Json::from(pin.digest.to_string())),
        ])
    });
    waiting.chain(accepted).collect()
}

fn waiting(server: &str, tool: &str, definition: &Definition, before: &Json) -> Json {
    let shown = |value: Option<&Json>| {
        let text = value.map(|value| value.to_sorted_ascii());
        Json::from(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
    };
    let changes = diff(before, definition.value()).into_iter().map(|change| {
        Json::object([
            ("pointer", Json::from(change.pointer.as_str())),
            ("before", shown(change.before.as_ref())),
            ("after", shown(change.after.as_ref())),
        ])
    });
    let flags = flags(definition.value())
        .into_iter()
        .map(|flag| Json::from(format!("{}: {}", flag.pointer, flag.suspicion.as_str())));
    Json::object([
        ("server", Json::from(server)),
        ("tool", Json::from(tool)),
        ("state", Json::from("waiting")),
        ("digest", Json::from(definition.digest().to_string())),
        ("flags", Json::Array(flags.collect())),
        ("changes", Json::Array(changes.collect())),
    ])
}

fn told(failure: Failure) -> String {
    failure.message().to_owned()
}
