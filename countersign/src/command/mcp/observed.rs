//! What decides where there is no manifest: what people have accepted.

use countersign_canon::Json;
use countersign_mcp::Method;
use countersign_mcp::tools::Book;
use countersign_policy::manifest::Manifest;

use crate::errors::{Code, Failure};

/// A manifest from what people have accepted: what somebody said only reads may run, and about
/// everything else nothing is known. There are no budgets, because nobody has set any.
///
/// It holds all tools of the book, and not only those that one session is shown: sessions share it.
///
/// SECURITY: what the server says about its own tools does not count.
pub(super) fn manifest(book: &Book) -> Result<Manifest, Failure> {
    // What has no name that a manifest can hold is refused as undeclared; the others are not to blame.
    let named = |name: &str| !name.is_empty() && !name.contains(is_blank);
    let pins = book.pins().iter().filter(|(name, _)| named(name));
    let tools = pins.map(|(name, pin)| {
        let effect = match pin.reads {
            true => "read",
            false => "unknown",
        };
        let tool = Json::object([
            ("definition", Json::from(pin.digest.to_string())),
            ("server", Json::from(book.server())),
            ("side_effect", Json::from(effect)),
        ]);
        (name.clone(), tool)
    });
    // What is read by a method of its own is declared like a tool; no tool takes its place.
    let read = || Json::object([("side_effect", Json::from("read"))]);
    let reads = Method::READS.map(|method| (method.as_str().to_owned(), read()));
    let tools = tools.chain(reads);
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
    use countersign_mcp::tools::{Definition, Shelf};

    use super::*;

    #[test]
    fn what_one_session_is_shown_takes_nothing_from_another() {
        let definition = |name: &str| {
            let text = format!(r#"{{"name":"{name}"}}"#);
            Definition::read(text.as_bytes()).unwrap()
        };
        let (look, other) = (definition("look"), definition("other"));
        let mut book = Book::new("s");
        book.accept(&look);
        assert!(book.accept_seen("look", look.digest(), true));
        let mut shelf = Shelf::new(book, Vec::new());
        shelf.fill([&other]);
        let manifest = manifest(shelf.book()).unwrap();
        for one in [&look, &other] {
            let tool = manifest.tool(one.name()).unwrap();
            assert_eq!(tool.definition, Some(one.digest()));
        }
    }

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
        let manifest = manifest(shelf.book()).unwrap();
        assert!(manifest.tool("look").is_some());
        for name in &names[1..] {
            assert!(manifest.tool(name).is_none(), "{name:?}");
        }
    }
}
