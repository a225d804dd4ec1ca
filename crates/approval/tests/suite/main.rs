//! The rules of approvals, from a request to its one use. Tests bear the names of the acceptance
//! criteria they stand for.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod audit;
mod binding;
mod desk;
mod forms;
mod golden;
mod lease;
mod life;
mod narrow;
mod quorum;
mod random;
mod submission;
