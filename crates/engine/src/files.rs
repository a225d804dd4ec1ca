//! Policies as an operator keeps them: a manifest and files of Rego.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign_policy::capability::Capability;
use countersign_policy::manifest::signature::{
    Publishers, PublishersError, SignatureError, TrustMode,
};
use countersign_policy::manifest::{Manifest, ManifestError};
use countersign_policy::rego::testing::outline;
use countersign_policy::rego::{BundleError, Source};
use countersign_policy::{Beside, LoadError, Policies, PolicySources};

use crate::folder;

mod belongings;
mod stamp;

pub use belongings::{Belongings, Reach};
pub use stamp::Stamp;

/// Where the policies stand. A folder stands for the `*.rego` files in it and below it, as far as it
/// is not hidden; `*_test.rego` are their tests, and a file of the package `countersign.capability` takes the place of the built-in rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyFiles {
    /// The manifest.
    pub manifest: Option<PathBuf>,
    /// Policies whose verdicts count.
    pub enforced: Vec<PathBuf>,
    /// Policies whose verdicts are recorded only.
    pub shadow: Vec<PathBuf>,
    /// An Agent Control manifest, which has a say beside them.
    pub agent_control: Option<BesideFile>,
    /// What is asked of the origin of the manifest.
    pub trust: TrustMode,
    /// The list of publishers whose manifests are accepted.
    pub publishers: Option<PathBuf>,
    /// Whether everything is allowed, and what would have been said is recorded only.
    pub observing: bool,
}

/// A file of somebody who has a say beside the policies, and how it is read.
#[derive(Debug, Clone)]
pub struct BesideFile {
    /// The file. What it refers to is in its folder, as far as changes are noticed.
    pub path: PathBuf,
    /// Reads it, with everything that it refers to.
    pub load: fn(&Path) -> Result<Arc<dyn Beside>, String>,
}

impl PartialEq for BesideFile {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for BesideFile {}

/// Why policies are not put in force.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFilesError {
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] folder::Unreadable),
    /// The manifest is not valid.
    #[error("`{}` is not a valid manifest: {error}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ManifestError,
    },
    /// The list of publishers cannot be read.
    #[error("`{}`: {error}", path.display())]
    Publishers {
        /// The file.
        path: PathBuf,
        /// Why.
        error: PublishersError,
    },
    /// It is not proven that the manifest comes from an accepted publisher.
    #[error("`{}` is not trusted: {error}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Why.
        error: SignatureError,
    },
    /// The files that the manifest names the digests of are not those.
    #[error("the files of `{}` are not as it names them: {}", path.display(), faults.join("; "))]
    Altered {
        /// The manifest.
        path: PathBuf,
        /// What does not hold.
        faults: Vec<String>,
    },
    /// There is no manifest whose origin could be asked for.
    #[error("there is no manifest, so nobody has signed one")]
    NoManifest,
    /// Somebody beside the policies cannot have a say.
    #[error("`{}`: {problem}", path.display())]
    Beside {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// There is nothing to put in force.
    #[error("`{}` holds no policy (`*.rego`)", path.display())]
    Nothing {
        /// The file or folder.
        path: PathBuf,
    },
    /// Only one file can stand in the place of the built-in rules.
    #[error(
        "`{first}` and `{second}` both stand in the place of the built-in rules: make them one file"
    )]
    TwoRules {
        /// A file.
        first: String,
        /// Another file.
        second: String,
    },
    /// The policies do not compile, do not answer, or fail their tests.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl PolicyFiles {
    /// Reads everything, compiles it and runs the tests.
    pub fn load(&self) -> Result<Policies, PolicyFilesError> {
        self.load_beside(None)
    }

    /// The same; where no file is named for it, the manifest is this one.
    pub(crate) fn load_beside(
        &self,
        given: Option<&Manifest>,
    ) -> Result<Policies, PolicyFilesError> {
        let manifest = self.manifest()?.or_else(|| given.cloned());
        let mut sources = PolicySources::default();
        for source in sort(&self.enforced, &mut sources.tests)? {
            match (is_rules(&source), sources.rules.take()) {
                (false, rules) => {
                    sources.rules = rules;
                    sources.enforced.push(source);
                }
                (true, None) => sources.rules = Some(source),
                (true, Some(first)) => {
                    return Err(PolicyFilesError::TwoRules {
                        first: first.name,
                        second: source.name,
                    });
                }
            }
        }
        sources.shadow = sort(&self.shadow, &mut sources.tests)?;
        let capability = |rules| capability(rules, manifest);
        let mut policies = Policies::load(&sources, capability)?;
        if let Some(file) = &self.agent_control {
            let beside = (file.load)(&file.path).map_err(|problem| PolicyFilesError::Beside {
                path: file.path.clone(),
                problem,
            })?;
            policies = policies.with_beside(beside);
        }
        Ok(match self.observing {
            true => policies.observing(),
            false => policies,
        })
    }

    fn manifest(&self) -> Result<Option<Manifest>, PolicyFilesError> {
        let Some(path) = &self.manifest else {
            // FAIL-CLOSED: whoever asks for a signature does not mean "or no manifest".
            return match self.trust {
                TrustMode::Prod => Err(PolicyFilesError::NoManifest),
                TrustMode::Dev => Ok(None),
            };
        };
        let manifest = manifest(path)?;
        let publishers = self.publishers.as_deref().map(publishers).transpose()?;
        manifest
            .accept(self.trust, &publishers.unwrap_or_default())
            .map_err(|error| PolicyFilesError::Untrusted {
                path: path.clone(),
                error,
            })?;
        check_files(&manifest, path)?;
        Ok(Some(manifest))
    }
}

/// The policies at these places; their tests go to the others.
///
/// FAIL-CLOSED: a place without a policy is a mistake, or a folder that somebody is writing just now.
/// Taken for "no policies", it would switch off what was in force.
fn sort(paths: &[PathBuf], tests: &mut Vec<Source>) -> Result<Vec<Source>, PolicyFilesError> {
    let nothing = |path: &PathBuf| PolicyFilesError::Nothing { path: path.clone() };
    let mut policies = Vec::new();
    for path in paths {
        let found = read(path)?;
        if found.is_empty() {
            return Err(nothing(path));
        }
        for source in found {
            match is_test(&source) {
                true => tests.push(source),
                false => policies.push(source),
            }
        }
    }
    match paths.first() {
        Some(path) if policies.is_empty() => Err(nothing(path)),
        _ => Ok(policies),
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

/// A manifest speaks for the files that it names as they were when it was written.
fn check_files(manifest: &Manifest, path: &Path) -> Result<(), PolicyFilesError> {
    let folder = folder::parent(path);
    let found = Belongings::read(manifest, path, &folder, Reach::Named)?;
    let altered = |faults| PolicyFilesError::Altered {
        path: path.to_owned(),
        faults,
    };
    found.check(manifest).map(drop).map_err(altered)
}

fn manifest(path: &Path) -> Result<Manifest, PolicyFilesError> {
    let text = bytes(path)?;
    Manifest::read(&text).map_err(|error| PolicyFilesError::Manifest {
        path: path.to_owned(),
        error,
    })
}

fn publishers(path: &Path) -> Result<Publishers, PolicyFilesError> {
    let text = bytes(path)?;
    String::from_utf8_lossy(&text)
        .parse()
        .map_err(|error| PolicyFilesError::Publishers {
            path: path.to_owned(),
            error,
        })
}

/// A file, or the policies in a folder and below it in the order of their names.
fn read(path: &Path) -> Result<Vec<Source>, PolicyFilesError> {
    list(path)?.iter().map(|file| source(file)).collect()
}

/// The files that [`read`] reads.
fn list(path: &Path) -> Result<Vec<PathBuf>, PolicyFilesError> {
    list_of(path, &["rego"])
}

/// The files with these endings in a folder and below it.
fn list_of(path: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, PolicyFilesError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let unreadable = |error| unreadable(&folder, error);
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let is_folder = entry.file_type().map_err(unreadable)?.is_dir();
            let file = entry.path();
            let is_policy = file
                .extension()
                .is_some_and(|extension| endings.iter().any(|ending| extension == *ending));
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            match is_folder {
                true if !is_hidden => folders.push(file),
                false if is_policy => files.push(file),
                _ => {}
            }
        }
    }
    files.sort_unstable();
    Ok(files)
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
    let path = path.to_owned();
    folder::Unreadable { path, error }.into()
}

fn is_test(source: &Source) -> bool {
    source.name.ends_with("_test.rego")
}

/// A file that does not parse is no rules file; compiling it says why.
fn is_rules(source: &Source) -> bool {
    outline(source).is_ok_and(|outline| outline.package == "data.countersign.capability")
}

const MAX_BYTES: u64 = 16 << 20;
