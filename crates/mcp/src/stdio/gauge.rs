//! How much is on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes on their way in one direction. Nobody reads more for it while there are too many.
#[derive(Clone, Default)]
pub(crate) struct Gauge(Arc<AtomicUsize>);

impl Gauge {
    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Tells whether there is room again.
    pub(crate) fn sub(&self, bytes: usize) -> bool {
        let before = self.0.fetch_sub(bytes, Ordering::AcqRel);
        before > HIGH && before - bytes <= HIGH
    }

    /// One frame may go beyond the mark, whatever its size.
    pub(crate) fn is_full(&self) -> bool {
        self.0.load(Ordering::Acquire) > HIGH
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

const HIGH: usize = 8 << 20;
