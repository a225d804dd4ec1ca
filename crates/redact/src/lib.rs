//! What may leave: redaction of text and JSON, and privacy classes as types.
//!
//! A [`Redactor`] replaces secrets and personal data in text and JSON and gives [`Redacted`], the only
//! form in which content is printed or exported. A [`Record`] holds fields by their privacy class:
//! [`Public`] as they are, [`Sensitive`] generalised, forbidden ones dropped; what has no class has no
//! way into it. Nothing here changes a stored event, reads a file or a clock.
//!
//! It looks for what is known to be secret (names of members, marks of tokens, forms of personal data)
//! and for runs of characters that look random. A secret that looks like a word, under a name that says
//! nothing, is not found.
//!
//! ```
//! use countersign_redact::Redactor;
//!
//! let redactor = Redactor::default();
//! let line = redactor.text("login of bob@example.com with password=hunter2");
//! assert_eq!(line.as_str(), "login of [EMAIL] with password=[REDACTED]");
//! ```
#![forbid(unsafe_code)]

mod class;
mod detect;
mod general;
mod key;
mod redacted;
mod redactor;
mod shape;
mod span;

pub use class::{Public, Record, Sensitive};
pub use redacted::Redacted;
pub use redactor::{RULES_VERSION, Redactor, RuleError, Rules};
