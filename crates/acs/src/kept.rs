//! What policies were read from, kept so that they can be made ready again without it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_canon::{Json, Object};
use url::Url;

use crate::{Fetched, Limits, LoadError, Loader};

/// Files, folders and addresses as they were when somebody looked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    files: BTreeMap<PathBuf, Vec<u8>>,
    folders: BTreeMap<PathBuf, Vec<PathBuf>>,
    addresses: BTreeMap<String, Result<String, Vec<u8>>>,
}

/// Reads through another loader, and keeps what was read.
pub struct Keeping<'a> {
    from: &'a dyn Loader,
    kept: Mutex<Kept>,
}

impl<'a> Keeping<'a> {
    /// Nothing is kept yet.
    pub fn new(from: &'a dyn Loader) -> Self {
        Self {
            from,
            kept: Mutex::default(),
        }
    }

    /// What was read.
    pub fn into_kept(self) -> Kept {
        self.kept
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loader for Keeping<'_> {
    fn real(&self, path: &Path) -> Result<PathBuf, LoadError> {
        self.from.real(path)
    }

    fn read(&self, path: &Path, max_bytes: usize) -> Result<Vec<u8>, LoadError> {
        let bytes = self.from.read(path, max_bytes)?;
        self.kept().files.insert(path.to_owned(), bytes.clone());
        Ok(bytes)
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>, LoadError> {
        let files = self.from.files(path)?;
        self.kept().folders.insert(path.to_owned(), files.clone());
        Ok(files)
    }

    fn fetch(&self, url: &Url, limits: &Limits) -> Result<Fetched, LoadError> {
        let fetched = self.from.fetch(url, limits)?;
        let kept = match &fetched {
            Fetched::Redirect(to) => Ok(to.clone()),
            Fetched::Body(body) => Err(body.clone()),
        };
        self.kept().addresses.insert(url.to_string(), kept);
        Ok(fetched)
    }
}

/// Nothing is read but what was kept.
impl Loader for Kept {
    fn real(&self, path: &Path) -> Result<PathBuf, LoadError> {
        Ok(path.to_owned())
    }

    fn read(&self, path: &Path, _: usize) -> Result<Vec<u8>, LoadError> {
        let found = self.files.get(path).cloned();
        found.ok_or_else(|| not_kept(path.display().to_string()))
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>, LoadError> {
        let found = self.folders.get(path).cloned();
        found.ok_or_else(|| not_kept(path.display().to_string()))
    }

    fn fetch(&self, url: &Url, _: &Limits) -> Result<Fetched, LoadError> {
        match self.addresses.get(url.as_str()) {
            Some(Ok(to)) => Ok(Fetched::Redirect(to.clone())),
            Some(Err(body)) => Ok(Fetched::Body(body.clone())),
            None => Err(not_kept(url.to_string())),
        }
    }
}

impl Kept {
    /// As a document.
    pub fn to_json(&self) -> Json {
        let name = |path: &PathBuf| path.display().to_string();
        let files = self.files.iter().map(|(path, it)| (name(path), bytes(it)));
        let folders = self.folders.iter().map(|(path, files)| {
            let files = files.iter().map(|file| Json::from(name(file)));
            (name(path), Json::Array(files.collect()))
        });
        let addresses = self.addresses.iter().map(|(url, found)| {
            let found = match found {
                Ok(to) => Json::object([("redirect", Json::from(to.as_str()))]),
                Err(body) => bytes(body),
            };
            (url.clone(), found)
        });
        Json::object([
            ("addresses", Json::object(addresses)),
            ("files", Json::object(files)),
            ("folders", Json::object(folders)),
        ])
    }

    /// Reads a document of [`Kept::to_json`].
    pub fn from_json(document: &Json) -> Option<Self> {
        let part = |name: &str| document.get(name).and_then(Json::as_object);
        let mut kept = Self::default();
        for (path, file) in part("files")? {
            kept.files.insert(PathBuf::from(path), content(file)?);
        }
        for (path, files) in part("folders")? {
            let files = files.as_array()?.iter();
            let files = files.map(|file| file.as_str().map(PathBuf::from));
            let files = files.collect::<Option<_>>()?;
            kept.folders.insert(PathBuf::from(path), files);
        }
        for (url, found) in part("addresses")? {
            let redirect = found.get("redirect").and_then(Json::as_str);
            let found = match redirect {
                Some(to) => Ok(to.to_owned()),
                None => Err(content(found)?),
            };
            kept.addresses.insert(url.to_owned(), found);
        }
        Some(kept)
    }
}

fn bytes(bytes: &[u8]) -> Json {
    match std::str::from_utf8(bytes) {
        Ok(text) => Json::from(text),
        Err(_) => Json::object([("hex", Json::from(base16ct::lower::encode_string(bytes)))]),
    }
}

fn content(json: &Json) -> Option<Vec<u8>> {
    match json.as_str() {
        Some(text) => Some(text.as_bytes().to_vec()),
        None => {
            let members: &Object = json.as_object()?;
            base16ct::lower::decode_vec(members.get("hex")?.as_str()?).ok()
        }
    }
}

fn not_kept(name: String) -> LoadError {
    LoadError::Unreadable {
        name,
        problem: "it was not kept".to_owned(),
    }
}
