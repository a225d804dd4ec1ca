//! How long things take, for whoever measures.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// Is told how long something took, on the thread that did it: it must be quick and must not block.
pub trait Meter: Send + Sync {
    /// Policies have judged an action.
    fn decided(&self, took: Duration);

    /// Events that were put on their way together are durable.
    fn appended(&self, took: Duration);
}

/// Whoever measures, if anybody does.
#[derive(Clone, Default)]
pub(crate) struct Metered(Option<Arc<dyn Meter>>);

impl Metered {
    pub(crate) fn new(meter: Arc<dyn Meter>) -> Self {
        Self(Some(meter))
    }

    /// When something begins. Nobody looks at the clock for nobody.
    pub(crate) fn began(&self) -> Option<Instant> {
        self.0.as_ref().map(|_| Instant::now())
    }

    pub(crate) fn decided(&self, began: Option<Instant>) {
        if let (Some(meter), Some(began)) = (&self.0, began) {
            meter.decided(began.elapsed());
        }
    }

    pub(crate) fn appended(&self, began: Option<Instant>) {
        if let (Some(meter), Some(began)) = (&self.0, began) {
            meter.appended(began.elapsed());
        }
    }
}
