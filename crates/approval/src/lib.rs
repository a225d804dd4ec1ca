//! Human approvals that bind what runs: envelope, plan hash, signed decisions, quorum, leases, audit.
//!
//! Everything here is pure. The crate reads no clock, file, network or randomness and stores
//! nothing: callers bring the time, ids, nonces and what they see of the world; it says which bytes
//! are hashed and signed, whether a decision counts, and whether a plan may start.
//!
//! # From a request to its one use
//!
//! ```text
//! Draft ─▶ Envelope ──────────────────────────── stored before anybody sees it
//!             │  Submission::parse                strict; agents are refused
//!             │  verify_vote ─▶ Vote              signature → time → drift → bijection → preconditions
//!             │  Ballot::cast ─▶ Granted          m of n people, each once, requester excluded
//!             │  verify_execution ─▶ Verified     keys → time → drift → preconditions
//!             ▼
//!   Life: pending ─▶ approved ─▶ consumed ─▶ started ─▶ executed │ failed │ unknown
//! ```
//!
//! All checks are read-only, so a malformed, forged or early submission costs a valid approval
//! nothing. The one step that changes something, taking the single use, belongs to a store, which
//! needs a [`Verified`] for it.
//!
//! # Types that carry the promises
//!
//! * [`Arguments`] has one text, and that text is hashed, shown, signed and executed.
//! * [`Plan`] has at least one call and no two calls with one id; its hash was worked out here.
//! * [`Envelope`] does not change. Its hash is in every signature, so a store that was tampered with
//!   makes signatures invalid instead of approvals wider.
//! * [`Human`] is the only type that can approve. There is no conversion from [`Agent`].
//! * [`Vote`], [`Granted`], [`Refused`] and [`Verified`] are proofs: private fields, one maker each.
//! * [`Life::after`] is total, and needs those proofs for the steps that people bring about.
//! * [`lease::Charge`] is the proof that a lease covers one call.
//!
//! A value that is good until `t` is good at `now` exactly if `now < t`.
//!
//! Proofs cannot be made by hand:
//!
//! ```compile_fail,E0451
//! # fn forged(verified: countersign_approval::Verified) {
//! let forged = countersign_approval::Verified { ..verified };
//! # }
//! ```
//!
//! The right to one use cannot be copied:
//!
//! ```compile_fail
//! fn twice(verified: countersign_approval::Verified) {
//!     drop(verified);
//!     drop(verified);
//! }
//! ```
//!
//! An agent cannot take a person's place:
//!
//! ```compile_fail
//! use countersign_approval::{Agent, BallotPaper};
//! fn decide(paper: &mut BallotPaper, agent: Agent) {
//!     paper.approver = agent;
//! }
//! ```
//!
//! The formats are described, with vectors, in `docs/approval-format.md`.

#![forbid(unsafe_code)]

mod answer;
pub mod audit;
mod ballot;
mod bijection;
mod call;
mod clocks;
mod decision;
mod drift;
mod envelope;
mod execution;
mod form;
mod id;
mod key;
pub mod lease;
mod mode;
mod names;
mod plan;
mod precondition;
mod principal;
mod progress;
mod quorum;

mod refusal;
mod retention;
mod scope;
mod signed;
mod state;
mod submission;
mod time;
mod trust;
mod vote;

pub use answer::Answer;
pub use ballot::{Ballot, Cast, Granted, Refused, Resolved};
pub use bijection::BijectionError;
pub use call::{Arguments, ArgumentsError, Class, SideEffect, Tool, ToolCall};
pub use clocks::{Clocks, ClocksError, ExecuteBy};
pub use decision::{CallDecision, Decision, Reason, ReasonError};
pub use drift::{ArgumentDrift, Resolution};
pub use envelope::{Draft, Envelope, EnvelopeError};
pub use execution::{Verified, verify_execution};
pub use form::FormError;
pub use id::{ActionId, ApprovalId, IdError, LeaseId, Nonce, ToolCallId, WorkItemId};
pub use key::{KeyError, KeyId, KeyRefusal, KeyStatus, Keyring, SigningKey, VerifyingKey};
pub use mode::ApprovalMode;
pub use names::UnknownName;
pub use plan::{Context, Drift, Plan, PlanError, PlanHash};
pub use precondition::{Fingerprints, PreconditionFailed, Subject, SubjectKind};
pub use principal::{Agent, Human, Lineage, LineageTooLong, Principal, PrincipalError};
pub use progress::{CallState, Progress};
pub use quorum::{DenyRule, Quorum, QuorumError};
pub use refusal::Refusal;
pub use retention::{Retention, RetentionError};
pub use scope::{FolderIdentity, Scope, Workspace};
pub use signed::Signed;
pub use state::{Life, State, Step, TransitionError};
pub use submission::{BallotPaper, Submission};
pub use time::{HighWater, ParseTimeError, UnixMs};
pub use trust::Trust;
pub use vote::{DEFAULT_SKEW_MS, Situation, Vote, verify_signed, verify_vote};
