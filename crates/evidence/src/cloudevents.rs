//! The events of a session as CloudEvents 1.0, with the attributes that readers of the Assay evidence
//! contract ask for.
//!
//! What leaves is classed by types: members without a class have no way out. The content hash covers
//! `specversion`, `type`, `datacontenttype`, `subject` and `data` in their RFC 8785 text. Event `n` of a
//! session is event `n + 1` of its run, after the one that opens it.

mod bundle;
mod data;
mod event;
mod from_log;
mod http;

pub use bundle::{BundleError, bundle};
pub use event::{CloudEvent, Producer};
pub use from_log::Converter;
pub use http::{BATCH, Request, STRUCTURED, batch, binary, structured};
