//! A client's file, its backup, and how one takes the place of the other.
//!
//! Whoever is killed on the way leaves a file that is whole, old or new, and a backup that belongs to
//! it: the backup is durable before its note, the note before the file is replaced, and the note
//! names every text that we may have written.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use countersign_canon::{BoundedReadError, Digest, Json, Limits, read_bounded};

use super::MAX_BYTES;
use crate::errors::{Code, Failure};
use crate::folder;

/// A file as it was when it was looked at.
pub(super) struct Target {
    /// As it was named.
    pub(super) path: PathBuf,
    /// Where it is, behind every link.
    pub(super) real: PathBuf,
    pub(super) text: String,
}

/// Whether what is replaced is worth a backup.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Backup,
    /// It was ours: a backup that is there stays, and no other is made.
    Nothing,
}

/// What undoing would do.
pub(super) enum Undo {
    /// There is no backup.
    Nothing,
    /// The file is its backup already.
    Done,
    /// The file is what we wrote: this was there before.
    Restore(String),
    /// Somebody else has changed the file since: this was there before, and only what we put in may go.
    Changed(String),
}

impl Target {
    /// `None` if there is no such file.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, Failure> {
        if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let real = fs::canonicalize(path).map_err(|error| unreadable(path, &error))?;
        let text = text_of(&real)?;
        Ok(Some(Self {
            path: path.to_owned(),
            real,
            text,
        }))
    }

    pub(super) fn backup(&self) -> PathBuf {
        beside(&self.real, BACKUP)
    }

    /// The backup that was made last.
    pub(super) fn older(&self) -> Option<String> {
        text_of(&self.backup()).ok()
    }

    /// Replaces the file, and keeps what it was before us unless it is `Keep::Nothing`.
    pub(super) fn write(&self, new: &str, original: &str, keep: Keep) -> Result<(), Failure> {
        self.check_unchanged()?;
        let digest = Digest::of(new.as_bytes());
        let note = match self.note()? {
            // It is still what we wrote, so the backup is what was there before us.
            Some(mut note)
                if note.written.contains(&Digest::of(self.text.as_bytes()))
                    && self.backup().exists() =>
            {
                note.written.push(digest);
                Some(note)
            }
            _ if keep == Keep::Nothing => None,
            _ => {
                self.keep_older_backup(original)?;
                self.replace(&self.backup(), original.as_bytes())?;
                Some(Note {
                    original: Digest::of(original.as_bytes()),
                    written: vec![digest],
                })
            }
        };
        if let Some(note) = note {
            self.replace(&self.note_path(), &note.to_text())?;
        }
        self.replace(&self.real, new.as_bytes())
    }

    /// FAIL-CLOSED: only what nobody else has touched says what is ours.
    pub(super) fn undo(&self) -> Result<Undo, Failure> {
        let backup = self.backup();
        if !backup.exists() {
            return Ok(Undo::Nothing);
        }
        let original = text_of(&backup)?;
        if original == self.text {
            return Ok(Undo::Done);
        }
        let digest = Digest::of(original.as_bytes());
        let refused = |what: &str| {
            Failure::new(
                Code::Undo,
                format!(
                    "{what}, so `{}` was not touched; its backup is `{}`",
                    self.path.display(),
                    backup.display()
                ),
            )
        };
        match self.note()? {
            None => Err(refused("the note beside the backup is gone")),
            Some(note) if note.original != digest => Err(refused("the backup was changed")),
            Some(note) if !note.written.contains(&Digest::of(self.text.as_bytes())) => {
                Ok(Undo::Changed(original))
            }
            Some(_) => Ok(Undo::Restore(original)),
        }
    }

    pub(super) fn restore(&self, original: &str) -> Result<(), Failure> {
        self.check_unchanged()?;
        self.replace(&self.real, original.as_bytes())?;
        self.forget()
    }

    /// Removes the backup of a file that is as it was.
    pub(super) fn forget(&self) -> Result<(), Failure> {
        Self::remove(&self.note_path())?;
        Self::remove(&self.backup())
    }

    fn remove(path: &Path) -> Result<(), Failure> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(path, &error)),
            _ => Ok(()),
        }
    }

    /// Nothing of ours is left in the file. Its backup is not what it is now, so it is kept, and tells of nothing
    /// to undo any more.
    pub(super) fn retire(&self) -> Result<PathBuf, Failure> {
        let kept = self.set_backup_aside()?;
        Self::remove(&self.note_path())?;
        Ok(kept)
    }

    /// Clients write their files too.
    fn check_unchanged(&self) -> Result<(), Failure> {
        match text_of(&self.real)? == self.text {
            true => Ok(()),
            false => Err(Failure::new(
                Code::Raced,
                format!("`{}` was changed meanwhile", self.path.display()),
            )),
        }
    }

    fn note_path(&self) -> PathBuf {
        beside(&self.real, NOTE)
    }

    fn note(&self) -> Result<Option<Note>, Failure> {
        let path = self.note_path();
        if !path.exists() {
            return Ok(None);
        }
        let text = text_of(&path)?;
        Note::read(&text).map(Some).ok_or_else(|| {
            Failure::new(
                Code::Undo,
                format!("`{}` is not a note about a backup", path.display()),
            )
        })
    }

    /// A backup of something else is not ours to lose.
    fn keep_older_backup(&self, original: &str) -> Result<(), Failure> {
        let backup = self.backup();
        if !backup.exists() || text_of(&backup).is_ok_and(|text| text == original) {
            return Ok(());
        }
        self.set_backup_aside().map(drop)
    }

    /// Under the next number that is free.
    fn set_backup_aside(&self) -> Result<PathBuf, Failure> {
        let free = (1..u32::MAX)
            .map(|number| beside(&self.real, &format!("{BACKUP}.{number}")))
            .find(|path| !path.exists());
        let free = free.ok_or_else(|| Failure::new(Code::Folder, "there are too many backups"))?;
        fs::rename(self.backup(), &free).map_err(|error| unwritable(&free, &error))?;
        Ok(free)
    }

    /// Writes a file as a whole, with the owner and the permissions of the client's file.
    fn replace(&self, path: &Path, content: &[u8]) -> Result<(), Failure> {
        let like = fs::metadata(&self.real).map_err(|error| unreadable(&self.real, &error))?;
        if like.permissions().readonly() {
            let error = io::Error::other("it is read-only");
            return Err(unwritable(&self.real, &error));
        }
        let temporary = beside(path, &format!("{}.tmp", std::process::id()));
        let written = private(&temporary).and_then(|mut file| {
            file.write_all(content)?;
            own_like(&file, &like)?;
            file.set_permissions(like.permissions())?;
            file.sync_all()
        });
        written
            .and_then(|()| fs::rename(&temporary, path))
            .inspect_err(|_| {
                // Nobody will look for half a file.
                let _ = fs::remove_file(&temporary);
            })
            .and_then(|()| folder::sync_parent(path))
            .map_err(|error| unwritable(path, &error))
    }
}

/// Whether a file that is gone has left a backup.
pub(super) fn backup_of_missing(path: &Path) -> Option<PathBuf> {
    Some(beside(path, BACKUP)).filter(|backup| backup.exists())
}

/// What is kept beside a backup.
struct Note {
    original: Digest,
    /// More than one when a file was connected again before it was undone.
    written: Vec<Digest>,
}

impl Note {
    fn to_text(&self) -> Vec<u8> {
        let digest = |digest: &Digest| Json::from(digest.to_string());
        let json = Json::object([
            ("original", digest(&self.original)),
            (
                "written",
                Json::Array(self.written.iter().map(digest).collect()),
            ),
        ]);
        let mut text = json.to_sorted_ascii();
        text.push(b'\n');
        text
    }

    fn read(text: &str) -> Option<Self> {
        let json = Json::admit(text.as_bytes(), &Limits::plan()).ok()?;
        let digest = |json: &Json| json.as_str()?.parse().ok();
        let written = json.get("written")?.as_array()?.iter();
        Some(Self {
            original: digest(json.get("original")?)?,
            written: written.map(digest).collect::<Option<_>>()?,
        })
    }
}

fn text_of(path: &Path) -> Result<String, Failure> {
    // Opening a pipe would wait for whoever writes into it.
    let found = path.metadata().map_err(|error| unreadable(path, &error))?;
    if !found.is_file() {
        let message = format!("`{}` is no file", path.display());
        return Err(Failure::new(Code::ClientFile, message));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let bytes = read_bounded(file, MAX_BYTES).map_err(|error| match error {
        BoundedReadError::Io(error) => unreadable(path, &error),
        error => Failure::new(Code::TooLarge, format!("`{}` is {error}", path.display())),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("`{}` is not UTF-8 at byte {at}", path.display());
        Failure::new(Code::ClientFile, message)
    })
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(".");
    name.push(suffix);
    folder::parent(path).join(name)
}

/// A new file that nobody else may read: such files hold tokens.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn own_like(file: &File, like: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let now = file.metadata()?;
    if (now.uid(), now.gid()) == (like.uid(), like.gid()) {
        return Ok(());
    }
    fchown(file, Some(like.uid()), Some(like.gid()))
}

#[cfg(not(unix))]
fn own_like(_: &File, _: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot read `{}`: {error}", path.display());
    Failure::new(Code::Input, message)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write `{}`: {error}", path.display());
    Failure::new(Code::Folder, message)
}

const BACKUP: &str = "countersign-backup";
const NOTE: &str = "countersign-backup.json";
