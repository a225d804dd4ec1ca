//! Privacy classes: what may leave as it is, what leaves generalised, and what does not leave.

use std::collections::BTreeMap;

use countersign_canon::{Digest, Hash, Json};

use crate::{Redacted, Redactor, general};

/// Anybody may see it: words of our own, counts, digests, ids that we made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Public(Json);

/// Arguments, paths and output: generalised and redacted on the way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sensitive(Json);

/// Fields that may be exported, because each has a class. There is no other way into one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    fields: BTreeMap<&'static str, Json>,
    dropped: Vec<&'static str>,
}

impl Public {
    /// A word of our own vocabulary.
    pub fn word(word: &'static str) -> Self {
        Self(Json::from(word))
    }

    /// Words of our own vocabulary.
    pub fn words(words: &[&'static str]) -> Self {
        Self(Json::Array(
            words.iter().map(|word| Json::from(*word)).collect(),
        ))
    }

    /// A number.
    pub fn count(count: u64) -> Self {
        Self(Json::from(count))
    }

    /// A truth.
    pub fn flag(flag: bool) -> Self {
        Self(Json::Bool(flag))
    }

    /// The hash of an event.
    pub fn hash(hash: &Hash) -> Self {
        Self(Json::from(hash.to_string()))
    }

    /// The digest of some bytes.
    pub fn digest(digest: &Digest) -> Self {
        Self(Json::from(digest.to_string()))
    }

    /// An id that we made: a prefix of letters, and 32 hexadecimal digits after `_`.
    pub fn id(id: &str) -> Option<Self> {
        let (prefix, digits) = id.split_once('_')?;
        let is_ours = prefix.bytes().all(|byte| byte.is_ascii_lowercase())
            && digits.len() == 32
            && digits
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_ours.then(|| Self(Json::from(id)))
    }

    /// A name that somebody else gave: of a tool, a tenant, a session. It is public as far as it holds
    /// no secret.
    pub fn name(name: &str, redactor: &Redactor) -> Self {
        Self(Json::from(redactor.text(name).into_inner()))
    }
}

impl Sensitive {
    /// Text of any kind.
    pub fn text(text: &str, redactor: &Redactor) -> Self {
        Self(Json::from(redactor.text(text).into_inner()))
    }

    /// A value of any kind.
    pub fn json(value: &Json, redactor: &Redactor) -> Self {
        Self(redactor.json(value).into_inner())
    }

    /// A value of any kind, whose paths and command lines are made general.
    pub fn general(value: &Json, redactor: &Redactor) -> Self {
        Self(redactor.json(&general::value(value, redactor)).into_inner())
    }

    /// A path, by its last part.
    pub fn path(path: &str, redactor: &Redactor) -> Self {
        Self(Json::from(general::path(path, redactor)))
    }

    /// A command line, without the values of secret flags.
    pub fn command_line(line: &str, redactor: &Redactor) -> Self {
        Self(Json::from(general::command_line(line, redactor)))
    }
}

impl Record {
    /// Adds a public field.
    #[must_use]
    pub fn public(mut self, name: &'static str, value: Public) -> Self {
        self.fields.insert(name, value.0);
        self
    }

    /// Adds a sensitive field.
    #[must_use]
    pub fn sensitive(mut self, name: &'static str, value: Sensitive) -> Self {
        self.fields.insert(name, value.0);
        self
    }

    /// Says that there was a field that does not leave. Its value is never seen here.
    #[must_use]
    pub fn forbidden(mut self, name: &'static str) -> Self {
        self.dropped.push(name);
        self
    }

    /// The names of the fields that were dropped.
    pub fn dropped(&self) -> &[&'static str] {
        &self.dropped
    }

    /// The fields, by name.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &Json)> {
        self.fields.iter().map(|(name, value)| (*name, value))
    }

    /// The record as a value.
    pub fn into_json(self) -> Redacted<Json> {
        Redacted::new(Json::object(self.fields))
    }
}
