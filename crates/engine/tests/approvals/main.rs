//! Approvals end to end on a real store: asking, deciding, leases, the one use, crashes, time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod attacks;
mod changes;
#[cfg(unix)]
mod children;
mod endings;
mod leases;
mod life;
mod parts;
#[cfg(unix)]
mod processes;
#[path = "../../../../tests/replayed.rs"]
mod replayed;
mod scene;
