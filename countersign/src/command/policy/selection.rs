//! Which files a command was asked to look at.

use std::collections::BTreeSet;
use std::path::Path;

use crate::errors::Failure;
use crate::folder::{self, Extent};

/// Files by what they are for, in byte order, each once.
#[derive(Default)]
pub(super) struct Selection {
    /// `*.rego`
    pub(super) policies: BTreeSet<String>,
    /// `*_test.rego`
    pub(super) tests: BTreeSet<String>,
    /// `*.json` that was named, and must hold cases.
    pub(super) cases: BTreeSet<String>,
    /// `*.json` that was found, and may hold something else.
    pub(super) perhaps_cases: BTreeSet<String>,
}

/// Looks into folders; a file that was named is a policy, whatever it is called, unless it is a test
/// or holds cases.
pub(super) fn select(paths: &[String]) -> Result<Selection, Failure> {
    let mut selection = Selection::default();
    for path in paths {
        if !Path::new(path).is_dir() {
            selection.add_named(path.clone());
            continue;
        }
        let folder = path.strip_suffix('/').unwrap_or(path);
        for file in folder::walk(Path::new(path), Extent::Sources)?.files {
            selection.add_found(match folder {
                "." => file,
                folder => format!("{folder}/{file}"),
            });
        }
    }
    Ok(selection)
}

impl Selection {
    fn add_named(&mut self, file: String) {
        if file.ends_with(TEST) {
            self.tests.insert(file);
        } else if file.ends_with(JSON) {
            self.cases.insert(file);
        } else {
            self.policies.insert(file);
        }
    }

    fn add_found(&mut self, file: String) {
        if file.ends_with(JSON) {
            self.perhaps_cases.insert(file);
        } else if file.ends_with(POLICY) {
            self.add_named(file);
        }
    }
}

/// The policies that stand in the same folder as a file.
pub(super) fn beside(file: &str) -> Result<BTreeSet<String>, Failure> {
    let folder = folder::parent(Path::new(file));
    let prefix = match file.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/"),
        None => String::new(),
    };
    let found = folder::walk(&folder, Extent::Flat)?.files.into_iter();
    Ok(found
        .filter(|name| name.ends_with(POLICY) && !name.ends_with(TEST))
        .map(|name| format!("{prefix}{name}"))
        .collect())
}

const POLICY: &str = ".rego";
const TEST: &str = "_test.rego";
const JSON: &str = ".json";
