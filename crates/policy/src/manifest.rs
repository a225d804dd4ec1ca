//! The capability manifest: what an agent may use, deny by default.
//!
//! [`Manifest::read`] takes JSON or YAML of one of two schemas, refuses whatever it does not fully
//! understand, and reports every fault at once:
//!
//! ```
//! use countersign_policy::manifest::Manifest;
//!
//! let refused = Manifest::read(br#"{
//!     "schema": "aegis.dev/manifest/v0.1", "name": "reader", "version": "1.0.0", "publisher": "",
//!     "permissions": {"tool": ["read_file"], "budgets": {"max_steps": "9"}}
//! }"#).unwrap_err();
//! assert_eq!(refused.to_string(), "\
//! `/publisher`: must not be empty
//! `/permissions/tool`: unknown field, did you mean `tools`?
//! `/permissions/budgets/max_steps`: expected a non-negative integer, found a string");
//! ```
//!
//! [`signature`] and [`integrity`] check who published a manifest and which files belong to it.
//! The module does *not* read files, judge calls or keep keys.

mod error;
pub mod integrity;
mod model;
mod named;
mod near;
mod pointer;
mod read;
mod section;
mod show;
pub mod signature;
pub mod yaml;

pub use error::{ManifestError, Problem};
pub use model::{
    Approval, Arguments, Budgets, Exec, Fs, Integrity, Loops, Net, OnTaint, Permissions, Sandbox,
    Schema, SideEffect, Tool,
};
pub use named::Named;
pub use near::nearest;
pub use pointer::{Pointer, PointerError, segment};
pub use section::Section;

use countersign_canon::{Digest, Json, Limits, Reason};

use crate::matcher;

/// Reads JSON if the text starts with `{`, YAML otherwise. A YAML document may start like that, too, and is
/// read as one where its signs are not those of JSON.
pub fn admit(text: &[u8], limits: &Limits) -> Result<Json, ManifestError> {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        return Ok(yaml::admit(text, limits)?);
    }
    Json::admit(text, limits).or_else(|error| {
        // FAIL-CLOSED: what is JSON and in doubt is not looked at again with other eyes.
        let is_syntax = matches!(
            error.reason(),
            Reason::UnexpectedByte(_) | Reason::TrailingData
        );
        let flow = is_syntax.then(|| yaml::admit(text, limits).ok());
        flow.flatten().ok_or(error.into())
    })
}

/// A manifest that was read and found valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    // INVARIANT: the parts say what `source` says, and `digest` is its digest.
    source: Json,
    digest: Digest,
    schema: Schema,
    name: String,
    version: String,
    publisher: String,
    permissions: Permissions,
    loops: Loops,
    sandbox: Sandbox,
    integrity: Integrity,
}

impl Manifest {
    /// Reads JSON or YAML.
    pub fn read(text: &[u8]) -> Result<Self, ManifestError> {
        Self::from_json(&admit(text, &LIMITS)?)
    }

    /// Reads a whole manifest, with everything that a manifest needs.
    pub fn from_json(source: &Json) -> Result<Self, ManifestError> {
        read::whole(source)
    }

    /// Reads what somebody sends along with a question: every field may be absent, `null` is the
    /// empty manifest, and types are as strict as ever. Host patterns and roots that are not valid
    /// grant nothing.
    pub fn partial(source: &Json) -> Result<Self, ManifestError> {
        read::partial(source)
    }

    /// What the manifest was read from.
    pub fn source(&self) -> &Json {
        &self.source
    }

    /// SHA-256 over the canonical text (RFC 8785) of what the manifest was read from.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The manifest in full, with every default filled in. Read again, it means the same.
    pub fn to_json(&self) -> Json {
        show::manifest(self)
    }

    /// Which rules the manifest was written for.
    pub fn schema(&self) -> Schema {
        self.schema
    }

    /// What the manifest calls itself; empty only if it is partial.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version, in the publisher's own form; empty only if it is partial.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Who answers for it; empty only if it is partial.
    pub fn publisher(&self) -> &str {
        &self.publisher
    }

    /// What it allows.
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// When a session counts as going in circles.
    pub fn loops(&self) -> &Loops {
        &self.loops
    }

    /// Where its tools have to run.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Which files belong to it, and who signed it.
    pub fn integrity(&self) -> &Integrity {
        &self.integrity
    }

    /// The most specific declaration that covers a call of this tool.
    pub fn tool(&self, called: &str) -> Option<&Tool> {
        matcher::declared(called, self).map(|(_, tool)| tool)
    }

    /// Whether what a tool gives is trusted. SECURITY: an entry speaks of the tool of its own server,
    /// or of one that no server offers; another server may call its tool the same.
    pub fn trusts_output_of(&self, server: Option<&str>, called: &str) -> bool {
        self.tool(called)
            .is_some_and(|tool| tool.trusted_output && tool.server.as_deref() == server)
    }

    /// Tools that are declared as reading, and do not count as such behind a server: nobody has said whose they are, or
    /// which definition of them was looked at.
    pub fn unpinned_readers(&self) -> impl Iterator<Item = &str> {
        let holds = self.schema == Schema::Countersign;
        let tools = self.permissions().tools.iter().filter(move |_| holds);
        let is_unpinned = |(name, tool): &(&String, &Tool)| {
            tool.side_effect == SideEffect::Read
                && (tool.server.is_none() || tool.definition.is_none())
                && countersign_event::fetching(name).is_none()
        };
        tools.filter(is_unpinned).map(|(name, _)| name.as_str())
    }

    /// What the manifest says about a human's approval for a call of this tool.
    pub fn approval(&self, called: &str) -> Approval {
        let mut listed = self.permissions.approval_required.iter();
        match listed.any(|entry| matcher::covers(entry, called)) {
            true => Approval::Required,
            false => self
                .tool(called)
                .map_or(Approval::Unstated, |tool| tool.approval),
        }
    }
}

/// Manifests are written by people; these limits are far beyond them.
const LIMITS: Limits = Limits {
    max_bytes: 1 << 20,
    max_depth: 32,
    ..Limits::event()
};
