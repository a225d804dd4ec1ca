//! The file that holds an approver's key: outside the data folder, for its owner only.
//!
//! A rotation writes the new key beside the old one, changes the list of approvers in one step, and
//! then lets the new file take the place of the old one. Whatever stops it, the list names exactly one
//! of the two keys, and [`KeyFile::open`] uses that one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use countersign_approval::{Human, KeyId, KeyStatus, SigningKey};
use countersign_engine::Approvers;
use countersign_vault::{KeyringError, open_or_create_secret, open_secret};

use crate::errors::{Code, Failure};
use crate::folder::{create_private, parent};
use crate::input::default_config_folder;

/// Where the key is.
#[derive(Args)]
pub(crate) struct KeyOption {
    /// Your key [default: countersign/approver.key in the user's configuration folder]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl KeyOption {
    /// The file, which does not lie in this data folder.
    pub(crate) fn file(&self, data: &Path) -> Result<KeyFile, Failure> {
        let usual = || default_config_folder().map(|folder| folder.join("approver.key"));
        let path = self.key.clone().or_else(usual);
        let path = path.and_then(|path| std::path::absolute(path).ok());
        let path = path.ok_or_else(|| {
            failure("there is no home folder: say where your key is with --key".to_owned())
        })?;
        // SECURITY: what lies in the data folder is read by those who run agents.
        if resolved(&parent(&path)).starts_with(resolved(data)) {
            let path = path.display();
            return Err(failure(format!(
                "`{path}` is in the data folder: keep your key elsewhere"
            )));
        }
        Ok(KeyFile { path })
    }
}

/// The file of one person's key.
pub(crate) struct KeyFile {
    path: PathBuf,
}

/// A key that may decide, and whose it is.
pub(crate) struct ApproverKey {
    pub(crate) person: Human,
    pub(crate) id: KeyId,
    pub(crate) secret: SigningKey,
}

impl KeyFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The key in the file; a new one if there is no file.
    pub(super) fn open_or_create(&self) -> Result<SigningKey, Failure> {
        create_private(&parent(&self.path)).map_err(|error| self.io("make", &error))?;
        Ok(SigningKey::from_bytes(
            &*open_or_create_secret(&self.path).map_err(unusable)?,
        ))
    }

    /// The key that may decide. Finishes a rotation that was stopped on its way.
    pub(crate) fn open(&self, approvers: &Approvers) -> Result<ApproverKey, Failure> {
        if let Some(key) = self.next()?
            && is_active(&key, approvers)
        {
            self.install()?;
        }
        if !self.path.exists() {
            let path = self.path.display();
            return Err(failure(format!("there is no key in `{path}`")));
        }
        let secret = SigningKey::from_bytes(&*open_secret(&self.path).map_err(unusable)?);
        let id = KeyId::of(&secret.verifying_key());
        let path = self.path.display();
        match approvers.key(id) {
            Some(key) if key.status == KeyStatus::Active => Ok(ApproverKey {
                person: key.person.clone(),
                id,
                secret,
            }),
            Some(key) => Err(failure(format!("the key in `{path}` is {}", key.status))),
            None => Err(failure(format!("the key in `{path}` is not registered"))),
        }
    }

    /// The first step of a rotation: the next key, durable beside the one in use. One that an earlier
    /// rotation left there was never used, and serves.
    pub(super) fn prepare(&self) -> Result<SigningKey, Failure> {
        let next = open_or_create_secret(&self.next_path()).map_err(unusable)?;
        Ok(SigningKey::from_bytes(&next))
    }

    /// The last step of a rotation: the next key takes the place of the old one.
    pub(super) fn install(&self) -> Result<(), Failure> {
        let moved = fs::rename(self.next_path(), &self.path).and_then(|()| match cfg!(unix) {
            true => File::open(parent(&self.path))?.sync_all(),
            false => Ok(()),
        });
        moved.map_err(|error| self.io("replace", &error))
    }

    fn next(&self) -> Result<Option<SigningKey>, Failure> {
        let path = self.next_path();
        match path.exists() {
            true => {
                let next = open_secret(&path).map_err(unusable)?;
                Ok(Some(SigningKey::from_bytes(&next)))
            }
            false => Ok(None),
        }
    }

    fn next_path(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        name.into()
    }

    fn io(&self, what: &str, error: &io::Error) -> Failure {
        failure(format!("cannot {what} `{}`: {error}", self.path.display()))
    }
}

fn is_active(key: &SigningKey, approvers: &Approvers) -> bool {
    let known = approvers.key(KeyId::of(&key.verifying_key()));
    known.is_some_and(|key| key.status == KeyStatus::Active)
}

/// The path without links, as far as it is there.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for ancestor in absolute.ancestors() {
        if let Ok(real) = fs::canonicalize(ancestor) {
            let rest = absolute.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return real.join(rest);
        }
    }
    absolute
}

/// What is wrong with a file of secrets, in words for this one.
fn unusable(error: KeyringError) -> Failure {
    failure(match error {
        KeyringError::Io { what, path, source } => {
            format!("cannot {what} `{}`: {source}", path.display())
        }
        KeyringError::Form(path) => format!("`{}` is not a key", path.display()),
        KeyringError::Exposed { path, mode } => {
            format!("other users can read `{}` (mode {mode:o})", path.display())
        }
        other => other.to_string(),
    })
}

fn failure(message: String) -> Failure {
    Failure::new(Code::ApproverKey, message)
}

#[cfg(test)]
mod tests;
