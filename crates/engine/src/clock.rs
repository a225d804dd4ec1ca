//! The clock, which only the engine reads.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970.
    fn now_unix_ms(&self) -> Result<u64, ClockError>;

    /// Milliseconds since some moment of this process, which nobody can set back.
    fn monotonic_ms(&self) -> u64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// The clock says nothing that can be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system clock is out of range")]
pub struct ClockError;

impl Clock for SystemClock {
    fn now_unix_ms(&self) -> Result<u64, ClockError> {
        let elapsed = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_err(|_| ClockError)?;
        u64::try_from(elapsed.as_millis()).map_err(|_| ClockError)
    }
}
