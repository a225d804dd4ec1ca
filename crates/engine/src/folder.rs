//! Walking a folder. Links are never followed.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// What is in a folder and below it, by path from the folder, in byte order.
#[derive(Debug, Default)]
pub struct Walked {
    /// Plain files.
    pub files: Vec<String>,
    /// What is neither a file nor a folder: links, sockets, devices, names that are no text.
    pub others: Vec<String>,
    /// Folders that were not looked into.
    pub skipped: Vec<String>,
}

/// Which folders are looked into.
#[derive(Debug, Clone, Copy)]
pub enum Extent {
    /// All of them.
    Whole,
    /// Those that people write in: nothing hidden, nothing that a tool has fetched or built.
    Sources,
    /// None: what stands in the folder itself.
    Flat,
}

impl Extent {
    fn includes(self, name: &str) -> bool {
        match self {
            Self::Whole => true,
            Self::Sources => !name.starts_with('.') && !FETCHED.contains(&name),
            Self::Flat => false,
        }
    }
}

/// A file or folder cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{}`: {error}", path.display())]
pub struct Unreadable {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

/// Looks at everything that stands in a folder now.
pub fn walk(folder: &Path, extent: Extent) -> Result<Walked, Unreadable> {
    let mut walked = Walked::default();
    let mut open = vec![(folder.to_owned(), String::new())];
    while let Some((path, prefix)) = open.pop() {
        let failed = |error| Unreadable {
            path: path.clone(),
            error,
        };
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let name = name.to_string_lossy();
                walked.others.push(format!("{prefix}{name}"));
                continue;
            };
            let below = format!("{prefix}{name}");
            if kind.is_dir() {
                if extent.includes(name) {
                    open.push((entry.path(), format!("{below}/")));
                } else {
                    walked.skipped.push(format!("{below}/"));
                }
            } else if kind.is_file() {
                walked.files.push(below);
            } else {
                walked.others.push(below);
            }
        }
    }
    walked.files.sort();
    walked.others.sort();
    walked.skipped.sort();
    Ok(walked)
}

/// The folder that a file stands in.
pub fn parent(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Makes the name of a file durable, which is in its folder.
pub fn sync_parent(file: &Path) -> io::Result<()> {
    match cfg!(unix) {
        true => fs::File::open(parent(file))?.sync_all(),
        false => Ok(()),
    }
}

const FETCHED: [&str; 4] = ["__pycache__", "node_modules", "target", "vendor"];
