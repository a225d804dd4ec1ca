//! Folders, and files that are written as a whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub(crate) use countersign_engine::folder::{Extent, parent, sync_parent, walk};

use crate::errors::{Code, Failure};
use crate::input::uncreated;

/// Writes a file as a whole: whoever looks sees the old text or the new one, also after a power cut.
pub(crate) fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = parent(file).join(name);
    let new = File::create_new(&temporary).or_else(|error| match error.kind() {
        // A process that had our number was killed here. In containers many have the same.
        io::ErrorKind::AlreadyExists => {
            fs::remove_file(&temporary)?;
            File::create_new(&temporary)
        }
        _ => Err(error),
    });
    let written = new.and_then(|mut new| {
        new.write_all(text)?;
        new.sync_all()
    });
    written
        .and_then(|()| fs::rename(&temporary, file))
        .inspect_err(|_| {
            // Nobody will look for half a file.
            let _ = fs::remove_file(&temporary);
        })
        .and_then(|()| sync_parent(file))
}

/// Writes a new file. Never writes over one: what is there may be somebody's only copy.
pub(crate) fn create(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = File::create_new(file).and_then(|mut new| {
        new.write_all(bytes)?;
        new.sync_all()
    });
    written.map_err(|error| uncreated(file, &error))
}

/// Makes a folder for its owner only, with those that it lies in, if it is not there.
pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    private().recursive(true).create(folder)
}

/// The same for one that must be new.
pub(crate) fn create_new_private(folder: &Path) -> io::Result<()> {
    private().create(folder)
}

fn private() -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
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
        create_new_private(&path).map_err(|error| failed(&error))?;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at once")]

    use super::*;

    #[test]
    fn what_a_killed_process_of_our_number_left_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("book.json");
        let left = format!("book.json.{}.tmp", std::process::id());
        fs::write(folder.path().join(left), "ha").unwrap();
        replace(&file, b"whole").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
