//! The audit of approvals: a chain of lines in the database, copied to a file that anybody can read.
//!
//! The database has the last word: a line is in the transaction of the change that it tells of, so
//! it is durable before anything runs. The file holds the same lines, one each, and beside it lie
//! the signed head and the anchor. A file that was torn by a power cut is completed from the
//! database; one that says something else is left as it is, and nothing runs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use countersign_approval::audit::{Anchor, Entry, Head, Outcome, SignedHead};
use countersign_approval::{SigningKey, UnixMs};
use countersign_canon::Hash;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};

use crate::folder::{private, replace};
use crate::{Error, Folder};

mod signer;

use signer::Signer;

/// The lines that one transaction adds to the chain.
#[derive(Default)]
pub(crate) struct Added {
    /// Where the chain ends without them, if that is known.
    known: Option<Head>,
    /// Where the chain ended before, and where it ends with them.
    ends: Option<(Head, Head)>,
    lines: Vec<u8>,
}

impl Added {
    pub(crate) fn after(known: Option<Head>) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// Adds lines to the chain, inside the transaction.
    pub(crate) fn append(&mut self, entries: &[Entry], db: &Connection) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        let (before, mut end) = match self.ends {
            Some(ends) => ends,
            None => {
                let end = self.known.map_or_else(|| head(db), Ok)?;
                (end, end)
            }
        };
        for entry in entries {
            let (line, next) = end.append(entry);
            db.prepare_cached("INSERT INTO audit (number, line) VALUES (?1, ?2)")?
                .insert((
                    i64::try_from(next.count).unwrap_or(i64::MAX),
                    String::from_utf8_lossy(&line),
                ))?;
            self.lines.extend_from_slice(&line);
            self.lines.push(b'\n');
            end = next;
        }
        self.ends = Some((before, end));
        Ok(())
    }
}

/// Where the chain ends.
pub(crate) fn head(db: &Connection) -> Result<Head, Error> {
    let last: Option<(i64, String)> = db
        .prepare_cached("SELECT number, line FROM audit ORDER BY number DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(last.map_or_else(Head::genesis, |(number, line)| Head {
        count: u64::try_from(number).unwrap_or_default(),
        hash: Hash::of(line.as_bytes()),
    }))
}

/// The files of the audit.
pub(crate) struct AuditFile {
    folder: Folder,
    /// The lines and the signed head, as long as they are the files of those names.
    open: Option<(File, File)>,
    key: Option<SigningKey>,
    signer: Option<Signer>,
    /// How long the file was when we last wrote, and how many lines it had.
    seen: Option<(u64, u64)>,
    anchored: bool,
}

impl AuditFile {
    /// Touches nothing: a log without approvals has no audit.
    pub(crate) fn new(folder: &Folder) -> Self {
        Self {
            folder: folder.clone(),
            open: None,
            key: None,
            signer: None,
            seen: None,
            anchored: true,
        }
    }

    /// The transaction with these lines is about to be committed: where the audit ends then can be signed
    /// meanwhile.
    pub(crate) fn prepare(&mut self, added: &Added) {
        let Some((_, end)) = added.ends else {
            return;
        };
        if self.signer.is_none() {
            let key = self.key().cloned();
            // What fails here is tried again, and told, when the head is written.
            self.signer = key.and_then(Signer::new).ok();
        }
        if let Some(signer) = &mut self.signer {
            signer.begin(end);
        }
    }

    fn sign(&mut self, head: Head) -> io::Result<SignedHead> {
        match self.signer.as_mut().and_then(|signer| signer.take(head)) {
            Some(signed) => Ok(signed),
            None => Ok(head.sign(self.key()?)),
        }
    }

    /// Copies the lines that the file lacks. Several processes take turns. Gives where the file ends
    /// then.
    pub(crate) fn catch_up(
        &mut self,
        added: Added,
        now: UnixMs,
        db: &Connection,
    ) -> Result<Head, Error> {
        self.write(added, now, db)
            .map_err(|error| Error::Audit(std::sync::Arc::new(error)))
    }

    /// Makes the lines durable, and writes an anchor to where they are now.
    pub(crate) fn close(&mut self, now: UnixMs, db: &Connection) -> Result<(), Error> {
        if !self.anchored {
            let head = head(db)?;
            let anchor = Anchor {
                head,
                written_at: now,
            };
            let closed = File::open(self.lines())
                .and_then(|file| file.sync_data())
                .and_then(|()| self.keep(&anchor));
            closed.map_err(|error| Error::Audit(std::sync::Arc::new(error)))?;
            self.anchored = true;
        }
        Ok(())
    }

    fn keep(&self, anchor: &Anchor) -> io::Result<()> {
        let text = [&anchor.to_text()[..], b"\n"].concat();
        replace(&self.folder.audit().join("anchor.json"), &text)
    }

    fn write(&mut self, added: Added, now: UnixMs, db: &Connection) -> io::Result<Head> {
        // What fails on the way closes the files, and with them goes the lock.
        let (mut lines, mut head) = self.open()?;
        lines.lock()?;
        let end = self.write_locked((&mut lines, &mut head), added, now, db)?;
        lines.unlock()?;
        self.open = Some((lines, head));
        Ok(end)
    }

    fn write_locked(
        &mut self,
        (file, head_file): (&mut File, &mut File),
        added: Added,
        now: UnixMs,
        db: &Connection,
    ) -> io::Result<Head> {
        if self.seen.is_none() {
            self.refuse_a_cut(db)?;
        }
        let count = self.lines_in(file)?;
        let (missing, head) = match added.ends {
            Some((before, end)) if before.count == count => (added.lines, end),
            // Others have written, or something was left behind, or the file was cut.
            _ => {
                if self.is_cut(count, now, db)? {
                    note_completed(count, now, db).map_err(io::Error::other)?;
                }
                missing(count, db).map_err(io::Error::other)?
            }
        };
        if missing.is_empty() {
            return Ok(head);
        }
        file.write_all(&missing)?;
        self.seen = Some((file.stream_position()?, head.count));
        let signed = self.sign(head)?;
        overwrite(head_file, &signed.to_text())?;
        self.anchored = false;
        if count / ANCHOR_EVERY != head.count / ANCHOR_EVERY {
            file.sync_data()?;
            let anchor = Anchor {
                head,
                written_at: now,
            };
            self.keep(&anchor)?;
            self.anchored = true;
        }
        Ok(head)
    }

    /// FAIL-CLOSED: a database that lacks what was signed once was cut or put back, and signing its
    /// end now would hide that.
    fn refuse_a_cut(&mut self, db: &Connection) -> io::Result<()> {
        let Some(head) = self.signed_head()? else {
            return Ok(());
        };
        match line_hash(head.count, db).map_err(io::Error::other)? {
            Some(hash) if hash == head.hash => Ok(()),
            _ => Err(io::Error::other(format!(
                "the database lacks entries of the audit, which once had {}",
                head.count
            ))),
        }
    }

    /// Whether the file has lost lines that it once had. Lines of the last minute may still be on
    /// their way from another process, unless a head was signed for them.
    fn is_cut(&mut self, count: u64, now: UnixMs, db: &Connection) -> io::Result<bool> {
        if self.signed_head()?.is_some_and(|head| head.count > count) {
            return Ok(true);
        }
        let first = line(count.saturating_add(1), db).map_err(io::Error::other)?;
        let entry = first.and_then(|line| Entry::read(line.as_bytes()).ok());
        let written = entry.map(|(entry, _)| entry.at.get());
        Ok(written.is_some_and(|at| at.saturating_add(ON_THEIR_WAY_MS) < now.get()))
    }

    /// The head that was signed last; a head that was torn, or that another key signed, says nothing,
    /// and the check of the audit tells of it.
    fn signed_head(&mut self) -> io::Result<Option<Head>> {
        let text = match fs::read(self.head()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result?,
        };
        let signed = SignedHead::read(text.trim_ascii_end()).ok();
        let key = self.key()?.verifying_key();
        Ok(signed.and_then(|signed| signed.verify(&key)))
    }

    /// The files, opened again if somebody has put others in their places.
    fn open(&mut self) -> io::Result<(File, File)> {
        let (lines, head) = (self.lines(), self.head());
        if let Some(open) = self.open.take()
            && is_at(&open.0, &lines)
            && is_at(&open.1, &head)
        {
            return Ok(open);
        }
        create_folder(&self.folder.audit())?;
        Ok((options().open(lines)?, options().open(head)?))
    }

    /// How many whole lines the file has; a torn last one is cut off. Leaves the place at the end.
    fn lines_in(&self, file: &mut File) -> io::Result<u64> {
        let length = file.seek(SeekFrom::End(0))?;
        let (mut end, mut count) = match self.seen {
            Some((seen, count)) if seen == length => return Ok(count),
            Some((seen, count)) if seen < length => (seen, count),
            _ => (0, 0),
        };
        file.seek(SeekFrom::Start(end))?;
        let mut rest = Vec::new();
        file.read_to_end(&mut rest)?;
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            if line.ends_with(b"\n") {
                end += line.len() as u64;
                count += 1;
            }
        }
        if end < length {
            file.set_len(end)?;
        }
        file.seek(SeekFrom::Start(end))?;
        Ok(count)
    }

    fn lines(&self) -> PathBuf {
        self.folder.audit().join("approvals.jsonl")
    }

    fn head(&self) -> PathBuf {
        self.folder.audit().join("head.json")
    }

    fn key(&mut self) -> io::Result<&SigningKey> {
        let key = match self.key.take() {
            Some(key) => key,
            None => {
                let secret = countersign_vault::open_or_create_secret(&self.folder.audit_key());
                SigningKey::from_bytes(&*secret.map_err(io::Error::other)?)
            }
        };
        Ok(self.key.insert(key))
    }
}

/// The hash of one line; that of the genesis text before the first.
pub(crate) fn line_hash(number: u64, db: &Connection) -> Result<Option<Hash>, Error> {
    if number == 0 {
        return Ok(Some(Head::genesis().hash));
    }
    Ok(line(number, db)?.map(|line| Hash::of(line.as_bytes())))
}

fn line(number: u64, db: &Connection) -> Result<Option<String>, Error> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let line = db
        .prepare_cached("SELECT line FROM audit WHERE number = ?1")?
        .query_row([number], |row| row.get(0));
    Ok(line.optional()?)
}

/// Adds an entry which says that the file lacked what comes after `count`, and where it came from.
fn note_completed(count: u64, now: UnixMs, db: &Connection) -> Result<(), Error> {
    let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    let mut entry = Entry::new(now, Outcome::Recovered);
    let first = count.saturating_add(1);
    entry.detail = Some(format!(
        "the file had lost what it had from entry {first} on; it was copied from the database"
    ));
    Added::default().append(&[entry], &transaction)?;
    Ok(transaction.commit()?)
}

/// The lines after `count`, and where the chain ends.
fn missing(count: u64, db: &Connection) -> Result<(Vec<u8>, Head), Error> {
    let end = head(db)?;
    if count > end.count {
        return Err(Error::damaged(
            count,
            "the audit file has lines that the database does not have",
        ));
    }
    // Others may have added lines since: those are theirs to copy.
    let mut statement = db.prepare_cached(
        "SELECT line FROM audit WHERE number > ?1 AND number <= ?2 ORDER BY number",
    )?;
    let range = [count, end.count].map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    let mut rows = statement.query(range)?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let line = row.get_ref(0)?.as_bytes().map_err(rusqlite::Error::from)?;
        lines.extend_from_slice(line);
        lines.push(b'\n');
    }
    Ok((lines, end))
}

fn options() -> OpenOptions {
    let mut options = private();
    options.read(true).create(true).truncate(false);
    options
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(ours), Ok(there)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    false
}

/// Writes a text over the one that is there, in one call: it is shorter than a sector, and whoever
/// reads it takes the lock of the lines. Replacing the file instead would cost as much as the commit.
fn overwrite(file: &mut File, text: &[u8]) -> io::Result<()> {
    let mut line = text.to_vec();
    line.push(b'\n');
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&line)?;
    let length = line.len() as u64;
    match file.metadata()?.len() == length {
        true => Ok(()),
        false => file.set_len(length),
    }
}

/// How long another process may take from its commit to the file.
const ON_THEIR_WAY_MS: u64 = 60_000;
/// How many lines there are between two anchors.
const ANCHOR_EVERY: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test may stop at once")]
    fn what_is_copied_ends_where_the_head_says_while_others_write() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Folder::new(folder.path());
        let writer = crate::schema::open_writer(&folder, crate::Durability::Relaxed).unwrap();
        let reader = crate::schema::open_writer(&folder, crate::Durability::Relaxed).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let done = &done;
            threads.spawn(move || {
                for second in 0..500 {
                    let entry = Entry::new(UnixMs::new(second), Outcome::Recovered);
                    Added::default().append(&[entry], &writer).unwrap();
                }
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                let (lines, end) = missing(0, &reader).unwrap();
                let lines = lines.split_inclusive(|byte| *byte == b'\n');
                assert_eq!(lines.count() as u64, end.count);
            }
        });
    }
}
