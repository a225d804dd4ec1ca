//! Opening sealed content for the verifier, with the keys of a data folder.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use countersign_event::Scope;
use countersign_store::{Error, Reader};
use countersign_vault::SessionKey;
use countersign_verify::{Opener, Openings};

/// Finds the key of each session once. `None` is a key that was erased.
pub(super) struct KeyOpener {
    reader: Reader,
    keys: Mutex<HashMap<Scope, Option<Arc<SessionKey>>>>,
}

impl KeyOpener {
    pub(super) fn new(reader: Reader) -> Self {
        Self {
            reader,
            keys: Mutex::default(),
        }
    }

    fn key(&self, scope: &Scope) -> Result<Option<Arc<SessionKey>>, String> {
        if let Some(key) = self.lock().get(scope) {
            return Ok(key.clone());
        }
        let key = match self.reader.session_key(scope) {
            Ok(key) => Some(Arc::new(key)),
            Err(Error::Erased) => None,
            Err(error) => return Err(error.to_string()),
        };
        self.lock().insert(scope.clone(), key.clone());
        Ok(key)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Scope, Option<Arc<SessionKey>>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opener for KeyOpener {
    fn open(&self, ciphertext: &[u8], scope: &Scope) -> Result<Option<Openings>, String> {
        match self.key(scope)? {
            Some(key) => key
                .open(ciphertext, scope)
                .map(Some)
                .map_err(|error| error.to_string()),
            None => Ok(None),
        }
    }
}
