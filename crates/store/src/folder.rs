//! The data folder: where the database and the key file lie.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use countersign_canon::Digest;

/// A data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(PathBuf);

impl Folder {
    /// Names a folder; touches nothing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The database file.
    pub fn database(&self) -> PathBuf {
        self.0.join("log.db")
    }

    /// What is committed and not in the database file yet.
    pub(crate) fn write_ahead_log(&self) -> PathBuf {
        self.0.join("log.db-wal")
    }

    /// The database as a file that nobody changes: how a copy on a read-only medium can be opened.
    /// `None` if a write-ahead log lies beside it, which would be left out.
    pub(crate) fn frozen_database(&self) -> Option<String> {
        let pending = fs::metadata(self.write_ahead_log()).is_ok_and(|wal| wal.len() > 0);
        let path = self.database();
        let name = path
            .to_str()?
            .replace('%', "%25")
            .replace('?', "%3f")
            .replace('#', "%23");
        (!pending).then(|| format!("file:{name}?immutable=1"))
    }

    /// The master key file.
    pub fn master_key(&self) -> PathBuf {
        self.0.join("master.key")
    }

    /// The key that signs the head of the audit.
    pub fn audit_key(&self) -> PathBuf {
        self.0.join("audit.key")
    }

    /// The key that signs checkpoints of the log.
    pub fn log_key(&self) -> PathBuf {
        self.0.join("log.key")
    }

    /// The public keys that signed checkpoints before, one a line.
    pub fn earlier_log_keys(&self) -> PathBuf {
        self.0.join("log.earlier-keys")
    }

    /// A copy of the last checkpoint, beside the database.
    pub fn last_checkpoint(&self) -> PathBuf {
        self.0.join("log.checkpoint")
    }

    /// The folder of the audit.
    pub fn audit(&self) -> PathBuf {
        self.0.join("audit")
    }

    /// Where the policies with this digest are kept.
    pub fn policies(&self, digest: Digest) -> PathBuf {
        let name = digest.to_string().replace(':', "-");
        self.0.join("policies").join(name).with_extension("json")
    }

    /// Makes the folder, for its owner only, if it is not there.
    pub(crate) fn create(&self) -> io::Result<()> {
        if self.0.is_dir() {
            return Ok(());
        }
        let new: Vec<&Path> = self
            .0
            .ancestors()
            .take_while(|folder| !folder.exists())
            .collect();
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.0)?;
        new.into_iter().filter_map(Path::parent).try_for_each(sync)
    }

    /// Makes an empty database file, for its owner only, if there is none. SQLite gives its
    /// companions the same permissions.
    pub(crate) fn create_database(&self) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(self.database()) {
            // Opening the database gives the precise error.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            result => result.map(drop),
        }
    }

    /// Makes the names of new files durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        sync(&self.0)
    }
}

/// Makes what was created in a folder durable. An empty path is the current folder.
fn sync(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    if cfg!(unix) {
        fs::File::open(folder)?.sync_all()
    } else {
        Ok(())
    }
}

/// Replaces a file of a data folder as a whole: a reader sees the old text or the new one, also after a power cut.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.new", std::process::id()));
    let mut file = private().create(true).truncate(true).open(&temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), sync)
}

/// For the owner only.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
