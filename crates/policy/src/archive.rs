//! Policies as a document, so that a decision can be taken again when its files are long gone.

use std::sync::Arc;

use countersign_canon::{Digest, Json};

use crate::capability::Capability;
use crate::manifest::{Manifest, ManifestError};
use crate::rego::{BundleError, Source};
use crate::{Beside, Mode, Policies, UserPolicy};

/// Why a document does not give policies back.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is not such a document.
    #[error("it is no archive of policies: `{0}` is missing or of another kind")]
    Form(&'static str),
    /// Its manifest is not valid for this version.
    #[error("its manifest is not valid: {0}")]
    Manifest(#[from] ManifestError),
    /// Its rules do not compile in this version.
    #[error("its policies do not compile: {0}")]
    Bundle(#[from] BundleError),
    /// Somebody beside the policies cannot be brought back by this version.
    #[error("`{name}` cannot be brought back: {problem}")]
    Beside {
        /// Who.
        name: String,
        /// Why.
        problem: String,
    },
    /// It holds other policies than its name says.
    #[error("it holds the policies {found}, not {expected}")]
    Other {
        /// What was asked for.
        expected: Digest,
        /// What it holds.
        found: Digest,
    },
}

/// Brings somebody who has a say beside the policies back, by their name and their document.
pub type Revive<'a> = &'a dyn Fn(&str, &Json) -> Result<Arc<dyn Beside>, String>;

impl Policies {
    /// The policies as a document, with everything that their digest is over, in its order.
    pub fn to_archive(&self) -> Json {
        let manifest = self.capability().manifest();
        let others = self
            .others()
            .iter()
            .map(|policy| archived(policy))
            .collect();
        let beside = self.beside().iter().map(|beside| {
            Json::object([
                ("name", Json::from(beside.name())),
                ("digest", Json::from(beside.digest().to_string())),
                ("document", beside.to_archive()),
            ])
        });
        Json::object([
            ("schema", Json::from(SCHEMA)),
            (
                "manifest",
                manifest.map_or(Json::Null, |manifest| manifest.source().clone()),
            ),
            ("rules", files(self.capability().sources())),
            ("entry", Json::from(self.capability().entry())),
            ("policies", Json::Array(others)),
            ("beside", Json::Array(beside.collect())),
            ("observing", Json::Bool(self.is_observing())),
        ])
    }

    /// The policies of a document. INVARIANT: they are those with this digest, or none.
    pub fn from_archive(
        archive: &Json,
        expected: Digest,
        revive: Revive<'_>,
    ) -> Result<Self, ArchiveError> {
        if text(archive, "schema")? != SCHEMA {
            return Err(ArchiveError::Form("schema"));
        }
        let manifest = match archive.get("manifest") {
            None => return Err(ArchiveError::Form("manifest")),
            Some(Json::Null) => None,
            Some(manifest) => Some(Manifest::partial(manifest)?),
        };
        let mut rules = sources(archive, "rules")?.into_iter();
        let rules = rules.next().ok_or(ArchiveError::Form("rules"))?;
        let mut policies = Self::new(Capability::with_rules(rules, manifest)?);
        for other in array(archive, "policies")? {
            policies = policies.with(policy(other)?);
        }
        if archive.get("beside").is_some() {
            for one in array(archive, "beside")? {
                let name = text(one, "name")?;
                let document = one.get("document").ok_or(ArchiveError::Form("document"))?;
                let revived = revive(name, document).map_err(|problem| ArchiveError::Beside {
                    name: name.to_owned(),
                    problem,
                })?;
                policies = policies.with_beside(revived);
            }
        }
        match archive.get("observing").and_then(Json::as_bool) {
            None => return Err(ArchiveError::Form("observing")),
            Some(true) => policies = policies.observing(),
            Some(false) => {}
        }
        let found = policies.digest();
        match found == expected {
            true => Ok(policies),
            false => Err(ArchiveError::Other { expected, found }),
        }
    }
}

fn archived(policy: &UserPolicy) -> Json {
    Json::object([
        ("name", Json::from(policy.name())),
        ("mode", Json::from(policy.mode().as_str())),
        ("entry", Json::from(policy.entry())),
        ("files", files(policy.sources())),
    ])
}

fn policy(archive: &Json) -> Result<UserPolicy, ArchiveError> {
    let mode = match text(archive, "mode")? {
        "enforce" => Mode::Enforce,
        "shadow" => Mode::Shadow,
        _ => return Err(ArchiveError::Form("mode")),
    };
    let files = sources(archive, "files")?;
    let entry = text(archive, "entry")?;
    Ok(UserPolicy::compile(
        text(archive, "name")?,
        &files,
        entry,
        mode,
    )?)
}

fn files(sources: &[Source]) -> Json {
    let file = |source: &Source| {
        Json::object([
            ("name", Json::from(source.name.as_str())),
            ("text", Json::from(source.text.as_str())),
        ])
    };
    Json::Array(sources.iter().map(file).collect())
}

fn sources(archive: &Json, member: &'static str) -> Result<Vec<Source>, ArchiveError> {
    let source = |file: &Json| {
        Ok(Source {
            name: text(file, "name")?.to_owned(),
            text: text(file, "text")?.to_owned(),
        })
    };
    array(archive, member)?.iter().map(source).collect()
}

fn array<'a>(json: &'a Json, member: &'static str) -> Result<&'a [Json], ArchiveError> {
    let found = json.get(member).and_then(Json::as_array);
    found.ok_or(ArchiveError::Form(member))
}

fn text<'a>(json: &'a Json, member: &'static str) -> Result<&'a str, ArchiveError> {
    let found = json.get(member).and_then(Json::as_str);
    found.ok_or(ArchiveError::Form(member))
}

const SCHEMA: &str = "countersign/policies/v1";
