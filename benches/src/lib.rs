//! Benchmarks of the log and of decisions: durable append, verification, growth, canonical forms,
//! policy evaluation, admission and approvals.
//!
//! Every number stands beside its limit, measured in the same run on the same machine: the bare
//! fsync, raw SQLite with the same rows, or SHA-256 over the same bytes. What counts is the ratio of
//! the two; absolute numbers are those of the machine. Nothing here asserts a time, and nothing here
//! is part of the product.
#![forbid(unsafe_code)]

mod append;
mod approval;
mod canon;
mod decision;
mod growth;
mod limit;
mod measure;
mod report;
mod run;
mod tree;
mod verification;
mod workload;

pub use measure::Result;
pub use run::{Plan, run};
