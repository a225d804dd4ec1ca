//! Files that hold secrets: for their owner only, whole or not there at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::KeyringError;
use crate::cipher::{KEY_LEN, KeyBytes, random};

/// Reads a file that holds one secret; makes it, with a new one, if there is none.
///
/// Of several processes that start at once, one makes the file and the others read it.
pub fn open_or_create_secret(path: &Path) -> Result<Zeroizing<[u8; 32]>, KeyringError> {
    if !path.exists() {
        let secret: KeyBytes = Zeroizing::new(random::<KEY_LEN>()?);
        let mut text = Zeroizing::new(base16ct::lower::encode_string(secret.as_slice()));
        text.push('\n');
        create(path, text.as_bytes()).map_err(|source| io_error("create", path, source))?;
    }
    open_secret(path)
}

/// Reads a file that holds one secret.
pub fn open_secret(path: &Path) -> Result<Zeroizing<[u8; 32]>, KeyringError> {
    refuse_exposed(path)?;
    let text = Zeroizing::new(fs::read(path).map_err(|source| io_error("read", path, source))?);
    let hex = text.strip_suffix(b"\n").unwrap_or(&text);
    let mut secret = Zeroizing::new([0; KEY_LEN]);
    match base16ct::lower::decode(hex, secret.as_mut_slice()) {
        Ok(bytes) if bytes.len() == KEY_LEN => Ok(secret),
        _ => Err(KeyringError::Form(path.to_owned())),
    }
}

/// Replaces a file as a whole: a crash leaves the old one or the new one.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let temporary = write_temporary(path, text)?;
    if let Err(error) = fs::rename(&temporary, path) {
        // No copy of a key stays behind in a file that nobody will use.
        let _ = remove(&temporary);
        return Err(error);
    }
    sync_folder(path)
}

/// Like [`replace`], but leaves a file that appeared meanwhile as it is.
pub(crate) fn create(path: &Path, text: &[u8]) -> io::Result<()> {
    let temporary = write_temporary(path, text)?;
    let linked = fs::hard_link(&temporary, path);
    remove(&temporary)?;
    match linked {
        // Whatever went wrong, another process has made the file.
        Err(error) if !path.exists() => Err(error),
        _ => sync_folder(path),
    }
}

fn write_temporary(path: &Path, text: &[u8]) -> io::Result<PathBuf> {
    let suffix = random::<SUFFIX_LEN>().map_err(io::Error::other)?;
    let temporary = temporary(path, &base16ct::lower::encode_string(&suffix));
    let written = private(&temporary).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    match written {
        Ok(()) => Ok(temporary),
        Err(error) => {
            // No key stays behind in a file that nobody will use.
            let _ = remove(&temporary);
            Err(error)
        }
    }
}

#[cfg(unix)]
pub(crate) fn refuse_exposed(path: &Path) -> Result<(), KeyringError> {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = fs::metadata(path).map_err(|source| io_error("read", path, source))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyringError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn refuse_exposed(_: &Path) -> Result<(), KeyringError> {
    Ok(())
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

pub(crate) fn remove_temporaries(path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let prefix = format!("{}.", name.to_string_lossy());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Only names that `temporary` gives: what the operator keeps beside the file stays.
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = name.strip_prefix(&prefix).is_some_and(|suffix| {
            suffix.len() == 2 * SUFFIX_LEN && suffix.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        if ours {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn temporary(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Another process may have cleaned up already.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

pub(crate) fn io_error(what: &'static str, path: &Path, source: io::Error) -> KeyringError {
    KeyringError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

const SUFFIX_LEN: usize = 8;
