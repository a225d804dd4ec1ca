//! How often somebody may ask.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often: so many in a second on average, and so many at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// On average, in a second.
    pub per_second: f64,
    /// At once.
    pub burst: f64,
}

/// A bucket for each who asks, refilled as time passes.
pub(crate) struct Buckets<K> {
    rate: Option<Rate>,
    buckets: Mutex<HashMap<K, Bucket>>,
}

struct Bucket {
    left: f64,
    at: Instant,
}

impl<K: Eq + Hash> Buckets<K> {
    /// Without a rate everybody may ask as often as they like.
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        Self {
            rate,
            buckets: Mutex::default(),
        }
    }

    /// Takes one, or says how long to wait for the next.
    pub(crate) fn take(&self, key: K, now: Instant) -> Result<(), Duration> {
        let Some(rate) = self.rate else {
            return Ok(());
        };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST && !buckets.contains_key(&key) {
            // Who has not asked for a while has a full bucket, which is the same as none.
            buckets.retain(|_, bucket| bucket.filled(rate, now) < rate.burst);
            // FAIL-CLOSED: somebody invents names faster than buckets fill.
            if buckets.len() >= MOST {
                return Err(Duration::from_secs(1));
            }
        }
        let bucket = buckets.entry(key).or_insert(Bucket {
            left: rate.burst,
            at: now,
        });
        bucket.left = bucket.filled(rate, now);
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        let missing = (1.0 - bucket.left) / rate.per_second;
        Err(Duration::try_from_secs_f64(missing).unwrap_or(Duration::from_secs(3600)))
    }

    /// Whether there is one to take.
    pub(crate) fn is_open(&self, key: &K, now: Instant) -> bool {
        let Some(rate) = self.rate else {
            return true;
        };
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.get(key);
        bucket.is_none_or(|bucket| bucket.filled(rate, now) >= 1.0)
    }
}

impl Bucket {
    fn filled(&self, rate: Rate, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + passed * rate.per_second).min(rate.burst)
    }
}

const MOST: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills() {
        let rate = Rate {
            per_second: 2.0,
            burst: 3.0,
        };
        let buckets = Buckets::new(Some(rate));
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(buckets.take("a", start), Ok(()));
        }
        assert_eq!(buckets.take("a", start), Err(Duration::from_millis(500)));
        assert!(!buckets.is_open(&"a", start));
        assert_eq!(buckets.take("b", start), Ok(()));
        let later = start + Duration::from_millis(500);
        assert_eq!(buckets.take("a", later), Ok(()));
        assert!(buckets.take("a", later).is_err());
        let much_later = start + Duration::from_secs(100);
        for _ in 0..3 {
            assert_eq!(buckets.take("a", much_later), Ok(()));
        }
        assert!(buckets.take("a", much_later).is_err());
    }

    #[test]
    fn without_a_rate_nothing_is_counted() {
        let buckets = Buckets::new(None);
        let now = Instant::now();
        assert!((0..10_000).all(|_| buckets.take((), now).is_ok()));
    }
}
