//! Strict JSON admission, canonical forms and digests.
//!
//! Everything that is hashed, decided or displayed starts as a [`Json`]: a value read by
//! [`Json::admit`], which refuses what two readers could understand differently (duplicate keys,
//! numbers that a double cannot hold, lone surrogates, trailing data) and names the place by a JSON
//! pointer. From there three canonical forms exist: RFC 8785 ([`Json::to_jcs`], used for events), the
//! sorted ASCII form of plans and audit entries ([`Json::to_sorted_ascii`]), and the sorted form of
//! what policies are asked about ([`Json::to_sorted`]). [`jcs::Cursor`]
//! reads text that must already be canonical without building a value, [`scan::Scan`] any strict text.
//!
//! ```
//! use countersign_canon::{Digest, Json, Limits};
//!
//! let value = Json::admit(br#"{"b": 1.0, "a": "\u00e9"}"#, &Limits::event())?;
//! assert_eq!(value.to_jcs()?, r#"{"a":"é","b":1}"#.as_bytes());
//! assert_eq!(value.to_sorted_ascii(), br#"{"a":"\u00e9","b":1.0}"#);
//! assert!(Digest::of(&value.to_jcs()?).to_string().starts_with("sha256:"));
//!
//! let refused = Json::admit(br#"{"x":[{"a":1,"a":2}]}"#, &Limits::event()).unwrap_err();
//! assert_eq!(refused.to_string(), "duplicate key `a` at `/x/0/a` (byte 13)");
//! # Ok::<(), countersign_canon::Error>(())
//! ```
//!
//! The crate does *not* repair input, read a clock, a network or an environment, map JSON to Rust
//! types, or know what an event or a plan is.

#![forbid(unsafe_code)]

mod digest;
mod error;
pub mod jcs;
mod json;
mod number;
mod pointer;
mod quoted;
mod read;
pub mod scan;
mod sorted;
mod sorted_ascii;
mod string;

pub use digest::{Digest, Hash, ParseDigestError};
pub use error::{Deviation, Error, Kind, Reason};
pub use json::{Json, Members, Object};
pub use number::Number;
pub use quoted::Quoted;
pub use read::{BoundedReadError, Limits, Numbers, read_bounded};
