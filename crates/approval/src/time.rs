//! Points in time as the caller gives them. Nothing here reads a clock.

use std::fmt;
use std::str::FromStr;

use countersign_canon::Json;

use countersign_canon::Quoted;

/// Milliseconds since 1970-01-01T00:00:00Z, up to the end of the year 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMs(u64);

impl UnixMs {
    /// The last point in time that has a text.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// This point in time, or the last one that has a text.
    pub const fn new(ms: u64) -> Self {
        match ms > Self::MAX.0 {
            true => Self::MAX,
            false => Self(ms),
        }
    }

    /// The milliseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// So much later, or the last point in time that has a text.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self::new(self.0.saturating_add(ms))
    }

    /// How far two points in time are apart, whichever is first.
    pub const fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }

    /// Whether something that is good until `end` is still good now: strictly before it.
    pub fn is_before(self, end: Self) -> bool {
        self < end
    }
}

impl From<UnixMs> for Json {
    fn from(time: UnixMs) -> Self {
        Json::from(time.0)
    }
}

/// ISO 8601 in UTC; milliseconds stand only where they are not zero.
impl fmt::Display for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ms) = (self.0 / 1000, self.0 % 1000);
        let (year, month, day) = civil(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        match ms {
            0 => f.write_str("Z"),
            ms => write!(f, ".{ms:03}Z"),
        }
    }
}

/// The text is not a point in time in the one form that is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is no time such as `2026-02-15T00:00:00Z`", Quoted(.0))]
pub struct ParseTimeError(String);

impl FromStr for UnixMs {
    type Err = ParseTimeError;

    fn from_str(text: &str) -> Result<Self, ParseTimeError> {
        // Reading is writing turned round: what would be written differently is refused.
        let time = read(text).filter(|time| time.to_string() == text);
        time.ok_or_else(|| ParseTimeError(text.to_owned()))
    }
}

fn read(text: &str) -> Option<UnixMs> {
    let digits = |range: std::ops::Range<usize>| -> Option<u64> {
        let digits = text.get(range)?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten()
    };
    let (year, month, day) = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
    let (hour, minute, second) = (digits(11..13)?, digits(14..16)?, digits(17..19)?);
    let ms = if text.len() > 20 { digits(20..23)? } else { 0 };
    let days = days_before(year, month, day)?;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    Some(UnixMs(seconds * 1000 + ms))
}

/// The Gregorian date of a day counted from 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that the leap day ends a year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

fn days_before(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = year.checked_sub(u64::from(month <= 2))?;
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted = (month + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468)
}

/// The latest time ever seen, so that a clock which is set back gains nobody anything.
///
/// INVARIANT: what [`HighWater::observe`] returns never decreases, and between two observations of
/// one boot it grows at least as fast as the monotonic clock does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighWater {
    now: UnixMs,
    monotonic_ms: u64,
}

impl HighWater {
    /// Starts from what was persisted; `monotonic_ms` is read at the same moment, and should go on
    /// while the machine sleeps.
    pub const fn restored(persisted: UnixMs, monotonic_ms: u64) -> Self {
        Self {
            now: persisted,
            monotonic_ms,
        }
    }

    /// The time to judge by, from both clocks of the machine.
    pub fn observe(&mut self, wall: UnixMs, monotonic_ms: u64) -> UnixMs {
        let elapsed = monotonic_ms.saturating_sub(self.monotonic_ms);
        self.now = self.now.plus(elapsed).max(wall);
        self.monotonic_ms = monotonic_ms;
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_times() {
        let check = |ms: u64, text: &str| {
            assert_eq!(UnixMs(ms).to_string(), text);
            assert_eq!(text.parse(), Ok(UnixMs(ms)));
        };
        check(0, "1970-01-01T00:00:00Z");
        check(1_771_113_600_000, "2026-02-15T00:00:00Z");
        check(951_782_400_001, "2000-02-29T00:00:00.001Z");
        check(1_709_164_799_999, "2024-02-28T23:59:59.999Z");
        check(UnixMs::MAX.0, "9999-12-31T23:59:59.999Z");
        assert_eq!(UnixMs::new(u64::MAX), UnixMs::MAX);
    }

    #[test]
    fn every_day_reads_back() {
        for day in 0..40_000 {
            let time = UnixMs(day * 86_400_000 + day % 1000);
            assert_eq!(time.to_string().parse(), Ok(time));
        }
    }

    #[test]
    fn other_texts_of_a_time_are_refused() {
        for text in [
            "",
            "2026-02-15",
            "2026-02-15T00:00:00",
            "2026-02-15T00:00:00+00:00",
            "2026-02-15T00:00:00.000Z",
            "2026-02-15T00:00:60Z",
            "2026-02-15T24:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-02-15 00:00:00Z",
            "+026-02-15T00:00:00Z",
            "1969-12-31T23:59:59Z",
        ] {
            assert!(text.parse::<UnixMs>().is_err(), "{text}");
        }
    }

    #[test]
    fn f02_a_clock_that_went_forward_does_not_come_back() {
        let mut clock = HighWater::restored(UnixMs(1_000), 0);
        assert_eq!(clock.observe(UnixMs(3_601_000), 10), UnixMs(3_601_000));
        assert_eq!(clock.observe(UnixMs(1_000), 10), UnixMs(3_601_000));
    }

    #[test]
    fn f03_a_clock_set_back_wins_no_time() {
        let mut clock = HighWater::restored(UnixMs(10_000), 500);
        assert_eq!(clock.observe(UnixMs(10_100), 600), UnixMs(10_100));
        // Set back by ten seconds; two seconds pass by the monotonic clock.
        assert_eq!(clock.observe(UnixMs(2_100), 2_600), UnixMs(12_100));
        // After a new boot only the wall clock can speak.
        assert_eq!(clock.observe(UnixMs(20_000), 5), UnixMs(20_000));
    }
}
