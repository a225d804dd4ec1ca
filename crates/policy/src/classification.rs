//! Which tools need a human: all, except those that an operator has pinned as reading, and what a protocol
//! fetches by a method of its own.

use countersign_canon::Digest;
use countersign_event::fetching;

use crate::manifest::{Manifest, SideEffect};

/// A tool as a server offers it.
///
/// What the server says about the tool's effects (annotations, hints, descriptions) has no place
/// here: whoever offers a tool does not classify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered<'a> {
    /// The server.
    pub server: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The digest of its definition, computed from what the server sent.
    pub definition: Digest,
}

/// Whether a tool only reads. Made once, from the manifest and the offered definition; there is no
/// other way to make one and none to change one.
///
/// ```
/// use countersign_canon::Digest;
/// use countersign_policy::{Classification, Offered, SideEffecting};
///
/// let offered = Offered { server: "files", tool: "list", definition: Digest::of(b"{}") };
/// let class = Classification::of(&offered, None);
/// assert_eq!(class.reason(), Some(SideEffecting::NotDeclared));
/// ```
///
/// ```compile_fail
/// let class = countersign_policy::Classification { reason: None };
/// ```
///
/// ```compile_fail
/// fn lower(class: &mut countersign_policy::Classification) { class.reason = None; }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Classification {
    reason: Option<SideEffecting>,
    drift: Option<SideEffecting>,
    fetches: bool,
}

/// Why a tool counts as side-effecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SideEffecting {
    /// No manifest declares it.
    #[error("the manifest does not declare the tool")]
    NotDeclared,
    /// The manifest does not say that it only reads.
    #[error("the manifest does not say that the tool only reads")]
    NotRead,
    /// The manifest names no server.
    #[error("the manifest does not name the tool's server")]
    ServerNotPinned,
    /// The manifest names another server.
    #[error("the manifest names another server")]
    OtherServer,
    /// The manifest has no digest of its definition.
    #[error("the manifest does not pin the tool's definition")]
    DefinitionNotPinned,
    /// Its definition is not the one that was pinned.
    #[error("the tool's definition has changed since it was pinned")]
    DefinitionChanged,
}

impl Classification {
    /// Classifies a tool. FAIL-CLOSED: it is side-effecting unless the manifest declares exactly this
    /// name, of this server, with this definition, as reading. A method that fetches reads, unless the
    /// manifest says otherwise.
    pub fn of(offered: &Offered<'_>, manifest: Option<&Manifest>) -> Self {
        let (reason, drift) = (reason(offered, manifest), drift(offered, manifest));
        let fetches = reason.is_some()
            && drift.is_none()
            && fetching(offered.tool) == Some(offered.definition)
            && is_unsaid(offered.tool, manifest);
        Self {
            reason: reason.filter(|_| !fetches),
            drift,
            fetches,
        }
    }

    /// Whether calls may go without a human as far as the tool itself is concerned.
    pub fn is_read_only(&self) -> bool {
        self.reason.is_none()
    }

    /// Why the tool counts as side-effecting, if it does.
    pub fn reason(&self) -> Option<SideEffecting> {
        self.reason
    }

    /// Whether it is no tool, but a method that only fetches.
    pub fn is_fetching(&self) -> bool {
        self.fetches
    }

    /// How the tool differs from the one that the manifest names, if it names one. Then nothing that
    /// its entry says is about this tool.
    pub fn drift(&self) -> Option<SideEffecting> {
        self.drift
    }
}

fn drift(offered: &Offered<'_>, manifest: Option<&Manifest>) -> Option<SideEffecting> {
    // The entry that grants, which may be one for a dotted prefix.
    let tool = manifest?.tool(offered.tool)?;
    let other_server = tool
        .server
        .as_deref()
        .is_some_and(|server| server != offered.server);
    let changed = tool
        .definition
        .is_some_and(|pinned| pinned != offered.definition);
    match (other_server, changed) {
        (true, _) => Some(SideEffecting::OtherServer),
        (false, true) => Some(SideEffecting::DefinitionChanged),
        (false, false) => None,
    }
}

/// Whether no manifest says that it does more than read.
fn is_unsaid(tool: &str, manifest: Option<&Manifest>) -> bool {
    let tool = manifest.and_then(|manifest| manifest.tool(tool));
    tool.is_none_or(|tool| matches!(tool.side_effect, SideEffect::Unknown | SideEffect::Read))
}

fn reason(offered: &Offered<'_>, manifest: Option<&Manifest>) -> Option<SideEffecting> {
    // By its own name: a dotted prefix covers tools that nobody has looked at.
    let tool = manifest.and_then(|manifest| manifest.permissions().tools.get(offered.tool));
    let Some(tool) = tool else {
        return Some(SideEffecting::NotDeclared);
    };
    if tool.side_effect != SideEffect::Read {
        return Some(SideEffecting::NotRead);
    }
    match (tool.server.as_deref(), tool.definition) {
        (None, _) => Some(SideEffecting::ServerNotPinned),
        (Some(server), _) if server != offered.server => Some(SideEffecting::OtherServer),
        (_, None) => Some(SideEffecting::DefinitionNotPinned),
        (_, Some(pinned)) if pinned != offered.definition => Some(SideEffecting::DefinitionChanged),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let text = format!(
            "schema: countersign/manifest/v1\nname: m\nversion: 1.0.0\npublisher: acme\npermissions:\n  \
             tools:\n    list: {{server: files, side_effect: read, definition: '{0}'}}\n    \
             write: {{server: files, side_effect: mutate-local, definition: '{0}'}}\n    \
             quiet: {{server: files, definition: '{0}'}}\n    \
             loose: {{server: files, side_effect: read}}\n    \
             homeless: {{side_effect: read, definition: '{0}'}}\n    \
             mcp.https: {{server: files, side_effect: read, definition: '{0}'}}\nsandbox: {{required: true}}\n",
            Digest::of(b"seen")
        );
        Manifest::read(text.as_bytes()).unwrap()
    }

    fn check(server: &str, tool: &str, definition: &[u8], expect: Option<SideEffecting>) {
        let offered = Offered {
            server,
            tool,
            definition: Digest::of(definition),
        };
        let class = Classification::of(&offered, Some(&manifest()));
        assert_eq!(class.reason(), expect, "{server} {tool}");
        assert_eq!(class.is_read_only(), expect.is_none());
        assert!(!Classification::of(&offered, None).is_read_only());
    }

    #[test]
    fn i01_i02_a_tool_reads_only_if_an_operator_pinned_it() {
        check("files", "list", b"seen", None);
        check("files", "other", b"seen", Some(SideEffecting::NotDeclared));
        check("files", "LIST", b"seen", Some(SideEffecting::NotDeclared));
        check(
            "files",
            "list.all",
            b"seen",
            Some(SideEffecting::NotDeclared),
        );
        check(
            "files",
            "mcp.https.get",
            b"seen",
            Some(SideEffecting::NotDeclared),
        );
        check("files", "write", b"seen", Some(SideEffecting::NotRead));
        check("files", "quiet", b"seen", Some(SideEffecting::NotRead));
        check(
            "files",
            "loose",
            b"seen",
            Some(SideEffecting::DefinitionNotPinned),
        );
        check(
            "files",
            "homeless",
            b"seen",
            Some(SideEffecting::ServerNotPinned),
        );
        check("evil", "list", b"seen", Some(SideEffecting::OtherServer));
    }

    #[test]
    fn i03_a_changed_definition_falls_back() {
        check(
            "files",
            "list",
            b"changed",
            Some(SideEffecting::DefinitionChanged),
        );
        // A hint is part of the definition, so adding one changes it and lowers nothing.
        let hint = br#"{"annotations":{"readOnlyHint":true}}"#;
        check(
            "files",
            "list",
            hint,
            Some(SideEffecting::DefinitionChanged),
        );
        check("files", "quiet", hint, Some(SideEffecting::NotRead));
    }

    #[test]
    fn what_a_protocol_fetches_reads_unless_the_manifest_says_otherwise() {
        let fetched = |server: &str, tool: &str, by: &str, entry: Option<&str>| {
            let manifest = entry.map(|entry| {
                let text = format!(
                    "schema: countersign/manifest/v1\nname: m\nversion: 1.0.0\npublisher: acme\n\
                     permissions:\n  tools:\n    {entry}\nsandbox: {{required: true}}\n"
                );
                Manifest::read(text.as_bytes()).unwrap()
            });
            let offered = Offered {
                server,
                tool,
                definition: fetching(by).unwrap_or_else(|| Digest::of(b"")),
            };
            let class = Classification::of(&offered, manifest.as_ref());
            let fetches = class.is_fetching();
            assert!(!fetches || class.is_read_only());
            fetches
        };
        let (read, get) = ("resources/read", "prompts/get");
        assert!(fetched("files", read, read, None));
        for entry in [
            "resources/read: {}",
            "resources/read: {side_effect: read}",
            "resources/read: {server: files}",
            "other: {}",
        ] {
            assert!(fetched("files", read, read, Some(entry)), "{entry}");
        }
        for (entry, server) in [
            ("resources/read: {server: files}", "other"),
            ("resources/read: {side_effect: mutate-external}", "files"),
            (
                "resources/read: {definition: 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'}",
                "files",
            ),
        ] {
            assert!(!fetched(server, read, read, Some(entry)), "{entry}");
        }
        assert!(!fetched("files", get, read, None), "another method");
        assert!(!fetched("files", "look", "look", None), "a tool");
    }
}
