//! Disclosed values: which event, which place, and what it takes to check them.

use countersign_canon::{Hash, Json, Limits, Numbers, Object};
use countersign_event::{Opening, Salt};

/// One sealed value that is shown.
#[derive(Clone, PartialEq)]
pub struct DisclosedOpening {
    /// The hash of the event.
    pub event: Hash,
    /// The place of the value in its payload, such as `/args`.
    pub place: String,
    /// The value and its salt.
    pub opening: Opening,
}

/// Why a line is no disclosed value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpeningError {
    /// It is not strict JSON, or has no canonical text.
    #[error(transparent)]
    Json(#[from] countersign_canon::Error),
    /// A member is missing, of another type, or not known.
    #[error("a disclosed value has no proper `{0}`")]
    Member(&'static str),
    /// It is written in another way than here.
    #[error("a disclosed value is not in canonical form")]
    NotCanonical,
}

impl DisclosedOpening {
    /// The canonical text, without a line end.
    pub fn to_line(&self) -> Result<Vec<u8>, OpeningError> {
        let salt = base16ct::lower::encode_string(self.opening.salt.as_bytes());
        let line = Json::object([
            ("event", Json::from(self.event.to_string())),
            ("place", Json::from(self.place.as_str())),
            ("salt", Json::from(salt)),
            ("value", self.opening.value.clone()),
        ]);
        Ok(line.to_jcs()?)
    }

    /// Reads a line.
    pub fn read(line: &[u8]) -> Result<Self, OpeningError> {
        let mut members: Object = Json::admit(line, &LIMITS)?
            .into_object()
            .ok_or(OpeningError::Member("event"))?;
        let event = members.get("event").and_then(Json::as_str);
        let event = event.and_then(|text| text.parse().ok());
        let place = members.get("place").and_then(Json::as_str);
        let place = place.map(str::to_owned);
        let salt = members.get("salt").and_then(Json::as_str);
        let salt = salt.and_then(|text| base16ct::lower::decode_vec(text).ok());
        let salt: Option<[u8; Salt::LEN]> = salt.and_then(|bytes| bytes.try_into().ok());
        let opened = Self {
            event: event.ok_or(OpeningError::Member("event"))?,
            place: place.ok_or(OpeningError::Member("place"))?,
            opening: Opening {
                salt: Salt::from_bytes(salt.ok_or(OpeningError::Member("salt"))?),
                value: members
                    .remove("value")
                    .ok_or(OpeningError::Member("value"))?,
            },
        };
        match opened.to_line()? == line {
            true => Ok(opened),
            false => Err(OpeningError::NotCanonical),
        }
    }
}

/// A payload's own limits and the level around it.
const LIMITS: Limits = Limits {
    max_bytes: 16 << 20,
    max_depth: 130,
    numbers: Numbers::Double,
};
