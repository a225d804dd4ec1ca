//! Tenant and session ids, and the pair that names one chain.

use std::fmt;

/// Longest accepted id, in characters.
const MAX_ID_CHARS: usize = 1024;

/// Why an id was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The id has no characters.
    #[error("a {0} id must not be empty")]
    Empty(&'static str),
    /// The id is longer than the limit.
    #[error("a {kind} id has at most {MAX_ID_CHARS} characters, this one has {chars}")]
    TooLong {
        /// Which id it is.
        kind: &'static str,
        /// How long it is.
        chars: usize,
    },
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Accepts any non-empty text of at most 1024 characters, unchanged.
            pub fn new(id: impl Into<String>) -> Result<Self, IdError> {
                let id = id.into();
                check(&id, $kind)?;
                Ok(Self(id))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(id: &str) -> Result<Self, IdError> {
                Self::new(id)
            }
        }
    };
}

id!(
    /// Who owns a session. Opaque text: no character in it has a meaning.
    TenantId,
    "tenant"
);
id!(
    /// One run of one agent. Opaque text, unique within its tenant.
    SessionId,
    "session"
);

/// A tenant and a session: the name of one chain.
///
/// The two parts are never joined into one string, so `("a/b", "c")` and `("a", "b/c")` stay apart.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Scope {
    /// The owner.
    pub tenant: TenantId,
    /// The session.
    pub session: SessionId,
}

impl Scope {
    /// Both ids, checked.
    pub fn new(tenant: impl Into<String>, session: impl Into<String>) -> Result<Self, IdError> {
        Ok(Self {
            tenant: TenantId::new(tenant)?,
            session: SessionId::new(session)?,
        })
    }
}

pub(crate) fn check(id: &str, kind: &'static str) -> Result<(), IdError> {
    if id.is_empty() {
        return Err(IdError::Empty(kind));
    }
    // A string of n characters has at least n bytes, so short ones need no count.
    if id.len() > MAX_ID_CHARS {
        let chars = id.chars().count();
        if chars > MAX_ID_CHARS {
            return Err(IdError::TooLong { kind, chars });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_every_character() {
        for id in ["a", "a/b", "100%", " ", "ünïcode 😀", "\u{0}"] {
            assert_eq!(SessionId::new(id).unwrap().as_str(), id);
        }
    }

    #[test]
    fn ids_are_bounded_in_characters_not_bytes() {
        assert!(TenantId::new("é".repeat(1024)).is_ok());
        assert_eq!(
            TenantId::new("é".repeat(1025)),
            Err(IdError::TooLong {
                kind: "tenant",
                chars: 1025
            })
        );
        assert_eq!(SessionId::new(""), Err(IdError::Empty("session")));
    }
}
