//! Recorded sessions decided again: exactly as they were, or by other policies.
//!
//! [`exact`] folds a session from its log once more and takes every decision again with the policies
//! that took it; snapshot and verdict have to be what was recorded, at every step. [`backtest`] asks
//! what other policies would have said to the recorded actions.
//!
//! It reads a store. There is no door below it and no engine, so it can cause no effect: results of
//! tools and models are those of the log.
#![forbid(unsafe_code)]

mod backtest;
mod calls;
mod difference;
mod error;
mod exact;
mod proposed;
mod report;
mod shelf;

pub use backtest::{
    Backtest, Change, Changes, Progress, Question, Reading, RecordedAction, Wanted, backtest,
};
pub use calls::{RecordedCall, calls};
pub use difference::{Difference, Ignored, differences};
pub use error::Error;
pub use exact::{Replayer, exact};
pub use report::{Diff, Mode, Report, Taken};
