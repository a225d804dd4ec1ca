//! What the console shows that only the whole program knows.

use countersign_canon::Json;
use countersign_event::Scope;

/// Whoever puts the daemon together, as far as the console asks.
pub trait House: Send + Sync {
    /// A pack of evidence of a session, which `countersign verify` accepts. Nothing sealed is in it.
    fn pack(&self, scope: &Scope) -> Result<Vec<u8>, String>;

    /// What MCP servers say their tools are, what is accepted of it, and what waits:
    /// `{"tools":[{server, tool, state, digest, flags, changes:[{pointer, before, after}]}]}`.
    fn tools(&self) -> Result<Json, String>;

    /// Accepts what a tool says it is, if it still says so and the log has it that this caller does.
    fn accept_tool(&self, by: &str, server: &str, tool: &str, digest: &str) -> Result<(), String>;

    /// The tests of the policies in files, run now, and which lines they reach:
    /// `{passed, failed, tests:[{place, name, failure}], files:[{name, covered, lines, missed:[…]}]}`;
    /// nothing where there are none.
    fn tests(&self) -> Result<Option<Json>, String>;
}
