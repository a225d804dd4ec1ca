//! Policy: what an action may do, and why.
//!
//! Pure: an action, a session snapshot and a manifest go in, a verdict with its explanation comes
//! out. The crate reads no file or network, gives policies no way to do so, and knows a clock only
//! as the limit of an evaluation that does not end.
#![forbid(unsafe_code)]

mod archive;
pub mod capability;
mod case;
mod classification;
pub mod facts;
mod hearing;
pub mod manifest;
pub mod matcher;
pub mod path;
mod point;
mod policies;
pub mod rego;
mod verdict;
pub mod whatif;

pub use archive::{ArchiveError, Revive};
pub use case::{Asked, Case, Ruling};
pub use classification::{Classification, Offered, SideEffecting};
pub use hearing::{Hearing, Unheard};
pub use point::{Point, UnknownPoint};
pub use policies::{
    Appeal, Beside, Called, Finding, Identities, LoadError, Mode, Moment, Opinion, Policies,
    PolicySources, UserPolicy,
};
pub use verdict::{Decision, Evidence, TargetError, TargetPath, Transform, Verdict, VerdictError};
