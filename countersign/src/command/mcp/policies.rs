//! The policies of a wrapped server.

use countersign_canon::Json;
use countersign_mcp::tools::Shelf;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_policy::rego::testing::outline;
use countersign_policy::{Policies, PolicySources};

use crate::command::policy::source;
use crate::errors::{Code, Failure};

/// Policies without their manifest.
pub(super) struct Recipe(PolicySources);

impl Recipe {
    pub(super) fn read(files: &[String]) -> Result<Self, Failure> {
        let mut sources = PolicySources::default();
        for file in files {
            let source = source(file)?;
            let found = outline(&source).map_err(|error| invalid(&error))?;
            match found.package == CAPABILITY {
                true => sources.rules = Some(source),
                false => sources.enforced.push(source),
            }
        }
        Ok(Self(sources))
    }

    pub(super) fn policies(&self, manifest: Option<Manifest>) -> Result<Policies, Failure> {
        Policies::load(&self.0, |rules| match rules {
            Some(rules) => Capability::with_rules(rules, manifest),
            None => Capability::new(manifest),
        })
        .map_err(|error| invalid(&error))
    }
}

/// A manifest from what people have accepted: what somebody said only reads may run, and about
/// everything else nothing is known. There are no budgets, because nobody has set any.
///
/// SECURITY: what the server says about its own tools does not count.
pub(super) fn observed(shelf: &Shelf) -> Result<Manifest, Failure> {
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

fn invalid(error: &dyn ToString) -> Failure {
    Failure::new(Code::Policy, error.to_string())
}

const CAPABILITY: &str = "data.countersign.capability";
const UNLIMITED: u64 = 1 << 52;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
