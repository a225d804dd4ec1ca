//! Digests of state: what they cover, and which of them may be compared.
//!
//! A digest says nothing without its [`Coverage`]: what was observed (identity), which part of it
//! (selector), and in which frame (boundary). What is only diagnostic is kept apart
//! (observational) and never makes two digests equal. [`compare`] gives exactly one of three answers
//! for any two digests, and says which fields led to it.

mod compare;
mod coverage;
mod digest;
mod members;

pub use compare::{Assumption, Bucket, Comparability, Sides, Why, compare, compare_with};
pub use coverage::{
    AttributeOrder, Basis, Browser, BrowserBoundary, BrowserIdentity, BrowserObserved,
    BrowserSelector, CapturePhase, Coverage, Database, DatabaseBoundary, DatabaseIdentity,
    DatabaseObserved, DatabaseSelector, Files, FilesBoundary, FilesIdentity, FilesObserved,
    FilesSelector, GitIdentity, GitSelector, GitTree, Kind, Lifetime, MixedPartition, Nothing,
    Parts, SelectorKind, SymlinkPolicy, Values, ValuesBoundary, ValuesIdentity, ValuesSelector,
    Vendor, VendorIdentity, VendorSelector, WhitespacePolicy,
};
pub use digest::StateDigest;
pub use members::{CoverageFault, CoverageProblem};
