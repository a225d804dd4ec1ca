//! What a server says about a tool.

use countersign_canon::{Digest, Error, Json, Limits, Numbers};

/// A definition with all its members, known and unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    // INVARIANT: `value` is an object whose `name` is `name`; `digest` is its digest, `size` its length in a book.
    name: String,
    value: Json,
    digest: Digest,
    size: usize,
}

/// Why a definition cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// It is not strict JSON, or too large.
    #[error("a tool definition cannot be read: {0}")]
    Json(#[from] Error),
    /// It has no name.
    #[error("a tool definition needs a `name`")]
    Nameless,
}

impl Definition {
    /// Reads a definition.
    pub fn read(text: &[u8]) -> Result<Self, DefinitionError> {
        Self::from_json(Json::admit(text, &LIMITS)?)
    }

    /// Takes a definition that was read before.
    pub fn from_json(value: Json) -> Result<Self, DefinitionError> {
        let name = value.get("name").and_then(Json::as_str);
        let name = name.ok_or(DefinitionError::Nameless)?.to_owned();
        // The sorted ASCII form keeps integers exact; schemas are full of 64-bit limits.
        let text = value.to_sorted_ascii();
        Ok(Self {
            name,
            value,
            digest: Digest::of(&text),
            size: text.len(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 over the sorted ASCII form of all members.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// How many bytes it takes in a book.
    pub fn size(&self) -> usize {
        self.size
    }

    /// All members.
    pub fn value(&self) -> &Json {
        &self.value
    }

    /// Whether the server says that the tool changes nothing. Nobody has to believe it.
    pub fn claims_read_only(&self) -> bool {
        let hint = |name| {
            let annotations = self.value.get("annotations")?;
            annotations.get(name)?.as_bool()
        };
        hint("readOnlyHint") == Some(true) && hint("destructiveHint") != Some(true)
    }
}

/// Far beyond any definition that a model could use.
const LIMITS: Limits = Limits {
    max_bytes: 1 << 20,
    max_depth: 64,
    numbers: Numbers::Exact,
};
