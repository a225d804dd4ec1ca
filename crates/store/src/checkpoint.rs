//! Checkpoints: signing the tree, keeping what was signed, taking in what witnesses say.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::Arc;

use countersign_canon::Hash;
use countersign_event::{Line, Scope};
use countersign_tlog::{
    Checkpoint, Counted, Durability, Key, Kind, Note, Range, Signer, Statement, hash, session_entry,
};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use crate::folder::replace;
use crate::tree::{edge, is_there, signed, size};
use crate::writer::observe;
use crate::{Error, Folder, Reader, Step, Store, audit};

/// A checkpoint that is stored, with the signatures it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// What it says.
    pub checkpoint: Checkpoint,
    /// The signed note.
    pub note: Note,
}

/// Where the chain of a session ended at a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHead {
    /// The session.
    pub scope: Scope,
    /// How many events it had.
    pub count: u64,
    /// The hash of the last of them.
    pub head: Hash,
}

impl SessionHead {
    /// Its leaf in the tree of sessions.
    pub fn leaf(&self) -> Hash {
        let (tenant, session) = (self.scope.tenant.as_str(), self.scope.session.as_str());
        hash::leaf(&session_entry(tenant, session, self.count, &self.head))
    }
}

impl Store {
    /// Integrates every event that is recorded now and signs a checkpoint of the tree; where nothing
    /// is new, gives the last one. A log that has no name yet is given `name`, or one from its key.
    ///
    /// FAIL-CLOSED: signs nothing on top of a log that is not what its last checkpoint said.
    pub fn publish(&self, name: Option<&str>) -> Result<Published, Error> {
        self.integrate()?;
        let signer = Arc::new(self.signer(name)?);
        loop {
            let last = self.reader().last_checkpoint()?;
            self.check_last(last.as_ref())?;
            let covered = last.as_ref().map_or(0, |last| last.checkpoint.size);
            let draft = self.reader().with(|db| Draft::make(covered, db))?;
            match (draft, last) {
                (None, None) => return Err(Error::NothingToPublish),
                (None, Some(last)) => return Ok(last),
                (Some(draft), _) => {
                    // Where another process has published meanwhile, it has to be looked at again.
                    if let Some(published) = self.sign(draft, covered, &signer)? {
                        return Ok(published);
                    }
                }
            }
        }
    }

    /// Adds what witnesses have signed to a checkpoint of this log. Every key must have signed it.
    pub fn add_cosignatures(&self, note: &Note, keys: &[Key]) -> Result<Published, Error> {
        let refuse = |why: &dyn ToString| Error::Cosignature(why.to_string());
        let checkpoint = Checkpoint::read(note.text()).map_err(|error| refuse(&error))?;
        let ours = self.reader().checkpoint_at(checkpoint.size)?;
        if ours.is_none_or(|ours| ours.note.text() != note.text()) {
            return Err(refuse(&"it is not one that this log has signed"));
        }
        let mut lines = Vec::new();
        for key in keys {
            note.verify(key).map_err(|error| refuse(&error))?;
            let by_key = note.signatures().iter();
            let by_key = by_key.filter(|line| line.name == key.name() && line.hint == key.hint());
            lines.extend(by_key.map(ToString::to_string));
        }
        let at = checkpoint.size;
        self.between(move |db| {
            let insert = "INSERT OR IGNORE INTO cosignatures (size, line) VALUES (?1, ?2)";
            let mut insert = db.prepare_cached(insert)?;
            for line in lines {
                insert.execute((signed(at), line))?;
            }
            Ok(())
        })?;
        self.reader()
            .checkpoint_at(at)?
            .ok_or(Error::NothingToPublish)
    }

    /// Gives the log a new key, and returns the old one and the new one.
    ///
    /// The last checkpoint, which covers everything, gets the signature of the new key too: whoever
    /// trusts the old key sees what the new one starts from. Old checkpoints keep their signatures. A
    /// rotation that was stopped half way is finished by the next one, with the same key.
    pub fn rotate_log_key(&self) -> Result<(Key, Key), Error> {
        let last = self.publish(None)?;
        let old = self.reader().log_signer()?.key(Kind::Note);
        let path = self.folder().log_key();
        let next = path.with_extension("key.next");
        let secret = countersign_vault::open_or_create_secret(&next)?;
        let signer = Signer::new(&last.checkpoint.origin, &secret)?;
        let new = signer.key(Kind::Note);
        let (line, size) = (signer.sign(&last.note).to_string(), last.checkpoint.size);
        self.between(move |db| {
            let insert = "INSERT OR IGNORE INTO cosignatures (size, line) VALUES (?1, ?2)";
            db.execute(insert, (signed(size), line))?;
            Ok(())
        })?;
        let mut earlier = self.reader().earlier_log_keys()?;
        earlier.retain(|key| *key != old);
        earlier.insert(0, old.clone());
        let lines: String = earlier.iter().map(|key| format!("{key}\n")).collect();
        let list = self.folder().earlier_log_keys();
        replace(&list, lines.as_bytes()).map_err(|source| Error::Folder { path: list, source })?;
        // INVARIANT: the list knows the old key before it is gone.
        let renamed = fs::rename(&next, &path).and_then(|()| self.folder().sync());
        renamed.map_err(|source| Error::Folder { path, source })?;
        Ok((old, new))
    }

    fn signer(&self, name: Option<&str>) -> Result<Signer, Error> {
        let secret = countersign_vault::open_or_create_secret(&self.folder().log_key())?;
        let named = self.reader().last_checkpoint()?;
        let named = named.map(|last| last.checkpoint.origin);
        if let (Some(named), Some(name)) = (&named, name)
            && named != name
        {
            return Err(Error::Renamed(named.clone()));
        }
        let name = named.or_else(|| name.map(str::to_owned));
        let usual = || -> Result<String, Error> {
            let key = Signer::new("countersign", &secret)?.key(Kind::Note);
            let id = Hash::of(key.public()).to_string();
            Ok(format!("countersign-log-{}", id.get(..16).unwrap_or(&id)))
        };
        let name = name.map_or_else(usual, Ok)?;
        Ok(Signer::new(&name, &secret)?)
    }

    /// The copy beside the database tells when the database was put back to an older state.
    fn check_last(&self, stored: Option<&Published>) -> Result<(), Error> {
        let path = self.folder().last_checkpoint();
        let copy = match fs::read(&path) {
            Ok(text) => Some(read(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(Error::Folder { path, source }),
        };
        for known in [stored, copy.as_ref()].into_iter().flatten() {
            let Checkpoint { size, root, .. } = known.checkpoint;
            if size > self.reader().tree_size()? {
                let problem = format!("it had {size} events then and has fewer now");
                return Err(Error::Inconsistent(problem));
            }
            if self.reader().tree_root(size)? != root {
                let problem = format!("its first {size} events are not those of then");
                return Err(Error::Inconsistent(problem));
            }
        }
        Ok(())
    }

    /// Signs and stores a draft, if nobody has stored a checkpoint meanwhile.
    fn sign(
        &self,
        draft: Draft,
        covered: u64,
        signer: &Arc<Signer>,
    ) -> Result<Option<Published>, Error> {
        let observer = self.observer().cloned();
        let (signer, folder) = (Arc::clone(signer), self.folder().clone());
        self.between(move |db| {
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if last_size(&transaction)? != covered {
                return Ok(None);
            }
            let origin = signer.key(Kind::Note).name().to_owned();
            let checkpoint = draft.checkpoint(origin, &transaction)?;
            let mut note = checkpoint.to_note().ok_or(Error::NothingToPublish)?;
            note.add(signer.sign(&note));
            draft.store(&note, &transaction)?;
            // Before the commit, so that the write lock keeps an older copy from coming later. A copy
            // whose checkpoint is lost by a crash is still about leaves that are there.
            keep_copy(&note, &folder)?;
            observe(observer.as_ref(), Step::Signed);
            transaction.commit()?;
            observe(observer.as_ref(), Step::Published);
            Ok(Some(Published { checkpoint, note }))
        })
    }
}

/// A checkpoint before it is signed. All of it is about events that never change again.
struct Draft {
    size: u64,
    root: Hash,
    sessions: Counted,
    /// Sessions with events since the checkpoint before: their rows, counts and heads.
    heads: Vec<(i64, u64, Hash)>,
}

impl Draft {
    /// `None` when the last checkpoint covers everything.
    fn make(covered: u64, db: &Connection) -> Result<Option<Self>, Error> {
        let db = db.unchecked_transaction()?;
        let size = size(&db)?;
        if size <= covered {
            return Ok(None);
        }
        let mut all = heads_at(covered, &db)?;
        let mut heads = Vec::new();
        for (row, head) in new_heads(covered, size, &db)? {
            heads.push((row, head.count, head.head));
            all.insert(head.scope.clone(), head);
        }
        let mut tree = Range::default();
        all.values().for_each(|head| tree.push(head.leaf()));
        let sessions = Counted {
            count: tree.end(),
            hash: tree.root(),
        };
        let root = edge(size, &db)?.root();
        Ok(Some(Self {
            size,
            root,
            sessions,
            heads,
        }))
    }

    fn checkpoint(&self, origin: String, db: &Connection) -> Result<Checkpoint, Error> {
        let relaxed: i64 = db.query_row("SELECT relaxed FROM tree", [], |row| row.get(0))?;
        let audit = audit::head(db)?;
        let statement = Statement {
            durability: match relaxed {
                0 => Durability::Full,
                _ => Durability::Relaxed,
            },
            sessions: self.sessions,
            audit: Counted {
                count: audit.count,
                hash: audit.hash,
            },
        };
        Ok(Checkpoint {
            origin,
            size: self.size,
            root: self.root,
            extensions: statement.to_lines(),
        })
    }

    fn store(&self, note: &Note, db: &Connection) -> Result<(), Error> {
        db.execute(
            "INSERT INTO checkpoints (size, note) VALUES (?1, ?2)",
            (signed(self.size), note.to_string()),
        )?;
        let mut insert = db.prepare_cached(
            "INSERT INTO session_heads (session, size, count, head) VALUES (?1, ?2, ?3, ?4)",
        )?;
        for (row, count, head) in &self.heads {
            let head = head.as_bytes();
            insert.execute((row, signed(self.size), signed(*count), head))?;
        }
        Ok(())
    }
}

impl Reader {
    /// The key of a log that has a checkpoint.
    pub fn log_signer(&self) -> Result<Signer, Error> {
        let last = self.last_checkpoint()?.ok_or(Error::NothingToPublish)?;
        let secret = countersign_vault::open_secret(&self.folder().log_key())?;
        Ok(Signer::new(&last.checkpoint.origin, &secret)?)
    }

    /// The keys that the log had before, the last one first.
    pub fn earlier_log_keys(&self) -> Result<Vec<Key>, Error> {
        let path = self.folder().earlier_log_keys();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::Folder { path, source }),
        };
        Ok(text.lines().map(str::parse).collect::<Result<_, _>>()?)
    }

    /// A checkpoint with the signature of the key in use, which an older one may lack.
    ///
    /// FAIL-CLOSED: only one that the tree still stands for.
    pub fn vouch(&self, mut published: Published) -> Result<Published, Error> {
        let signer = self.log_signer()?;
        if published.note.verify(&signer.key(Kind::Note)).is_err() {
            let Checkpoint { size, root, .. } = published.checkpoint;
            if self.tree_root(size)? != root {
                let problem = format!("its first {size} events are not those of then");
                return Err(Error::Inconsistent(problem));
            }
            published.note.add(signer.sign(&published.note));
        }
        Ok(published)
    }

    /// The newest checkpoint.
    pub fn last_checkpoint(&self) -> Result<Option<Published>, Error> {
        self.with(|db| published("<= ?1 ORDER BY size DESC", u64::MAX, db))
    }

    /// The checkpoint of the tree with so many leaves.
    pub fn checkpoint_at(&self, leaves: u64) -> Result<Option<Published>, Error> {
        self.with(|db| published("= ?1", leaves, db))
    }

    /// The first checkpoint that covers so many leaves.
    pub fn checkpoint_covering(&self, leaves: u64) -> Result<Option<Published>, Error> {
        self.with(|db| published(">= ?1 ORDER BY size", leaves, db))
    }

    /// The head of every session at a checkpoint, in the order of their names.
    pub fn session_heads(&self, at: &Published) -> Result<Vec<SessionHead>, Error> {
        let heads = self.with(|db| heads_at(at.checkpoint.size, db))?;
        Ok(heads.into_values().collect())
    }
}

fn published(which: &str, leaves: u64, db: &Connection) -> Result<Option<Published>, Error> {
    if !is_there(db)? {
        return Ok(None);
    }
    let sql = format!("SELECT size, note FROM checkpoints WHERE size {which} LIMIT 1");
    let row: Option<(i64, String)> = db
        .prepare_cached(&sql)?
        .query_row([signed(leaves)], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((size, mut note)) = row else {
        return Ok(None);
    };
    let mut statement =
        db.prepare_cached("SELECT line FROM cosignatures WHERE size = ?1 ORDER BY line")?;
    let mut rows = statement.query([size])?;
    while let Some(row) = rows.next()? {
        note.push_str(&row.get::<_, String>(0)?);
        note.push('\n');
    }
    let published = read(note.as_bytes())?;
    // INVARIANT: what is signed next goes by the stored size, and by that of the note.
    match published.checkpoint.size {
        stated if signed(stated) == size => Ok(Some(published)),
        stated => Err(Error::Inconsistent(format!(
            "a stored checkpoint is about {stated} events and is kept as that of {size}"
        ))),
    }
}

fn read(text: &[u8]) -> Result<Published, Error> {
    let damaged = |error: &dyn ToString| {
        Error::Inconsistent(format!("a stored checkpoint: {}", error.to_string()))
    };
    let note = Note::read(text).map_err(|error| damaged(&error))?;
    let checkpoint = Checkpoint::read(note.text()).map_err(|error| damaged(&error))?;
    Ok(Published { checkpoint, note })
}

fn last_size(db: &Connection) -> Result<u64, Error> {
    let size: i64 = db.query_row(
        "SELECT coalesce(max(size), 0) FROM checkpoints",
        [],
        |row| row.get(0),
    )?;
    Ok(u64::try_from(size).unwrap_or_default())
}

/// The heads of sessions that have events in a batch, with their rows.
fn new_heads(after: u64, to: u64, db: &Connection) -> Result<Vec<(i64, SessionHead)>, Error> {
    let mut last = db.prepare_cached(
        "SELECT session, max(id) FROM events WHERE id > ?1 AND id <= ?2 GROUP BY session",
    )?;
    let mut event = db.prepare_cached("SELECT line FROM events WHERE id = ?1")?;
    let last: Vec<(i64, i64)> = last
        .query_map((signed(after), signed(to)), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    let mut heads = Vec::with_capacity(last.len());
    for (row, id) in last {
        let text = event.query_row([id], |row| Ok(row.get_ref(0)?.as_bytes()?.to_vec()))?;
        let line = Line::read(&text)?;
        let head = SessionHead {
            scope: Scope::new(line.tenant_id.as_ref(), line.session_id.as_ref())
                .map_err(|error| Error::damaged(line.seq, error))?,
            count: line.seq.saturating_add(1),
            head: line.hash,
        };
        heads.push((row, head));
    }
    Ok(heads)
}

/// Sessions are ordered by their tenants and then by their own ids, byte by byte.
fn heads_at(size: u64, db: &Connection) -> Result<BTreeMap<Scope, SessionHead>, Error> {
    let mut statement = db.prepare_cached(
        "SELECT s.tenant_id, s.session_id, h.count, h.head FROM sessions s
         JOIN session_heads h ON h.session = s.id AND h.size =
             (SELECT max(size) FROM session_heads WHERE session = s.id AND size <= ?1)",
    )?;
    let mut rows = statement.query([signed(size)])?;
    let mut heads = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let scope = Scope::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?)
            .map_err(|error| Error::damaged(0, error))?;
        let head = SessionHead {
            scope: scope.clone(),
            count: u64::try_from(row.get::<_, i64>(2)?).unwrap_or_default(),
            head: Hash::from_bytes(row.get(3)?),
        };
        heads.insert(scope, head);
    }
    Ok(heads)
}

/// A reader sees the old text or the new one, also after a power cut.
fn keep_copy(note: &Note, folder: &Folder) -> Result<(), Error> {
    let path = folder.last_checkpoint();
    replace(&path, note.to_string().as_bytes()).map_err(|source| Error::Folder { path, source })
}
