//! The one decision path.
//!
//! [`Engine::admit`] takes an action and gives back a [`Permit`], a [`Hold`] or a [`Refusal`]; there
//! is no fourth answer. A permit can be made here only, only after its decision event is durable. It
//! is moved, never copied, and names the digest of the exact bytes that it allows:
//!
//! ```compile_fail,E0451
//! # fn forged(permit: countersign_engine::Permit) {
//! // A permit cannot be made by hand, also not from parts of another.
//! let forged = countersign_engine::Permit { call_id: String::new(), ..permit };
//! # }
//! ```
//!
//! ```compile_fail,E0599
//! # fn twice(permit: countersign_engine::Permit) {
//! // A permit cannot be copied.
//! let second = permit.clone();
//! # }
//! ```
//!
//! ```compile_fail,E0382
//! # fn twice(engine: &countersign_engine::Engine, permit: countersign_engine::Permit) {
//! // A permit cannot be used twice.
//! let _ = engine.begin(permit, b"bytes");
//! let _ = engine.begin(permit, b"bytes");
//! # }
//! ```
//!
//! The engine decides from its own recorded state, never from what a caller says about a session.
//! It owns the clock and, through the store, the keys. It opens no door and runs no tool.
#![forbid(unsafe_code)]

mod admission;
mod admit;
mod approval;
mod approvers;
mod archive;
mod clock;
mod decide;
mod desk;
mod engine;
mod files;
pub mod folder;
mod hot;
mod ingest;
mod instance;
mod intervene;
mod lease;
mod links;
mod meter;
mod origin;
mod owed;
mod record;
mod refusal;
pub mod reserved;
mod review;
mod roster;
mod watch;

pub use admission::{Admission, Hold, Outcome, Permit, Preview, Proposal, Running, Start};
pub use approval::{
    ApprovalTimes, Denial, Drifted, News, NotCounted, NotEdited, Precondition, RecordedResult,
    Redeemed, Replay, Standing, Swept, Tally, TallyVote, Told, Unaskable, Voted, Wanted,
};
pub use approvers::{Approver, Approvers, ApproversError};
pub use clock::{Clock, ClockError, SystemClock};
pub use countersign_approval::ApprovalId;
pub use countersign_store::Haste;
pub use desk::Desk;
pub use engine::Engine;
pub use files::{Belongings, BesideFile, PolicyFiles, PolicyFilesError, Reach, Stamp};
pub use ingest::Ingest;
pub use intervene::{Intervened, Intervention, Passed};
pub use lease::{LeaseCondition, LeaseMatch, NotGranted, StandingLease};
pub use meter::Meter;
pub use origin::Origin;
pub use refusal::Refusal;
pub use review::{Delivery, HeldResult, Released, Settled};
pub use roster::NotChanged;
pub use watch::{Watch, Watched};
