//! Ids of requests.

use std::fmt;

use countersign_canon::Json;

use super::FrameError;
use super::error::Fault;

/// The id of a request, in its canonical JSON text: `7` or `"seven"`. The two kinds never meet.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Box<str>);

impl Id {
    /// Reads the text of an id: a string or an integer.
    pub(super) fn read(text: &[u8]) -> Result<Self, Fault> {
        let text = std::str::from_utf8(text).map_err(|_| Fault::Id)?;
        if text.len() > LONGEST {
            return Err(Fault::IdTooLong);
        }
        match text.as_bytes() {
            [b'"', .., b'"'] => Self::read_string(text),
            // One number has one text.
            [b'-', b'0', ..] | [b'0', _, ..] => Err(Fault::Id),
            [b'-', digits @ ..] | digits
                if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) =>
            {
                // SECURITY: whoever reads numbers as doubles answers one of two such ids under the other.
                match text.parse::<i64>().map(i64::unsigned_abs) {
                    Ok(0..=MAX_EXACT) => Ok(Self(text.into())),
                    _ => Err(Fault::Id),
                }
            }
            _ => Err(Fault::Id),
        }
    }

    fn read_string(text: &str) -> Result<Self, Fault> {
        let inside = text.get(1..text.len() - 1).unwrap_or_default();
        let is_plain = |byte: u8| byte >= b' ' && !matches!(byte, b'"' | b'\\');
        let canonical = match inside.bytes().all(is_plain) {
            true => return Ok(Self(text.into())),
            false => Json::admit(text.as_bytes(), &super::HEAD_LIMITS)
                .and_then(|json| json.to_jcs())
                .map_err(|_| Fault::Id)?,
        };
        String::from_utf8(canonical)
            .map(|text| Self(text.into()))
            .map_err(|_| Fault::Id)
    }

    /// The id that a part of a frame is, if it is one.
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        Self::read(text).ok()
    }

    /// An id of our own making.
    pub(crate) fn own(text: &str) -> Result<Self, FrameError> {
        let quoted = Json::from(text).to_jcs().map_err(Fault::from)?;
        Ok(Self::read(&quoted)?)
    }

    /// The id as JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The largest number that every reader has exactly.
const MAX_EXACT: u64 = (1 << 53) - 1;
/// Events carry ids, and so do replies to frames that nobody could read.
const LONGEST: usize = 512;
