//! A manifest with everything that it extends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use countersign_canon::{Hash, Json, Object};
use url::Url;

use super::extends::Entry;
use super::origin::{self, Origin};
use super::remote::Remote;
use super::{Manifest, ManifestError, merge, pin, read};
use crate::Limits;

/// Where files and addresses are read. The only way out of this crate while a manifest is loaded.
pub trait Loader {
    /// The real path of a file: absolute, without links and without `..`.
    fn real(&self, path: &Path) -> Result<PathBuf, LoadError>;

    /// What is in a file.
    fn read(&self, path: &Path, max_bytes: usize) -> Result<Vec<u8>, LoadError>;

    /// Every file below a folder, in a fixed order; a file itself, if it is one.
    fn files(&self, path: &Path) -> Result<Vec<PathBuf>, LoadError>;

    /// One request, without credentials, and without following a redirect.
    fn fetch(&self, url: &Url, limits: &Limits) -> Result<Fetched, LoadError>;
}

/// What an address answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The bytes there.
    Body(Vec<u8>),
    /// Another address, as it was written.
    Redirect(String),
}

/// Why a file or an address cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is none, or it may not be read.
    #[error("`{name}` cannot be read: {problem}")]
    Unreadable {
        /// The file or the address.
        name: String,
        /// Why.
        problem: String,
    },
    /// It is larger than allowed.
    #[error("`{name}` has more than {limit} bytes")]
    TooLarge {
        /// The file or the address.
        name: String,
        /// The limit.
        limit: usize,
    },
    /// This host reads no files, or asks no addresses.
    #[error("`{0}` cannot be read here")]
    Unsupported(String),
    /// The bytes are not the expected ones.
    #[error("`{0}` does not have the expected digest")]
    Digest(String),
}

/// A loader that finds nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoFiles;

impl Loader for NoFiles {
    fn real(&self, path: &Path) -> Result<PathBuf, LoadError> {
        Err(LoadError::Unsupported(path.display().to_string()))
    }

    fn read(&self, path: &Path, _: usize) -> Result<Vec<u8>, LoadError> {
        Err(LoadError::Unsupported(path.display().to_string()))
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>, LoadError> {
        Err(LoadError::Unsupported(path.display().to_string()))
    }

    fn fetch(&self, url: &Url, _: &Limits) -> Result<Fetched, LoadError> {
        Err(LoadError::Unsupported(url.to_string()))
    }
}

/// How a manifest is loaded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The limits.
    pub limits: Limits,
    /// Whether an address is believed without a digest. Whoever controls it then writes the policy.
    pub believe_unpinned: bool,
}

/// Loads a manifest from a path, or from an `https://` address with the digest of its bytes.
pub fn load(
    from: &str,
    digest: Option<Hash>,
    loader: &dyn Loader,
    options: &Options,
) -> Result<Manifest, ManifestError> {
    let mut loading = Loading {
        loader,
        options,
        root: PathBuf::new(),
        stack: Vec::new(),
        done: BTreeMap::new(),
        bodies: BTreeMap::new(),
        remote: Remote::default(),
    };
    let entry = Entry {
        reference: from.to_owned(),
        is_address: false,
        digest,
    };
    let origin = match entry.is_address() {
        true => Origin::Address(
            pin::address(from, None).map_err(|problem| refused(from, from, problem))?,
        ),
        false => Origin::File(loading.real(Path::new(from), from)?),
    };
    loading.root = origin.folder().unwrap_or(Path::new("")).to_owned();
    let body = loading.body(&origin, &entry, from)?;
    let is_pinned = digest.is_some() || origin.folder().is_some();
    let merged = loading.resolve(&origin, &body, is_pinned)?;
    loading.remote.check_overlaid(&merged)?;
    read::whole(Json::Object(merged), &origin.to_string())
}

struct Loading<'a> {
    loader: &'a dyn Loader,
    options: &'a Options,
    /// Nothing outside this folder is extended.
    root: PathBuf,
    stack: Vec<Origin>,
    /// What each document comes to, so that a parent of many is read once.
    done: BTreeMap<(Origin, bool), Object>,
    bodies: BTreeMap<Url, Vec<u8>>,
    remote: Remote,
}

impl Loading<'_> {
    /// A document with everything that it extends. `is_pinned` is whether every address on the way to
    /// it is.
    fn resolve(
        &mut self,
        origin: &Origin,
        body: &[u8],
        is_pinned: bool,
    ) -> Result<Object, ManifestError> {
        if let Some(done) = self.done.get(&(origin.clone(), is_pinned)) {
            return Ok(done.clone());
        }
        let name = origin.to_string();
        let limits = &self.options.limits;
        if self.stack.len() >= limits.max_extends_depth {
            let limit = limits.max_extends_depth;
            return Err(ManifestError::Limit(format!(
                "{name}: more than {limit} manifests extend one another"
            )));
        }
        if self.done.len() >= MOST_DOCUMENTS {
            return Err(ManifestError::Limit(format!(
                "{name}: more than {MOST_DOCUMENTS} manifests are extended"
            )));
        }
        if self.stack.contains(origin) {
            let cycle: Vec<String> = self.stack.iter().map(Origin::to_string).collect();
            return Err(refused(
                &name,
                &name,
                format!("a circle: {} → {name}", cycle.join(" → ")),
            ));
        }
        let mut overlay = merge::document(body, &name)?;
        match origin {
            Origin::File(_) => {
                if let Some(folder) = origin.folder() {
                    origin::anchor(&mut overlay.members, folder);
                }
            }
            Origin::Address(_) => self.remote.take(&overlay.members, &name, is_pinned)?,
        }
        self.stack.push(origin.clone());
        let mut merged = Object::new();
        for entry in &overlay.extends {
            let parent = self.parent(origin, entry)?;
            let is_pinned = match &parent {
                Origin::File(_) => true,
                Origin::Address(_) => entry.digest.is_some() && is_pinned,
            };
            let body = self.body(&parent, entry, &name)?;
            let parent_members = self.resolve(&parent, &body, is_pinned)?;
            merge::add(&mut merged, parent_members, &parent.to_string())?;
            self.check_size(&merged, &name)?;
        }
        self.stack.pop();
        overlay.members.remove("extends");
        merge::add(&mut merged, overlay.members, &name)?;
        self.check_size(&merged, &name)?;
        self.done
            .insert((origin.clone(), is_pinned), merged.clone());
        Ok(merged)
    }

    fn parent(&self, origin: &Origin, entry: &Entry) -> Result<Origin, ManifestError> {
        let name = origin.to_string();
        let refused = |problem: String| refused(&name, &entry.reference, problem);
        match (origin, entry.is_address()) {
            (Origin::Address(base), _) => pin::address(&entry.reference, Some(base))
                .map(Origin::Address)
                .map_err(refused),
            (Origin::File(_), true) => pin::address(&entry.reference, None)
                .map(Origin::Address)
                .map_err(refused),
            (Origin::File(path), false) => {
                let folder = path.parent().unwrap_or(Path::new(""));
                let real = self.real(&folder.join(&entry.reference), &name)?;
                match real.starts_with(&self.root) {
                    true => Ok(Origin::File(real)),
                    false => Err(refused(format!(
                        "it is outside of `{}`",
                        self.root.display()
                    ))),
                }
            }
        }
    }

    fn real(&self, path: &Path, document: &str) -> Result<PathBuf, ManifestError> {
        self.loader.real(path).map_err(|error| ManifestError::Load {
            document: document.to_owned(),
            error,
        })
    }

    fn body(
        &mut self,
        origin: &Origin,
        entry: &Entry,
        document: &str,
    ) -> Result<Vec<u8>, ManifestError> {
        let failed = |error: LoadError| ManifestError::Load {
            document: document.to_owned(),
            error,
        };
        let limits = &self.options.limits;
        match origin {
            Origin::File(path) => self
                .loader
                .read(path, limits.max_merged_manifest_bytes)
                .map_err(failed),
            Origin::Address(url) => {
                if entry.digest.is_none() && !self.options.believe_unpinned {
                    return Err(refused(
                        document,
                        &entry.reference,
                        "an address needs the `sha256` or `integrity` of its bytes".to_owned(),
                    ));
                }
                let body = match self.bodies.get(url) {
                    Some(body) => body.clone(),
                    None => fetch(url, self.loader, limits).map_err(failed)?,
                };
                if let Some(digest) = entry.digest
                    && Hash::of(&body) != digest
                {
                    return Err(failed(LoadError::Digest(url.to_string())));
                }
                self.bodies.insert(url.clone(), body.clone());
                Ok(body)
            }
        }
    }

    fn check_size(&self, merged: &Object, name: &str) -> Result<(), ManifestError> {
        let limit = self.options.limits.max_merged_manifest_bytes;
        let size = Json::Object(merged.clone()).to_sorted().len();
        match size > limit {
            true => Err(ManifestError::Limit(format!(
                "{name}: with what it extends, it has {size} bytes, and {limit} are allowed"
            ))),
            false => Ok(()),
        }
    }
}

/// Follows redirects itself, so that each step is looked at.
pub(crate) fn fetch(url: &Url, loader: &dyn Loader, limits: &Limits) -> Result<Vec<u8>, LoadError> {
    let mut next = url.clone();
    for _ in 0..=limits.max_manifest_url_redirects {
        let unreadable = |problem: String| LoadError::Unreadable {
            name: url.to_string(),
            problem,
        };
        pin::check(&next).map_err(unreadable)?;
        match loader.fetch(&next, limits)? {
            Fetched::Body(body) if body.len() > limits.max_manifest_url_bytes => {
                return Err(LoadError::TooLarge {
                    name: url.to_string(),
                    limit: limits.max_manifest_url_bytes,
                });
            }
            Fetched::Body(body) => return Ok(body),
            Fetched::Redirect(to) => {
                next = pin::address(&to, Some(&next)).map_err(|problem| LoadError::Unreadable {
                    name: url.to_string(),
                    problem: format!("it sends us to `{to}`: {problem}"),
                })?;
            }
        }
    }
    Err(LoadError::Unreadable {
        name: url.to_string(),
        problem: "it sends us on and on".to_owned(),
    })
}

fn refused(document: &str, entry: &str, problem: String) -> ManifestError {
    ManifestError::Extends {
        document: document.to_owned(),
        entry: entry.to_owned(),
        problem,
    }
}

/// Manifests that extend one another in every which way.
const MOST_DOCUMENTS: usize = 256;
