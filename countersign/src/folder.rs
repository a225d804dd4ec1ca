//! Walking a folder. Links are never followed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::errors::{Code, Failure};
use crate::input::unreadable;

/// What is in a folder and below it, by path from the folder, in byte order.
#[derive(Default)]
pub(crate) struct Walked {
    /// Plain files.
    pub(crate) files: Vec<String>,
    /// What is neither a file nor a folder: links, sockets, devices, names that are no text.
    pub(crate) others: Vec<String>,
    /// Folders that were not looked into.
    pub(crate) skipped: Vec<String>,
}

/// Which folders are looked into.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
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

pub(crate) fn walk(folder: &Path, extent: Extent) -> Result<Walked, Failure> {
    let mut walked = Walked::default();
    let mut open = vec![(folder.to_owned(), String::new())];
    while let Some((path, prefix)) = open.pop() {
        let failed = |error| unreadable(&path.display().to_string(), &error);
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                walked
                    .others
                    .push(format!("{prefix}{}", name.to_string_lossy()));
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
pub(crate) fn parent(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Writes a file as a whole: whoever looks sees the old text or the new one.
pub(crate) fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = parent(file).join(name);
    let written = File::create_new(&temporary).and_then(|mut new| {
        new.write_all(text)?;
        new.sync_all()
    });
    written
        .and_then(|()| fs::rename(&temporary, file))
        .inspect_err(|_| {
            // Nobody will look for half a file.
            let _ = fs::remove_file(&temporary);
        })
}

/// A folder that is gone when we are.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new folder among the temporary files, for this purpose.
    pub(crate) fn new(purpose: &str) -> Result<Self, Failure> {
        let failed = |error: &dyn ToString| Failure::new(Code::Folder, error.to_string());
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| failed(&error))?;
        let random = base16ct::lower::encode_string(&random);
        let path = std::env::temp_dir().join(format!("countersign-{purpose}-{random}"));
        fs::create_dir(&path).map_err(|error| failed(&error))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const FETCHED: [&str; 4] = ["__pycache__", "node_modules", "target", "vendor"];
