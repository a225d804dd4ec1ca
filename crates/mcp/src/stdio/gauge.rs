//! How much is on its way.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Bytes on their way in one direction. Readers wait while there are too many.
#[derive(Clone, Default)]
pub(crate) struct Gauge(Arc<(Mutex<usize>, Condvar)>);

impl Gauge {
    pub(crate) fn add(&self, bytes: usize) {
        let (level, _) = &*self.0;
        *level.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
    }

    pub(crate) fn sub(&self, bytes: usize) {
        let (level, changed) = &*self.0;
        let mut level = level.lock().unwrap_or_else(PoisonError::into_inner);
        *level = level.saturating_sub(bytes);
        changed.notify_all();
    }

    pub(crate) fn is_full(&self) -> bool {
        let (level, _) = &*self.0;
        *level.lock().unwrap_or_else(PoisonError::into_inner) > HIGH
    }

    /// Returns once there is room. One frame may go beyond the mark, whatever its size.
    pub(crate) fn wait_for_room(&self) {
        let (level, changed) = &*self.0;
        let mut level = level.lock().unwrap_or_else(PoisonError::into_inner);
        while *level > HIGH {
            level = changed.wait(level).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

const HIGH: usize = 8 << 20;
