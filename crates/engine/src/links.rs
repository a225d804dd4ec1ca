//! Symbolic links of this machine, and which of them a decision met.

use std::cell::RefCell;
use std::collections::BTreeMap;

use countersign_canon::Json;
use countersign_policy::matcher::{Link, NormalPath};

/// The links that were met. They go into the log with the decision, because whoever takes it again
/// later cannot look at today's files.
#[derive(Default)]
pub(crate) struct Links(RefCell<BTreeMap<String, Json>>);

impl Links {
    /// Looks at a path and keeps what it found, if it is a link or cannot be known.
    pub(crate) fn examine(&self, path: &NormalPath) -> Link {
        let link = examine(path);
        let found = match &link {
            Link::No => return link,
            Link::To(target) => Json::from(target.as_str()),
            Link::Unknown => Json::Null,
        };
        self.0.borrow_mut().insert(path.as_str().to_owned(), found);
        link
    }

    /// What was met, if anything was.
    pub(crate) fn into_json(self) -> Option<Json> {
        let met = self.0.into_inner();
        (!met.is_empty()).then(|| Json::object(met))
    }
}

/// Whether a path of this machine is a link.
pub(crate) fn examine(path: &NormalPath) -> Link {
    match std::fs::symlink_metadata(path.as_str()) {
        Ok(metadata) if metadata.file_type().is_symlink() => std::fs::read_link(path.as_str())
            .ok()
            .and_then(|target| target.into_os_string().into_string().ok())
            .map_or(Link::Unknown, Link::To),
        Ok(_) => Link::No,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Link::No,
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Link::No,
        Err(_) => Link::Unknown,
    }
}
