//! The master keys as the store uses them: wrapping new session keys, and rotation.

use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_event::Scope;
use countersign_vault::{KeyId, Keyring, KeyringError, SessionKey, WrappedKey};
use rusqlite::{Connection, TransactionBehavior};

use crate::{Error, Folder};

/// The master keys, shared by the threads of a process.
pub(crate) struct Keys(Mutex<Keyring>);

/// What a rotation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// The new master key.
    pub current: KeyId,
    /// How many session keys it wraps now.
    pub rewrapped: u64,
}

impl Keys {
    /// Reads the key file. A new log gets a new key; a log whose key file was lost does not, since
    /// that would hide the loss.
    pub(crate) fn open_or_create(folder: &Folder, db: &Connection) -> Result<Self, Error> {
        let path = folder.master_key();
        let needed = "SELECT 1 FROM session_keys WHERE erased_unix_ms IS NULL";
        // The database first: a session that another process makes meanwhile comes after its key.
        if db.prepare(needed)?.exists([])? && !path.exists() {
            return Err(Error::KeyFileMissing(path));
        }
        let keys = Self(Mutex::new(Keyring::open_or_create(&path)?));
        keys.check_fit(db)?;
        Ok(keys)
    }

    /// Whether every session key was wrapped by a master key of the file: a key file of another log,
    /// or one from before a rotation, must not be used to make new sessions.
    pub(crate) fn check_fit(&self, db: &Connection) -> Result<(), Error> {
        let mut keyring = self.lock();
        if missing_master(&keyring, db)?.is_some() {
            // Another process may have rotated between the two looks.
            keyring.reload()?;
        }
        match missing_master(&keyring, db)? {
            None => Ok(()),
            Some(id) => Err(KeyringError::Missing(id).into()),
        }
    }

    pub(crate) fn open(folder: &Folder) -> Result<Self, Error> {
        Ok(Self(Mutex::new(Keyring::open(&folder.master_key())?)))
    }

    /// A new session key, and its wrapped form.
    pub(crate) fn generate(&self, scope: &Scope) -> Result<(SessionKey, WrappedKey), Error> {
        let key = SessionKey::generate().map_err(KeyringError::from)?;
        let wrapped = self.lock().wrap(&key, scope)?;
        Ok((key, wrapped))
    }

    /// The session key; looks at the file again if another process has rotated.
    pub(crate) fn unwrap(&self, wrapped: &WrappedKey, scope: &Scope) -> Result<SessionKey, Error> {
        let mut keyring = self.lock();
        match keyring.unwrap(wrapped, scope) {
            Err(KeyringError::Missing(_)) => {
                keyring.reload()?;
                Ok(keyring.unwrap(wrapped, scope)?)
            }
            result => Ok(result?),
        }
    }

    /// Another process may have rotated.
    pub(crate) fn reload(&self) -> Result<(), Error> {
        Ok(self.lock().reload()?)
    }

    /// Makes a new master key, wraps every session key with it and drops the old one.
    ///
    /// The new key is in the file before anything is wrapped with it, and the old key leaves the
    /// file only after the transaction that made it useless is durable. A rotation that was killed
    /// anywhere is finished by the next one.
    pub(crate) fn rotate(&self, db: &mut Connection) -> Result<Rotation, Error> {
        let mut keyring = self.lock();
        // The write lock keeps rotations of other processes out.
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        keyring.reload()?;
        if keyring.ids().count() < 2 {
            keyring.add()?;
        }
        let rewrapped = rewrap(&keyring, &transaction)?;
        let retired: Vec<KeyId> = keyring.ids().cloned().collect();
        let (current, old) = retired
            .split_last()
            .ok_or_else(|| Error::Keyring(KeyringError::Form(keyring.path().to_owned())))?;
        for id in old {
            transaction.execute(
                "INSERT OR IGNORE INTO retired_master_keys (id) VALUES (?1)",
                [id.as_str()],
            )?;
        }
        transaction.commit()?;
        // Under the write lock again: another process may have rotated since, and its key must stay.
        let _lock = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        keyring.retire(old)?;
        Ok(Rotation {
            current: current.clone(),
            rewrapped,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Keyring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A wrapped key from its columns.
pub(crate) fn wrapped(master: String, bytes: Vec<u8>) -> WrappedKey {
    WrappedKey {
        master: KeyId::from_stored(master),
        bytes,
    }
}

/// A master key that some session needs and the file does not hold.
fn missing_master(keyring: &Keyring, db: &Connection) -> Result<Option<KeyId>, Error> {
    let sql = "SELECT DISTINCT master FROM session_keys WHERE erased_unix_ms IS NULL";
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id = KeyId::from_stored(row.get(0)?);
        if !keyring.ids().any(|known| *known == id) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn rewrap(keyring: &Keyring, db: &Connection) -> Result<u64, Error> {
    let mut select = db.prepare(
        "SELECT k.session, s.tenant_id, s.session_id, k.master, k.wrapped FROM session_keys k
         JOIN sessions s ON s.id = k.session WHERE k.erased_unix_ms IS NULL",
    )?;
    let mut update =
        db.prepare("UPDATE session_keys SET master = ?2, wrapped = ?3 WHERE session = ?1")?;
    let mut rows = select.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let session: i64 = row.get(0)?;
        let scope = Scope::new(row.get::<_, String>(1)?, row.get::<_, String>(2)?)
            .map_err(|error| Error::damaged(0, error))?;
        let old = wrapped(row.get(3)?, row.get(4)?);
        let new = keyring.wrap(&keyring.unwrap(&old, &scope)?, &scope)?;
        update.execute((session, new.master.as_str(), &new.bytes))?;
        count += 1;
    }
    Ok(count)
}
