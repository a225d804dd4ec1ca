//! This process, by a name that others can ask after.
//!
//! The name is a file that the process holds locked as long as it lives. Whoever can lock it knows
//! that its owner is gone, whatever killed it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A process that may have begun something.
pub(crate) struct Instance {
    name: String,
    path: PathBuf,
    _held: File,
}

impl Instance {
    /// Takes a new name in this folder.
    pub(crate) fn begin(folder: &Path) -> io::Result<Self> {
        let folder = folder.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = base16ct::lower::encode_string(&random);
        let path = folder.join(&name);
        let held = File::create_new(&path)?;
        held.lock()?;
        Ok(Self {
            name,
            path,
            _held: held,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the process of this name still runs. In doubt it does.
    pub(crate) fn is_alive(&self, name: &str, folder: &Path) -> bool {
        if name == self.name {
            return true;
        }
        // A name that is no name of ours is nobody's.
        if name.len() != 32 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        match File::open(folder.join(FOLDER).join(name)) {
            Ok(file) => matches!(
                file.try_lock(),
                Err(TryLockError::WouldBlock | TryLockError::Error(_))
            ),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A file that stays behind is unlocked, which says the same.
        let _ = fs::remove_file(&self.path);
    }
}

const FOLDER: &str = "run";
