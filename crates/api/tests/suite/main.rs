//! The door as its callers see it: over sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "../../../../tests/replayed.rs"]
mod replayed;

mod actions;
mod compatible;
mod description;
mod ends;
mod hostile;
mod live;
mod load;
mod log;
mod pages;
mod policies;
mod replays;
mod roles;
mod scene;
mod tls;
