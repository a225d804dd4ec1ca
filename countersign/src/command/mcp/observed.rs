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
    // What has no name that a manifest can hold is refused as undeclared; the others are not to blame.
    let named = |name: &str| !name.is_empty() && !name.contains(is_blank);
    let definitions = shelf.definitions();
    let definitions = definitions.filter(|definition| named(definition.name()));
    let tools = definitions.map(|definition| {
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

fn is_blank(c: char) -> bool {
    c.is_control() || c.is_whitespace()
}

const UNLIMITED: u64 = 1 << 52;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

#[cfg(test)]
mod tests {
    use countersign_mcp::tools::{Book, Definition};

    use super::*;

    #[test]
    fn tools_without_a_usable_name_leave_the_others_as_they_are() {
        let names = [
            "look",
            "e\nHOLD",
            "a\u{1b}[2K",
            "l\u{a0}m",
            "h\u{2028}x",
            "",
        ];
        let definition = |name: &str| {
            let schema = Json::object([("type", Json::from("object"))]);
            let members = [("name", Json::from(name)), ("inputSchema", schema)];
            Definition::from_json(Json::object(members)).ok()
        };
        let definitions: Vec<_> = names.iter().filter_map(|name| definition(name)).collect();
        let mut shelf = Shelf::new(Book::new("s"), Vec::new());
        shelf.fill(&definitions);
        let manifest = manifest(&shelf).unwrap();
        assert!(manifest.tool("look").is_some());
        for name in &names[1..] {
            assert!(manifest.tool(name).is_none(), "{name:?}");
        }
    }
}
