//! What must still be true when a plan runs: fingerprints of the things it acts on.

use std::collections::BTreeMap;

use countersign_canon::Json;

use crate::form::{Fields, FormError, wrong};
use crate::names::names;
use countersign_canon::Quoted;

names! {
    /// What kind of thing a fingerprint is of.
    SubjectKind as "kind of subject" {
        /// A file, by its resolved path; the fingerprint is the digest of its content.
        File = "file",
        /// The commit that a repository is at, by the repository's path.
        GitHead = "git-head",
        /// Something that a door knows how to look at, such as the version of a remote object.
        Resource = "resource",
    }
}

/// One thing that a plan acts on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// What kind of thing.
    pub kind: SubjectKind,
    /// Which one.
    pub name: String,
}

/// Fingerprints by subject; `None` says that the thing is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprints(BTreeMap<Subject, Option<String>>);

impl Fingerprints {
    /// Adds one. The later of two for one subject stays.
    #[must_use]
    pub fn with(mut self, subject: Subject, fingerprint: Option<String>) -> Self {
        self.0.insert(subject, fingerprint);
        self
    }

    /// Every subject with its fingerprint, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Subject, Option<&str>)> {
        self.0.iter().map(|(subject, it)| (subject, it.as_deref()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares with what is seen now. What was not looked at counts as changed.
    pub fn check(&self, seen: &Self) -> Result<(), PreconditionFailed> {
        let changed = self
            .0
            .iter()
            .find(|(subject, expected)| seen.0.get(subject) != Some(*expected));
        match changed {
            None => Ok(()),
            Some((subject, expected)) => Err(PreconditionFailed {
                subject: subject.clone(),
                expected: expected.clone(),
                seen: seen.0.get(subject).cloned(),
            }),
        }
    }

    pub(crate) fn to_json(&self) -> Json {
        let entries = self.iter().map(|(subject, fingerprint)| {
            Json::object([
                ("fingerprint", Json::from(fingerprint.map(str::to_owned))),
                ("kind", Json::from(subject.kind.as_str())),
                ("subject", Json::from(subject.name.as_str())),
            ])
        });
        Json::Array(entries.collect())
    }

    pub(crate) fn read(entries: Vec<Json>) -> Result<Self, FormError> {
        let mut all = Self::default();
        let count = entries.len();
        for entry in entries {
            let mut fields = Fields::of("preconditions", entry)?;
            let subject = Subject {
                kind: fields.parsed("kind")?,
                name: fields.text("subject")?,
            };
            all = all.with(subject, fields.nullable_text("fingerprint")?);
            fields.end()?;
        }
        match all.0.len() == count {
            true => Ok(all),
            false => Err(wrong("preconditions", "one entry for each subject")),
        }
    }
}

/// Something that the plan acts on has changed since it was shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {} has changed since it was shown", subject.kind, Quoted(&subject.name))]
pub struct PreconditionFailed {
    /// What.
    pub subject: Subject,
    /// The fingerprint it had; `None` if it was not there.
    pub expected: Option<String>,
    /// The fingerprint it has; `None` if nobody looked, `Some(None)` if it is not there.
    pub seen: Option<Option<String>>,
}
