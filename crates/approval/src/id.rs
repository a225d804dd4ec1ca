//! Names of things: envelopes, nonces, leases, actions, calls, work items.

use std::fmt;
use std::str::FromStr;

use countersign_canon::Quoted;

/// The text is not an id of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not {form}", Quoted(text))]
pub struct IdError {
    text: String,
    form: &'static str,
}

/// Sixteen random bytes as a version 4 UUID. The caller brings the randomness.
const fn uuid4(mut bytes: [u8; 16]) -> [u8; 16] {
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    bytes
}

macro_rules! unique {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $form:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// A new one, from sixteen random bytes of the caller's, as a version 4 UUID.
            pub const fn from_random(bytes: [u8; 16]) -> Self {
                Self(uuid4(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let hex = text.strip_prefix($prefix).filter(|hex| hex.len() == 32);
                let bytes = hex.and_then(|hex| base16ct::lower::decode_vec(hex).ok());
                let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
                bytes.map(Self).ok_or_else(|| IdError {
                    text: text.to_owned(),
                    form: $form,
                })
            }
        }
    };
}

unique!(
    /// One request for approval.
    ApprovalId,
    "apr_",
    "`apr_` and 32 lower-case hex digits"
);
unique!(
    /// One lease.
    LeaseId,
    "lse_",
    "`lse_` and 32 lower-case hex digits"
);
unique!(
    /// One action as evidence counts them; what was denied and what was approved later are two.
    ActionId,
    "act_",
    "`act_` and 32 lower-case hex digits"
);
unique!(
    /// The single-use token of an envelope. It names the envelope in a submission; it is no secret
    /// that would allow anything by itself, because a submission must also be signed.
    Nonce,
    "",
    "32 lower-case hex digits"
);

macro_rules! opaque {
    ($(#[$doc:meta])* $name:ident, $form:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Accepts any text of 1 to 1024 characters, unchanged.
            pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
                let text = text.into();
                match bounded(&text) {
                    true => Ok(Self(text)),
                    false => Err(IdError { text, form: $form }),
                }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }
    };
}

opaque!(
    /// The id of a call, chosen by the agent: unique within its envelope, opaque otherwise.
    ToolCallId,
    "a call id of 1 to 1024 characters"
);
opaque!(
    /// The piece of work that a request belongs to.
    WorkItemId,
    "a work item id of 1 to 1024 characters"
);

pub(crate) fn bounded(text: &str) -> bool {
    !text.is_empty() && text.chars().take(1025).count() <= 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_ids_have_one_text() {
        let id = ApprovalId::from_random([0xff; 16]);
        assert_eq!(id.to_string(), "apr_ffffffffffff4fffbfffffffffffffff");
        assert_eq!(id.to_string().parse(), Ok(id));
        let upper = id.to_string().to_uppercase();
        for text in [
            "",
            "apr_",
            "apr_00",
            &upper,
            "lse_ffffffffffff4fffbfffffffffffffff",
        ] {
            assert!(text.parse::<ApprovalId>().is_err(), "{text}");
        }
        let nonce: Nonce = "00112233445566778899aabbccddeeff".parse().unwrap();
        assert_eq!(nonce.to_string(), "00112233445566778899aabbccddeeff");
    }

    #[test]
    fn opaque_ids_are_bounded() {
        assert!(ToolCallId::new("").is_err());
        assert!(ToolCallId::new("é".repeat(1024)).is_ok());
        assert!(WorkItemId::new("é".repeat(1025)).is_err());
    }
}
