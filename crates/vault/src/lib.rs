//! Keys, and the sealing of payloads with them.
//!
//! Every session has one data key. It encrypts what its payloads do not declare public
//! (AES-256-GCM) and is itself wrapped by a master key that lives in a file of its own. Losing the
//! data key of a session makes its content unreadable and leaves its chain verifiable.
//!
//! This crate draws randomness and reads and writes the key file. It knows no database: where
//! wrapped keys and ciphertexts are kept is the store's business.
#![forbid(unsafe_code)]

mod cipher;
mod file;
mod keyring;
mod session_key;

pub use cipher::CipherError;
pub use file::{open_or_create_secret, open_secret};
pub use keyring::{KeyId, Keyring, KeyringError, WrappedKey};
pub use session_key::{OpenError, Openings, SealError, SealedPayload, SessionKey, joined};
