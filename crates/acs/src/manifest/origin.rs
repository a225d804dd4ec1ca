//! Where a document comes from, and what that means for the paths in it.

use std::fmt;
use std::path::{Path, PathBuf};

use countersign_canon::{Json, Object};
use url::Url;

/// Where a document comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// The real path of a file.
    File(PathBuf),
    /// An address.
    Address(Url),
}

impl Origin {
    /// The folder of a file.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::File(path) => path.parent(),
            Self::Address(_) => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Address(url) => write!(f, "{url}"),
        }
    }
}

/// Makes the paths in a document lead from the folder of the document, wherever we are.
pub(super) fn anchor(members: &mut Object, folder: &Path) {
    for section in ["policies", "annotators"] {
        each(members.get_mut(section), |fields| {
            anchor_fields(fields, folder);
        });
    }
    each(members.get_mut("intervention_points"), |point| {
        if let Some(Json::Object(binding)) = point.get_mut("policy") {
            anchor_fields(binding, folder);
        }
        each(point.get_mut("annotations"), |fields| {
            anchor_fields(fields, folder);
        });
    });
}

fn each(section: Option<&mut Json>, mut change: impl FnMut(&mut Object)) {
    let Some(Json::Object(section)) = section else {
        return;
    };
    let names: Vec<String> = section.iter().map(|(name, _)| name.to_owned()).collect();
    for name in names {
        if let Some(Json::Object(fields)) = section.get_mut(&name) {
            change(fields);
        }
    }
}

fn anchor_fields(fields: &mut Object, folder: &Path) {
    for name in PATHS {
        match fields.get_mut(name) {
            Some(Json::String(path)) => *path = anchored(path, folder),
            Some(Json::Array(paths)) => {
                for path in paths {
                    if let Json::String(path) = path {
                        *path = anchored(path, folder);
                    }
                }
            }
            _ => {}
        }
    }
}

fn anchored(path: &str, folder: &Path) -> String {
    match path.is_empty() {
        true => String::new(),
        false => folder.join(path).to_string_lossy().into_owned(),
    }
}

/// Fields that name files.
pub(super) const PATHS: &[&str] = &[
    "bundle",
    "data",
    "data_paths",
    "policy_path",
    "entities_path",
    "schema_path",
    "system_prompt_file",
];
