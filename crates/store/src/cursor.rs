//! Opaque places in a listing.

use std::fmt;
use std::str::FromStr;

use countersign_canon::Hash;

/// Where a page ended. Valid only for the filter it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    last_id: u64,
    filter: [u8; TAG_LEN],
}

/// A cursor that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// It did not come from a page.
    #[error("the cursor is not one that this program has given out")]
    Form,
    /// It came from a page of another listing.
    #[error("the cursor belongs to a listing with another filter")]
    OtherFilter,
}

impl Cursor {
    pub(crate) fn new(last_id: u64, filter: &Hash) -> Self {
        Self {
            last_id,
            filter: tag(filter),
        }
    }

    /// The last row that was seen, if the cursor belongs to this filter.
    pub(crate) fn last_id(&self, filter: &Hash) -> Result<u64, CursorError> {
        if self.filter == tag(filter) {
            Ok(self.last_id)
        } else {
            Err(CursorError::OtherFilter)
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.last_id.to_be_bytes();
        let text = base16ct::lower::encode_string(&[&[VERSION], &id[..], &self.filter].concat());
        f.write_str(&text)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let bytes = base16ct::lower::decode_vec(text).map_err(|_| CursorError::Form)?;
        let (version, rest) = bytes.split_first().ok_or(CursorError::Form)?;
        let (id, filter) = rest.split_first_chunk::<8>().ok_or(CursorError::Form)?;
        let filter = filter.try_into().map_err(|_| CursorError::Form)?;
        match *version {
            VERSION => Ok(Self {
                last_id: u64::from_be_bytes(*id),
                filter,
            }),
            _ => Err(CursorError::Form),
        }
    }
}

fn tag(filter: &Hash) -> [u8; TAG_LEN] {
    filter.as_bytes().first_chunk().copied().unwrap_or_default()
}

const VERSION: u8 = 1;
const TAG_LEN: usize = 4;
