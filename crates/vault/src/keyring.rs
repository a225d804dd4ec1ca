//! The master keys and their file.
//!
//! The file holds one key, or two while a rotation is under way; the last one wraps new session
//! keys. It is replaced as a whole (write, fsync, rename, fsync of the folder), so a crash leaves
//! either the old file or the new one.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use countersign_canon::Digest;
use countersign_canon::jcs::Cursor;
use countersign_event::Scope;
use zeroize::Zeroizing;

use crate::cipher::{Cipher, CipherError, KEY_LEN, KeyBytes, random};
use crate::file::{self, io_error, refuse_exposed, remove_temporaries};
use crate::session_key::SessionKey;

/// The name of a master key: `mk_` and the first 16 hexadecimal digits of a digest of the key.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct KeyId(String);

/// A session key encrypted by a master key.
#[derive(Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// Which master key.
    pub master: KeyId,
    /// The encrypted session key.
    pub bytes: Vec<u8>,
}

/// The master keys of one data folder.
pub struct Keyring {
    path: PathBuf,
    keys: Vec<MasterKey>,
}

struct MasterKey {
    id: KeyId,
    bytes: KeyBytes,
    cipher: Cipher,
}

/// Why the master keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// The file cannot be read or written.
    #[error("cannot {what} the master key file `{}`", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The file is not a key file.
    #[error("`{}` is not a master key file", .0.display())]
    Form(PathBuf),
    /// Other users can read the file.
    #[error("`{}` can be read by other users (mode {mode:03o})", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A session key was wrapped by a key that the file does not hold.
    #[error("the master key `{0}` is not in the key file")]
    Missing(KeyId),
    /// Encryption or decryption failed.
    #[error(transparent)]
    Cipher(#[from] CipherError),
}

impl KeyId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// An id that was stored.
    pub fn from_stored(id: String) -> Self {
        Self(id)
    }

    fn of(key: &KeyBytes) -> Self {
        let digest = Digest::of_parts(&[b"countersign/master-key-id/v1\0", key.as_slice()]);
        let short = digest.as_bytes().get(..8).unwrap_or_default();
        Self(format!("mk_{}", base16ct::lower::encode_string(short)))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Keyring {
    /// Reads the key file; makes it, with one new key, if there is none.
    ///
    /// Of several processes that start at once, one makes the file and the others read it.
    pub fn open_or_create(path: &Path) -> Result<Self, KeyringError> {
        if !path.exists() {
            let new = Self {
                path: path.to_owned(),
                keys: vec![MasterKey::generate()?],
            };
            file::create(path, &new.text()).map_err(|source| io_error("create", path, source))?;
        }
        Self::open(path)
    }

    /// Reads the key file.
    pub fn open(path: &Path) -> Result<Self, KeyringError> {
        refuse_exposed(path)?;
        let text = fs::read(path).map_err(|source| io_error("read", path, source))?;
        let keys =
            parse(&Zeroizing::new(text)).ok_or_else(|| KeyringError::Form(path.to_owned()))?;
        Ok(Self {
            path: path.to_owned(),
            keys,
        })
    }

    /// Reads the file again: another process may have rotated.
    pub fn reload(&mut self) -> Result<(), KeyringError> {
        *self = Self::open(&self.path)?;
        Ok(())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The key that wraps new session keys.
    pub fn current(&self) -> Option<&KeyId> {
        self.keys.last().map(|key| &key.id)
    }

    /// Every key in the file, the current one last.
    pub fn ids(&self) -> impl Iterator<Item = &KeyId> {
        self.keys.iter().map(|key| &key.id)
    }

    /// First half of a rotation: adds a new key, which becomes the current one, and saves.
    pub fn add(&mut self) -> Result<KeyId, KeyringError> {
        let key = MasterKey::generate()?;
        let id = key.id.clone();
        self.keys.push(key);
        if let Err(error) = self.save() {
            // FAIL-CLOSED: nothing may be wrapped by a key that is not in the file.
            self.keys.pop();
            return Err(error);
        }
        Ok(id)
    }

    /// Second half of a rotation: drops these keys, and saves. Reads the file again first, so that
    /// keys which another process has added since stay; the current key always stays.
    ///
    /// The caller keeps other processes from changing the file meanwhile.
    pub fn retire(&mut self, old: &[KeyId]) -> Result<(), KeyringError> {
        self.reload()?;
        let current = self.current().cloned();
        let before = self.keys.len();
        self.keys
            .retain(|key| !old.contains(&key.id) || Some(&key.id) == current.as_ref());
        if self.keys.len() < before {
            self.save()?;
        }
        // A process that was killed while it replaced the file may have left a copy behind, and
        // with it a key that must be gone now.
        remove_temporaries(&self.path)
            .map_err(|source| io_error("clean up beside", &self.path, source))
    }

    /// Encrypts a session key with the current master key.
    pub fn wrap(&self, key: &SessionKey, scope: &Scope) -> Result<WrappedKey, KeyringError> {
        let master = self
            .keys
            .last()
            .ok_or_else(|| KeyringError::Form(self.path.clone()))?;
        let plain = Zeroizing::new(key.as_bytes().to_vec());
        let bytes = master.cipher.encrypt(plain, &context(WRAP_DOMAIN, scope))?;
        Ok(WrappedKey {
            master: master.id.clone(),
            bytes,
        })
    }

    /// Decrypts a session key.
    pub fn unwrap(&self, wrapped: &WrappedKey, scope: &Scope) -> Result<SessionKey, KeyringError> {
        let master = self
            .keys
            .iter()
            .find(|key| key.id == wrapped.master)
            .ok_or_else(|| KeyringError::Missing(wrapped.master.clone()))?;
        let plain = master
            .cipher
            .decrypt(&wrapped.bytes, &context(WRAP_DOMAIN, scope))?;
        let bytes = <[u8; KEY_LEN]>::try_from(plain.as_slice()).map_err(|_| CipherError::Form)?;
        Ok(SessionKey::from_bytes(Zeroizing::new(bytes)))
    }

    fn save(&self) -> Result<(), KeyringError> {
        let failed = |source| io_error("replace", &self.path, source);
        file::replace(&self.path, &self.text()).map_err(failed)
    }

    fn text(&self) -> Zeroizing<Vec<u8>> {
        let mut text = Zeroizing::new(Vec::with_capacity(64 + 96 * self.keys.len()));
        text.extend_from_slice(b"{\"keys\":[");
        for (index, key) in self.keys.iter().enumerate() {
            let separator: &[u8] = if index > 0 { b",\"" } else { b"\"" };
            text.extend_from_slice(separator);
            let hex = Zeroizing::new(base16ct::lower::encode_string(key.bytes.as_slice()));
            text.extend_from_slice(hex.as_bytes());
            text.push(b'"');
        }
        text.extend_from_slice(b"],\"version\":1}\n");
        text
    }
}

impl MasterKey {
    fn generate() -> Result<Self, CipherError> {
        Ok(Self::new(Zeroizing::new(random::<KEY_LEN>()?)))
    }

    fn new(bytes: KeyBytes) -> Self {
        Self {
            id: KeyId::of(&bytes),
            cipher: Cipher::new(&bytes),
            bytes,
        }
    }
}

/// Associated data that ties a ciphertext to its purpose and session. The lengths keep
/// `("a", "bc")` and `("ab", "c")` apart.
pub(crate) fn context(domain: &[u8], scope: &Scope) -> Vec<u8> {
    let mut context = domain.to_vec();
    for part in [scope.tenant.as_str(), scope.session.as_str()] {
        context.extend_from_slice(&(part.len() as u64).to_be_bytes());
        context.extend_from_slice(part.as_bytes());
    }
    context
}

/// The file is read in place: no copy of a key stays behind in memory that is not wiped.
fn parse(text: &[u8]) -> Option<Vec<MasterKey>> {
    let mut cursor = Cursor::new(text.strip_suffix(b"\n").unwrap_or(text), 2).ok()?;
    cursor.open_object().ok()?;
    cursor.expect_key("keys").ok()?;
    let list = cursor
        .value()
        .ok()?
        .strip_prefix(b"[")?
        .strip_suffix(b"]")?;
    cursor.expect_key("version").ok()?;
    let version = cursor.integer().ok()?;
    cursor.close_object().ok()?;
    cursor.finish().ok()?;
    if version != 1 {
        return None;
    }
    list.split(|byte| *byte == b',').map(parse_key).collect()
}

fn parse_key(quoted: &[u8]) -> Option<MasterKey> {
    let hex = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut bytes = Zeroizing::new([0; KEY_LEN]);
    let written = base16ct::lower::decode(hex, bytes.as_mut_slice())
        .ok()?
        .len();
    (written == KEY_LEN).then(|| MasterKey::new(bytes))
}

const WRAP_DOMAIN: &[u8] = b"countersign/session-key/v1\0";
