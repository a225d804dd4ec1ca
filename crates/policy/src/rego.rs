//! Rego, in process.
//!
//! The interpreter is the authority. Its virtual machine is several times quicker, but it has been
//! seen to allow where the interpreter denies, so it serves a bundle only after a static gate and
//! after agreeing with the interpreter on every input that the bundle is tried with; and while it
//! serves, a sample of its answers is compared. A difference refuses the action and ends its
//! service.
//!
//! Policies have no clock, no randomness and no network. Undefined, an error, a time-out or a limit
//! is never an answer.

mod bundle;
mod cycles;
mod effort;
mod evaluate;
mod growth;
mod inspect;
mod recursion;
pub mod testing;
mod text;
mod types;
mod value;

pub(crate) use bundle::digest_of;
pub use bundle::{Bundle, BundleError, Source};
pub use evaluate::{EvalError, Machine, NotAdmitted};
pub use regorus::Value;
pub(crate) use value::object;
pub use value::{from_value, to_value};

#[cfg(test)]
mod tests;
