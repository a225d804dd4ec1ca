//! Which files belong to a manifest: compares digests that somebody else took.
//!
//! The manifest's own file is not among them, because it names their digests.

use std::collections::BTreeMap;
use std::fmt;

use countersign_canon::{Digest, Hash};

use super::Manifest;
use countersign_canon::Quoted;

/// What was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "zero files and no tree means that nothing was compared"]
pub struct Compared {
    /// How many files the manifest lists; all of them are as listed.
    pub files: usize,
    /// Whether the manifest names a digest over all files; it is as named.
    pub tree: bool,
}

/// Compares the files that are there with what the manifest says about them.
///
/// Files that the manifest does not list are fine, unless it names a digest over all files.
pub fn verify(
    manifest: &Manifest,
    files: impl Iterator<Item = (String, Digest)>,
) -> Result<Compared, IntegrityError> {
    let mut faults = Vec::new();
    let files = collect(files, &mut faults);
    let expected = manifest.integrity();
    for (path, hash) in &expected.files {
        match files.get(path) {
            None => faults.push(Fault::Missing(path.clone())),
            Some(found) if found != hash => faults.push(Fault::Changed(path.clone())),
            Some(_) => {}
        }
    }
    if expected
        .tree_sha256
        .is_some_and(|tree| tree != tree_of(&files))
    {
        faults.push(Fault::Tree);
    }
    match faults.is_empty() {
        true => Ok(Compared {
            files: expected.files.len(),
            tree: expected.tree_sha256.is_some(),
        }),
        false => Err(IntegrityError { faults }),
    }
}

/// The digest over all files: SHA-256 over `path:hash` and a line feed for each, by path in byte
/// order.
pub fn tree(files: impl Iterator<Item = (String, Digest)>) -> Result<Hash, IntegrityError> {
    let mut faults = Vec::new();
    let files = collect(files, &mut faults);
    match faults.is_empty() {
        true => Ok(tree_of(&files)),
        false => Err(IntegrityError { faults }),
    }
}

fn collect(
    files: impl Iterator<Item = (String, Digest)>,
    faults: &mut Vec<Fault>,
) -> BTreeMap<String, Hash> {
    let mut found = BTreeMap::new();
    for (path, digest) in files {
        if check_path(&path).is_err() {
            faults.push(Fault::Path(path));
        } else if found.insert(path.clone(), digest.to_hash()).is_some() {
            faults.push(Fault::Twice(path));
        }
    }
    found
}

fn tree_of(files: &BTreeMap<String, Hash>) -> Hash {
    let lines: String = files
        .iter()
        .map(|(path, hash)| format!("{path}:{hash}\n"))
        .collect();
    Hash::of(lines.as_bytes())
}

/// Whether a path is relative, normalised and stays below where it starts.
pub(super) fn check_path(path: &str) -> Result<(), PathFault> {
    let is_step = |part: &str| matches!(part, "" | "." | "..");
    match path.contains(|c: char| c.is_control() || c == '\\') || path.split('/').any(is_step) {
        true => Err(PathFault),
        false => Ok(()),
    }
}

/// The path is not relative and normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a path has to be relative, without `.`, `..`, empty parts and backslashes")]
pub(super) struct PathFault;

/// The files are not those of the manifest. Displays one fault a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegrityError {
    faults: Vec<Fault>,
}

impl IntegrityError {
    /// What is wrong, file by file.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for IntegrityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.faults.iter().map(Fault::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for IntegrityError {}

/// How a file differs from what the manifest says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A listed file is not there.
    #[error("{} is missing", Quoted(.0))]
    Missing(String),
    /// A listed file has another digest.
    #[error("{} was changed", Quoted(.0))]
    Changed(String),
    /// A file was given under a path that is not relative and normalised.
    #[error("{} is not a relative, normalised path", Quoted(.0))]
    Path(String),
    /// A file was given twice.
    #[error("{} was given twice", Quoted(.0))]
    Twice(String),
    /// The digest over all files is another one.
    #[error("the digest over all files differs: a file was added, removed or changed")]
    Tree,
}

#[cfg(test)]
mod tests;
