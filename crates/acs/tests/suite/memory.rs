//! Files and addresses in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use countersign_acs::{Fetched, Limits, LoadError, Loader};
use url::Url;

/// Files, links between them, and answers of addresses.
#[derive(Default)]
pub(crate) struct Memory {
    files: BTreeMap<PathBuf, Vec<u8>>,
    links: BTreeMap<PathBuf, PathBuf>,
    answers: BTreeMap<String, Fetched>,
    pub(crate) asked: RefCell<Vec<String>>,
}

impl Memory {
    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    pub(crate) fn link(mut self, path: &str, to: &str) -> Self {
        self.links.insert(path.into(), to.into());
        self
    }

    pub(crate) fn at(mut self, url: &str, text: &str) -> Self {
        self.answers
            .insert(url.to_owned(), Fetched::Body(text.into()));
        self
    }

    pub(crate) fn redirect(mut self, url: &str, to: &str) -> Self {
        self.answers
            .insert(url.to_owned(), Fetched::Redirect(to.to_owned()));
        self
    }
}

impl Loader for Memory {
    fn real(&self, path: &Path) -> Result<PathBuf, LoadError> {
        let mut plain = PathBuf::from("/");
        for part in path.components() {
            match part {
                Component::ParentDir => drop(plain.pop()),
                Component::Normal(name) => plain.push(name),
                _ => {}
            }
        }
        let real = self.links.get(&plain).cloned().unwrap_or(plain);
        match self.files.contains_key(&real) {
            true => Ok(real),
            false => Err(missing(&real)),
        }
    }

    fn read(&self, path: &Path, max_bytes: usize) -> Result<Vec<u8>, LoadError> {
        let body = self.files.get(path).ok_or_else(|| missing(path))?;
        match body.len() > max_bytes {
            true => Err(LoadError::TooLarge {
                name: path.display().to_string(),
                limit: max_bytes,
            }),
            false => Ok(body.clone()),
        }
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>, LoadError> {
        let below: Vec<PathBuf> = self
            .files
            .keys()
            .filter(|file| file.starts_with(path))
            .cloned()
            .collect();
        match below.is_empty() {
            true => Err(missing(path)),
            false => Ok(below),
        }
    }

    fn fetch(&self, url: &Url, _: &Limits) -> Result<Fetched, LoadError> {
        self.asked.borrow_mut().push(url.to_string());
        let answer = self.answers.get(url.as_str()).cloned();
        answer.ok_or_else(|| missing(Path::new(url.as_str())))
    }
}

fn missing(path: &Path) -> LoadError {
    LoadError::Unreadable {
        name: path.display().to_string(),
        problem: "not found".to_owned(),
    }
}
