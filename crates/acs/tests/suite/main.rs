//! What the runtime must do, seen from outside.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

mod cases;
mod cedar;
mod library;
mod loading;
mod manifest;
mod memory;
mod normalised;
mod order;
mod rego;
mod scene;
mod verdicts;
