//! Why a manifest cannot be used.

use countersign_policy::manifest as policy;

use super::load::LoadError;
use crate::Reserved;

/// Why a manifest cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// A document cannot be read, or is no valid manifest. Displays one problem a line.
    #[error("{document}: {error}")]
    Document {
        /// Which document.
        document: String,
        /// What is wrong with it.
        error: policy::ManifestError,
    },
    /// Two documents say different things about the same thing. Nothing is overridden.
    #[error("{document}: `{place}` is already defined, and differently")]
    Conflict {
        /// The document that came later.
        document: String,
        /// What both define.
        place: String,
    },
    /// A document extends something that cannot be used.
    #[error("{document}: extends `{entry}`: {problem}")]
    Extends {
        /// The document that extends.
        document: String,
        /// What it extends.
        entry: String,
        /// What is wrong with that.
        problem: String,
    },
    /// A document from an address carries what only a document of this machine may.
    #[error("{document}: `{place}` is not allowed in a manifest from an address: {problem}")]
    Remote {
        /// The document.
        document: String,
        /// The field.
        place: String,
        /// Why.
        problem: &'static str,
    },
    /// A file or an address cannot be read.
    #[error("{document}: {error}")]
    Load {
        /// Which document.
        document: String,
        /// Why.
        error: LoadError,
    },
    /// There is more than is allowed.
    #[error("{0}")]
    Limit(String),
}

impl ManifestError {
    /// The reserved reason that evaluations give with such a manifest.
    pub const fn reserved(&self) -> Reserved {
        match self {
            Self::Limit(_)
            | Self::Load {
                error: LoadError::TooLarge { .. },
                ..
            } => Reserved::ResourceLimitExceeded,
            _ => Reserved::ManifestInvalid,
        }
    }

    /// The problems of a document, each with its place.
    pub fn problems(&self) -> &[policy::Problem] {
        match self {
            Self::Document { error, .. } => error.problems(),
            _ => &[],
        }
    }
}
