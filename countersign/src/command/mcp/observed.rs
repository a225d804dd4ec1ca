//! What decides where there is no manifest: what people have accepted.

use countersign_canon::Json;
use countersign_mcp::Method;
use countersign_mcp::tools::Shelf;
use countersign_policy::manifest::Manifest;

use crate::errors::{Code, Failure};

/// A manifest from what people have accepted: what somebody said only reads may run, and about
/// everything else nothing is known. There are no budgets, because nobody has set any.
///
/// SECURITY: what the server says about its own tools does not count.
pub(super) fn manifest(shelf: &Shelf) -> Result<Manifest, Failure> {
    let tools = shelf.definitions().map(|definition| {
        let effect = match shelf.book().reads(definition) {
            true => "read",
            false => "unknown",
        };
        let tool = Json::object([
            ("definition", Json::from(definition.digest().to_string())),
            ("server", Json::from(shelf.book().server())),
            ("side_effect", Json::from(effect)),
        ]);
        (definition.name().to_owned(), tool)
    });
    // What is read by a method of its own is declared like a tool.
    let unknown = || Json::object([("side_effect", Json::from("unknown"))]);
    let reads = Method::READS.map(|method| (method.as_str().to_owned(), unknown()));
    let tools = reads.into_iter().chain(tools);
    let off = |name: &'static str| (name, Json::from(0u64));
    let most = |name: &'static str, most: u64| (name, Json::from(most));
    let manifest = Json::object([
        ("schema", Json::from("countersign/manifest/v1")),
        (
            "permissions",
            Json::object([
                ("tools", Json::object(tools)),
                (
                    "budgets",
                    Json::object([
                        most("max_steps", UNLIMITED),
                        most("max_tool_calls", UNLIMITED),
                        most("max_wall_time_ms", UNLIMITED),
                        most("timeout_ms", DAY_MS),
                        most("max_output_bytes", UNLIMITED),
                    ]),
                ),
            ]),
        ),
        (
            "loops",
            Json::object([
                off("identical_calls"),
                off("no_progress_steps"),
                off("sequence_min"),
                off("sequence_max"),
            ]),
        ),
    ]);
    Manifest::partial(&manifest).map_err(|error| Failure::new(Code::Manifest, error.to_string()))
}

const UNLIMITED: u64 = 1 << 52;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
