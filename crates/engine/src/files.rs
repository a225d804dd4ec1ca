//! Policies as an operator keeps them: a manifest and files of Rego.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use countersign_policy::capability::Capability;
use countersign_policy::manifest::{Manifest, ManifestError};
use countersign_policy::rego::testing::outline;
use countersign_policy::rego::{BundleError, Source};
use countersign_policy::{LoadError, Policies, PolicySources};

/// Where the policies stand. A folder stands for the `*.rego` files in it; `*_test.rego` are their
/// tests, and a file of the package `countersign.capability` takes the place of the built-in rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyFiles {
    /// The manifest.
    pub manifest: Option<PathBuf>,
    /// Policies whose verdicts count.
    pub enforced: Vec<PathBuf>,
    /// Policies whose verdicts are recorded only.
    pub shadow: Vec<PathBuf>,
}

/// Why policies are not put in force.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFilesError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The manifest is not valid.
    #[error("`{}` is not a valid manifest: {error}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ManifestError,
    },
    /// The policies do not compile, do not answer, or fail their tests.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl PolicyFiles {
    /// Reads everything, compiles it and runs the tests.
    pub fn load(&self) -> Result<Policies, PolicyFilesError> {
        let manifest = self.manifest.as_deref().map(manifest).transpose()?;
        let mut sources = PolicySources::default();
        for path in &self.enforced {
            for source in read(path)? {
                match is_rules(&source) {
                    _ if is_test(&source) => sources.tests.push(source),
                    true => sources.rules = Some(source),
                    false => sources.enforced.push(source),
                }
            }
        }
        for path in &self.shadow {
            let (tests, policies): (Vec<_>, Vec<_>) = read(path)?.into_iter().partition(is_test);
            sources.tests.extend(tests);
            sources.shadow.extend(policies);
        }
        let capability = |rules| capability(rules, manifest);
        Ok(Policies::load(&sources, capability)?)
    }
}

fn capability(
    rules: Option<Source>,
    manifest: Option<Manifest>,
) -> Result<Capability, BundleError> {
    match rules {
        Some(rules) => Capability::with_rules(rules, manifest),
        None => Capability::new(manifest),
    }
}

fn manifest(path: &Path) -> Result<Manifest, PolicyFilesError> {
    let text = bytes(path)?;
    Manifest::read(&text).map_err(|error| PolicyFilesError::Manifest {
        path: path.to_owned(),
        error,
    })
}

/// A file, or the policies in a folder in the order of their names.
fn read(path: &Path) -> Result<Vec<Source>, PolicyFilesError> {
    if !path.is_dir() {
        return Ok(vec![source(path)?]);
    }
    let unreadable = |error| unreadable(path, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file
            .extension()
            .is_some_and(|extension| extension == "rego")
        {
            files.push(file);
        }
    }
    files.sort_unstable();
    files.iter().map(|file| source(file)).collect()
}

fn source(path: &Path) -> Result<Source, PolicyFilesError> {
    let text = String::from_utf8(bytes(path)?)
        .map_err(|_| unreadable(path, io::Error::other("not UTF-8")))?;
    Ok(Source {
        name: path.display().to_string(),
        text,
    })
}

fn bytes(path: &Path) -> Result<Vec<u8>, PolicyFilesError> {
    let read = || {
        let mut text = Vec::new();
        let mut file = fs::File::open(path)?.take(MAX_BYTES + 1);
        file.read_to_end(&mut text)?;
        match text.len() as u64 > MAX_BYTES {
            true => Err(io::Error::other("larger than any policy")),
            false => Ok(text),
        }
    };
    read().map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, error: io::Error) -> PolicyFilesError {
    PolicyFilesError::Unreadable {
        path: path.to_owned(),
        error,
    }
}

fn is_test(source: &Source) -> bool {
    source.name.ends_with("_test.rego")
}

/// A file that does not parse is no rules file; compiling it says why.
fn is_rules(source: &Source) -> bool {
    outline(source).is_ok_and(|outline| outline.package == "data.countersign.capability")
}

const MAX_BYTES: u64 = 16 << 20;
