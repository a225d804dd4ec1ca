//! Work that waits for the disk, on threads of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::problem::{Kind, Problem};

/// So many threads may wait for the disk; who comes when all of them do waits a while, and then is
/// sent away.
#[derive(Clone)]
pub(crate) struct Workers {
    places: Arc<Semaphore>,
    patience: Duration,
}

impl Workers {
    pub(crate) fn new(threads: usize, patience: Duration) -> Self {
        Self {
            places: Arc::new(Semaphore::new(threads)),
            patience,
        }
    }

    /// Runs something that may block.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let place = Arc::clone(&self.places).acquire_owned();
        let overloaded = || {
            let text = "too much waits for the disk; try again";
            Problem::new(Kind::Overloaded, text).retry_after(Duration::from_secs(1))
        };
        let place = tokio::time::timeout(self.patience, place).await;
        let place = place.map_err(|_| overloaded())?.map_err(|_| overloaded())?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        });
        // FAIL-CLOSED: work that panicked has no result.
        done.await
            .map_err(|_| Problem::new(Kind::Database, "the work was not finished"))
    }
}
