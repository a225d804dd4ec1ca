//! The value that everything starts from.

mod object;

pub use object::{Members, Object};

use crate::error::Error;
use crate::number::Number;
use crate::read::{self, Limits};
use crate::{jcs, sorted, sorted_ascii};

/// A JSON value without ambiguity: keys are unique, numbers are exact integers or finite doubles,
/// strings are Unicode.
///
/// Two values are equal when they were written alike apart from white space, key order and escapes;
/// `1` and `1.0` are therefore different values, although both have the canonical text `1` under
/// RFC 8785.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An exact integer or a finite double.
    Number(Number),
    /// Unicode text.
    String(String),
    /// Values in order.
    Array(Vec<Json>),
    /// Values by unique key.
    Object(Object),
}

impl Json {
    /// Reads exactly one value from `text`, refusing whatever is ambiguous or over the limits.
    pub fn admit(text: &[u8], limits: &Limits) -> Result<Json, Error> {
        read::admit(text, limits)
    }

    /// The canonical text of RFC 8785 (JCS).
    ///
    /// Fails on an integer whose value a double does not hold, rather than rounding it.
    pub fn to_jcs(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::with_capacity(USUAL);
        self.write_jcs(&mut out)?;
        Ok(out)
    }

    /// Appends the canonical text of RFC 8785. After an error `out` holds an incomplete text.
    pub fn write_jcs(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        jcs::write(self, out)
    }

    /// The canonical text of plans and audit entries: keys sorted by code point, no white space,
    /// ASCII only, exact integers, doubles as CPython prints them.
    pub fn to_sorted_ascii(&self) -> Vec<u8> {
        sorted_ascii::text(self)
    }

    /// The canonical text of policy inputs: keys sorted by code point, no white space, text as it is,
    /// exact integers, and doubles that stay doubles (`1.0` is not `1`).
    pub fn to_sorted(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_sorted(&mut out);
        out
    }

    /// Appends the canonical text of policy inputs.
    pub fn write_sorted(&self, out: &mut Vec<u8>) {
        sorted::write(self, out);
    }

    /// An object from its members; of two members with one key the later one stays.
    pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Json)>) -> Json {
        Json::Object(
            members
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }

    /// The member of this name, if this is an object that has it.
    pub fn get(&self, member: &str) -> Option<&Json> {
        self.as_object()?.get(member)
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if this is one.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Json::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The integer, if this is a number that [`Number::as_i64`] gives.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// The integer, if this is a number that [`Number::as_u64`] gives.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements, if this is an array.
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Json::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The object, if this is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The object, if this is one, to be changed.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        match self {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The text itself, if this is a string.
    pub fn into_string(self) -> Option<String> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements themselves, if this is an array.
    pub fn into_array(self) -> Option<Vec<Json>> {
        match self {
            Json::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The object itself, if this is one.
    pub fn into_object(self) -> Option<Object> {
        match self {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Json::Bool(value)
    }
}

impl From<u32> for Json {
    fn from(value: u32) -> Self {
        Json::Number(value.into())
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Json::Number(value.into())
    }
}

impl From<i64> for Json {
    fn from(value: i64) -> Self {
        Json::Number(value.into())
    }
}

impl From<Number> for Json {
    fn from(number: Number) -> Self {
        Json::Number(number)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Json::String(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Json::String(text)
    }
}

impl From<Vec<Json>> for Json {
    fn from(elements: Vec<Json>) -> Self {
        Json::Array(elements)
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Self {
        Json::Object(object)
    }
}

/// `None` is `null`.
impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Json::Null, Into::into)
    }
}

/// What the text of a small object has.
const USUAL: usize = 256;

#[cfg(test)]
mod tests;
