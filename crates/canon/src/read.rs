//! Admission of JSON text: limits, bounded reading and the strict reader.

mod bounded;
mod reader;

pub use bounded::{BoundedReadError, read_bounded};

use crate::error::{Error, Reason};
use crate::json::Json;

/// How much a text may ask of its reader, and which numbers it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest text in bytes.
    pub max_bytes: usize,
    /// The deepest nesting of arrays and objects. Anything over 512 counts as 512, because reading
    /// recurses.
    pub max_depth: usize,
    /// Which numbers are admitted.
    pub numbers: Numbers,
}

impl Limits {
    /// The limits of an event: its canonical text is RFC 8785, so numbers must fit a double.
    pub const fn event() -> Self {
        Self {
            max_bytes: FOUR_MIB,
            max_depth: 128,
            numbers: Numbers::Double,
        }
    }

    /// The limits of a plan or an audit entry: their canonical text keeps integers exact.
    pub const fn plan() -> Self {
        Self {
            max_bytes: FOUR_MIB,
            max_depth: 128,
            numbers: Numbers::Exact,
        }
    }

    pub(crate) fn depth(&self) -> usize {
        clamp_depth(self.max_depth)
    }

    pub(crate) fn check_size(&self, text: &[u8]) -> Result<(), Error> {
        let limit = self.max_bytes;
        if text.len() > limit {
            return Err(Error::new(
                Reason::TooLarge { limit },
                String::new(),
                Some(limit),
            ));
        }
        Ok(())
    }
}

/// Which numbers are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Numbers must survive a round trip through a double: its shortest text denotes the same
    /// decimal as the source.
    Double,
    /// Integers of any size are exact, other numbers become the nearest double, and only what
    /// overflows a double is refused; as CPython reads.
    Exact,
}

pub(crate) fn admit(text: &[u8], limits: &Limits) -> Result<Json, Error> {
    limits.check_size(text)?;
    reader::read(text, limits)
}

/// SECURITY: bounds the recursion, whatever a caller asks for.
pub(crate) fn clamp_depth(max_depth: usize) -> usize {
    max_depth.min(512)
}

const FOUR_MIB: usize = 4 << 20;
