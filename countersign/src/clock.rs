//! The system clock, and time as people write it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::{SignedDuration, Timestamp};

use crate::errors::{Code, Failure};

/// Now.
///
/// FAIL-CLOSED: a clock before 1970 gives an error, not a made-up time.
pub(crate) fn now_unix_ms() -> Result<u64, Failure> {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|elapsed| u64::try_from(elapsed.as_millis()).ok())
        .ok_or_else(|| Failure::new(Code::Clock, "the system clock is before 1970"))
}

/// A time as text, in UTC, always of one width: columns line up, and texts sort as times do.
pub(crate) fn text(unix_ms: u64) -> String {
    i64::try_from(unix_ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .map_or_else(|| format!("{unix_ms} ms"), |time| format!("{time:.3}"))
}

/// A point in time: `2026-11-15T08:00:00Z`, or how long ago, as in `90s`, `30m`, `2h` or `7d`.
pub(crate) fn parse_moment(text: &str) -> Result<u64, Failure> {
    let moment = match text.parse::<Timestamp>() {
        Ok(moment) => Some(moment),
        Err(_) => ago(text)?,
    };
    moment
        .and_then(|moment| u64::try_from(moment.as_millisecond()).ok())
        .ok_or_else(|| invalid(text))
}

/// A length of time: `90s`, `30m`, `2h` or `7d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, Failure> {
    let parsed = duration(text).and_then(|length| Duration::try_from(length).ok());
    parsed.ok_or_else(|| Failure::new(Code::Length, format!("`{text}` is not a length of time")))
}

fn ago(text: &str) -> Result<Option<Timestamp>, Failure> {
    let now = i64::try_from(now_unix_ms()?).unwrap_or(i64::MAX);
    let now = Timestamp::from_millisecond(now).map_err(|_| invalid(text))?;
    let Some(duration) = duration(text) else {
        return Ok(None);
    };
    Ok(now.checked_sub(duration).ok())
}

fn duration(text: &str) -> Option<SignedDuration> {
    let unit = text.chars().last()?;
    let number: i64 = text
        .strip_suffix(unit)?
        .parse()
        .ok()
        .filter(|number| *number >= 0)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86400,
        _ => return None,
    };
    Some(SignedDuration::from_secs(number.checked_mul(seconds)?))
}

fn invalid(text: &str) -> Failure {
    Failure::new(Code::Moment, format!("`{text}` is not a time"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_in_utc() {
        assert_eq!(text(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(
            parse_moment("2023-11-14T22:13:20.123Z").ok(),
            Some(1_700_000_000_123)
        );
        assert_eq!(text(1_700_000_000_000), "2023-11-14T22:13:20.000Z");
        assert_eq!(text(1_700_000_000_120), "2023-11-14T22:13:20.120Z");
        assert_eq!(text(u64::MAX), format!("{} ms", u64::MAX));
    }

    #[test]
    fn lengths_of_time_are_read() {
        assert_eq!(parse_duration("10m").ok(), Some(Duration::from_secs(600)));
        for bad in ["", "10", "-1s", "1y", "soon"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_count_back_from_now() {
        let now = now_unix_ms().unwrap();
        let hour_ago = parse_moment("1h").unwrap();
        assert!((now - 3_600_000).abs_diff(hour_ago) < 60_000);
        for bad in [
            "",
            "h",
            "-1h",
            "1y",
            "1.5h",
            "99999999999999999d",
            "yesterday",
        ] {
            assert!(parse_moment(bad).is_err(), "{bad}");
        }
    }
}
