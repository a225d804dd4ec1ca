//! The trace of a caller (W3C Trace Context), by which events are found in the traces of others.

use std::fmt;
use std::str::FromStr;

/// What a `traceparent` says: the trace, the span that calls, and whether the trace is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace: [u8; 16],
    span: [u8; 8],
    flags: u8,
}

/// A text that is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent of W3C Trace Context")]
pub struct TraceError;

impl TraceParent {
    /// The trace.
    pub fn trace(&self) -> [u8; 16] {
        self.trace
    }

    /// The span that calls.
    pub fn span(&self) -> [u8; 8] {
        self.span
    }

    /// The flags; the lowest bit says that the trace is kept.
    pub fn flags(&self) -> u8 {
        self.flags
    }
}

/// Of versions to come, the members that this one has are read, as the standard asks.
impl FromStr for TraceParent {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let mut parts = text.splitn(5, '-');
        let [version] = hex::<1>(parts.next())?;
        let trace = hex(parts.next())?;
        let span = hex(parts.next())?;
        let [flags] = hex::<1>(parts.next())?;
        let is_known = match version {
            0 => parts.next().is_none(),
            version => version != 0xff,
        };
        match is_known && trace != [0; 16] && span != [0; 8] {
            true => Ok(Self { trace, span, flags }),
            false => Err(TraceError),
        }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", self.flags)
    }
}

fn hex<const N: usize>(text: Option<&str>) -> Result<[u8; N], TraceError> {
    let text = text.ok_or(TraceError)?.as_bytes();
    if text.len() != 2 * N {
        return Err(TraceError);
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        for digit in pair {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return Err(TraceError),
            };
            *byte = *byte << 4 | value;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_standard_allows_is_read() {
        let check = |text: &str, expect: bool| {
            assert_eq!(text.parse::<TraceParent>().is_ok(), expect, "{text}");
        };
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        check(good, true);
        assert_eq!(good.parse::<TraceParent>().unwrap().to_string(), good);
        check(
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes",
            true,
        );
        check(
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            false,
        );
        check(
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            false,
        );
        check(
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            false,
        );
        check(
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            false,
        );
        check(
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            false,
        );
        check(
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            false,
        );
        check(
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            false,
        );
        check("", false);
        check(
            "éé-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            false,
        );
    }
}
