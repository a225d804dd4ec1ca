//! The places of connections.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// All places. Where none is free, somebody who comes gets that of a connection on which nothing is asked:
/// otherwise those who only hold connections open would lock everybody else out.
pub(crate) struct Seats {
    free: Arc<Semaphore>,
    most: usize,
    taken: Vec<Weak<Seat>>,
}

/// The place of one connection.
pub(crate) struct Seat {
    _place: OwnedSemaphorePermit,
    since: Instant,
    /// Requests whose answer is not all there.
    open: AtomicUsize,
    /// Whether anything was ever asked.
    has_asked: AtomicBool,
    /// When the last answer had ended, in milliseconds after `since`.
    idle: AtomicU64,
    sent_away: Notify,
}

/// A request is on its way, until this is dropped.
pub(crate) struct Visit(Arc<Seat>);

impl Seats {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(most)),
            most,
            taken: Vec::new(),
        }
    }

    /// A place for somebody who has come. Waits while everybody inside is being answered.
    pub(crate) async fn take(&mut self) -> Option<Arc<Seat>> {
        let place = loop {
            let free = Arc::clone(&self.free);
            if let Ok(place) = Arc::clone(&free).try_acquire_owned() {
                break place;
            }
            self.send_one_away();
            // It leaves at once, unless it is asked something just now.
            if let Ok(place) = tokio::time::timeout(PAUSE, free.acquire_owned()).await {
                break place.ok()?;
            }
        };
        if self.taken.len() >= self.most.saturating_mul(2) {
            self.taken.retain(|seat| seat.strong_count() > 0);
        }
        let seat = Arc::new(Seat {
            _place: place,
            since: Instant::now(),
            open: AtomicUsize::new(0),
            has_asked: AtomicBool::new(false),
            idle: AtomicU64::new(0),
            sent_away: Notify::new(),
        });
        self.taken.push(Arc::downgrade(&seat));
        Some(seat)
    }

    /// Of those who are quiet, who has never asked anything goes first, then who has been so for the longest
    /// time.
    fn send_one_away(&self) {
        let all = self.taken.iter().filter_map(Weak::upgrade);
        let idle = all.filter(|seat| seat.is_idle() && seat.quiet_since().elapsed() >= QUIET);
        let rank = |seat: &Arc<Seat>| (seat.has_asked.load(Ordering::Relaxed), seat.quiet_since());
        if let Some(seat) = idle.min_by_key(rank) {
            seat.sent_away.notify_one();
        }
    }
}

impl Seat {
    /// Somebody asks.
    pub(crate) fn visit(self: &Arc<Self>) -> Visit {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.has_asked.store(true, Ordering::Relaxed);
        Visit(Arc::clone(self))
    }

    /// Waits until the connection has to end for another one.
    pub(crate) async fn is_given_away(&self) {
        loop {
            self.sent_away.notified().await;
            // Its requests are begun by whoever waits here, so none is lost between.
            if self.is_idle() {
                return;
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    fn quiet_since(&self) -> Instant {
        self.since + Duration::from_millis(self.idle.load(Ordering::Relaxed))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let idle = self.0.since.elapsed().as_millis();
        let idle = u64::try_from(idle).unwrap_or_default();
        self.0.idle.store(idle, Ordering::Relaxed);
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Who has just come, or was just answered, may be about to ask.
pub(crate) const QUIET: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(100);
