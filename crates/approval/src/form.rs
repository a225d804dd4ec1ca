//! Strict reading of our own formats: every member is named, none is repeated, none is left over.

use std::fmt::Display;
use std::str::FromStr;

use countersign_canon::{Error, Json, Limits, Numbers, Object};

use countersign_canon::Quoted;

/// Why a text is not of the form it should have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// It is not JSON that can be admitted, or not in canonical form.
    #[error(transparent)]
    Json(#[from] Error),
    /// It means the right thing, but another text is the canonical one.
    #[error("not in the sorted ASCII form")]
    NotCanonical,
    /// A member is not there.
    #[error("member `{0}` is missing")]
    Missing(&'static str),
    /// A member is there that the format does not know.
    #[error("member {} is unknown", Quoted(.0))]
    Unknown(String),
    /// A member is not what it should be.
    #[error("member `{member}` is not {expected}")]
    Wrong {
        /// Which one.
        member: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A member has a value that is refused.
    #[error("member `{member}`: {why}")]
    Refused {
        /// Which one.
        member: &'static str,
        /// Why.
        why: String,
    },
}

impl FormError {
    pub(crate) fn refused(member: &'static str, why: impl Display) -> Self {
        let why = why.to_string();
        Self::Refused { member, why }
    }
}

/// The members of an object, taken out one by one. What nobody took is refused.
pub(crate) struct Fields(Object);

impl Fields {
    pub(crate) fn of(member: &'static str, json: Json) -> Result<Self, FormError> {
        let object = json.into_object();
        object.map(Self).ok_or(wrong(member, "an object"))
    }

    pub(crate) fn take(&mut self, member: &'static str) -> Result<Json, FormError> {
        self.0.remove(member).ok_or(FormError::Missing(member))
    }

    /// A member that the format knows but does not ask for.
    pub(crate) fn take_optional(&mut self, member: &'static str) -> Option<Json> {
        self.0.remove(member)
    }

    pub(crate) fn text(&mut self, member: &'static str) -> Result<String, FormError> {
        let value = self.take(member)?;
        value.into_string().ok_or(wrong(member, "a text"))
    }

    pub(crate) fn nullable_text(
        &mut self,
        member: &'static str,
    ) -> Result<Option<String>, FormError> {
        match self.take(member)? {
            Json::Null => Ok(None),
            Json::String(text) => Ok(Some(text)),
            _ => Err(wrong(member, "a text or null")),
        }
    }

    pub(crate) fn parsed<T>(&mut self, member: &'static str) -> Result<T, FormError>
    where
        T: FromStr<Err: Display>,
    {
        parse(member, &self.text(member)?)
    }

    pub(crate) fn nullable<T>(&mut self, member: &'static str) -> Result<Option<T>, FormError>
    where
        T: FromStr<Err: Display>,
    {
        let text = self.nullable_text(member)?;
        text.map(|text| parse(member, &text)).transpose()
    }

    pub(crate) fn flag(&mut self, member: &'static str) -> Result<bool, FormError> {
        let value = self.take(member)?.as_bool();
        value.ok_or(wrong(member, "true or false"))
    }

    pub(crate) fn count(&mut self, member: &'static str) -> Result<u64, FormError> {
        integer(member, &self.take(member)?)
    }

    pub(crate) fn nullable_count(
        &mut self,
        member: &'static str,
    ) -> Result<Option<u64>, FormError> {
        match self.take(member)? {
            Json::Null => Ok(None),
            value => integer(member, &value).map(Some),
        }
    }

    pub(crate) fn list(&mut self, member: &'static str) -> Result<Vec<Json>, FormError> {
        let value = self.take(member)?.into_array();
        value.ok_or(wrong(member, "a list"))
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<(), FormError> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((member, _)) => Err(FormError::Unknown(member)),
        }
    }
}

/// Reads text that must be exactly the sorted ASCII form of its value.
pub(crate) fn canonical(text: &[u8], limits: &Limits) -> Result<Json, FormError> {
    let json = Json::admit(text, limits)?;
    match json.to_sorted_ascii() == text {
        true => Ok(json),
        false => Err(FormError::NotCanonical),
    }
}

pub(crate) fn wrong(member: &'static str, expected: &'static str) -> FormError {
    FormError::Wrong { member, expected }
}

fn parse<T: FromStr<Err: Display>>(member: &'static str, text: &str) -> Result<T, FormError> {
    text.parse()
        .map_err(|error| FormError::refused(member, error))
}

/// SECURITY: `1.0` is not `1` here, because it has another canonical text.
fn integer(member: &'static str, value: &Json) -> Result<u64, FormError> {
    let number = value.as_number().filter(|number| number.is_integer());
    let number = number.and_then(|number| number.as_u64());
    number.ok_or(wrong(member, "a whole number"))
}

/// Room for a whole envelope: its arguments obey the limits of a plan, a few levels further out.
pub(crate) const ENVELOPE: Limits = Limits {
    max_bytes: 8 << 20,
    max_depth: 136,
    numbers: Numbers::Exact,
};

/// Room for what a person sends: ids, verdicts and reasons.
pub(crate) const SUBMISSION: Limits = Limits {
    max_bytes: 1 << 20,
    max_depth: 8,
    numbers: Numbers::Exact,
};
