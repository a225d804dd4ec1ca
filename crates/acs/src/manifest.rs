//! The manifest: which policy judges what, where.
//!
//! [`Manifest::read`] takes one complete document, [`load`] a document with everything that it
//! extends. Whatever is not fully understood is refused, with the place and every fault at once.

mod error;
mod extends;
mod load;
mod merge;
mod model;
mod origin;
mod pin;
mod read;
mod remote;

pub use error::ManifestError;
pub(crate) use load::fetch;
pub use load::{Fetched, LoadError, Loader, NoFiles, Options, load};
pub use model::{
    Annotation, Annotator, AnnotatorKind, Approval, Binding, CedarPolicy, CustomPolicy, OnTimeout,
    PointConfig, Policy, RegoPolicy, Resolver, TestPolicy,
};
pub use pin::is_near;
pub(crate) use pin::{Pinned, address};

use std::collections::BTreeMap;

use countersign_canon::{Digest, Json};

use crate::Point;

/// A manifest that was read and found valid, with everything that it extends.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    // INVARIANT: the parts say what `source` says, and `digest` is its digest.
    source: Json,
    digest: Digest,
    policies: BTreeMap<String, Policy>,
    points: BTreeMap<Point, PointConfig>,
    tools: BTreeMap<String, Json>,
    annotators: BTreeMap<String, Annotator>,
    approval: Option<Approval>,
}

impl Manifest {
    /// Reads one document that extends nothing: JSON if the text starts with `{`, YAML otherwise.
    pub fn read(text: &[u8]) -> Result<Self, ManifestError> {
        Self::chain(&[text])
    }

    /// Reads documents that extend one another in this order, the first being the furthest parent.
    pub fn chain(texts: &[&[u8]]) -> Result<Self, ManifestError> {
        merge::chain(texts)
    }

    /// Reads a document that is JSON already.
    pub fn from_json(source: Json) -> Result<Self, ManifestError> {
        read::whole(source, "the manifest")
    }

    /// The document, with everything that it extends.
    pub fn source(&self) -> &Json {
        &self.source
    }

    /// SHA-256 over the canonical text of the document, with everything that it extends.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The policies, by name.
    pub fn policies(&self) -> &BTreeMap<String, Policy> {
        &self.policies
    }

    /// What is configured, point by point.
    pub fn points(&self) -> &BTreeMap<Point, PointConfig> {
        &self.points
    }

    /// The catalog: what a policy is told about each tool, its name included.
    pub fn tools(&self) -> &BTreeMap<String, Json> {
        &self.tools
    }

    /// The annotators, by name.
    pub fn annotators(&self) -> &BTreeMap<String, Annotator> {
        &self.annotators
    }

    /// Who is asked when somebody has to decide.
    pub fn approval(&self) -> Option<&Approval> {
        self.approval.as_ref()
    }
}

#[cfg(test)]
mod tests;
