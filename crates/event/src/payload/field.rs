//! The types that a declared member may have.

use std::collections::BTreeMap;

use countersign_canon::{Json, Object};

/// Named counters, such as the constraints of a decision.
pub type Counters = BTreeMap<String, u64>;

/// A member type: how it reads from and writes to JSON.
pub(super) trait Field: Sized {
    /// What a message says was expected.
    const EXPECTED: &'static str;
    fn from_json(value: Json) -> Option<Self>;
    fn into_json(self) -> Json;
}

impl Field for Json {
    const EXPECTED: &'static str = "any value";
    fn from_json(value: Json) -> Option<Self> {
        Some(value)
    }
    fn into_json(self) -> Json {
        self
    }
}

impl Field for String {
    const EXPECTED: &'static str = "a string";
    fn from_json(value: Json) -> Option<Self> {
        match value {
            Json::String(text) => Some(text),
            _ => None,
        }
    }
    fn into_json(self) -> Json {
        Json::String(self)
    }
}

impl Field for bool {
    const EXPECTED: &'static str = "a boolean";
    fn from_json(value: Json) -> Option<Self> {
        value.as_bool()
    }
    fn into_json(self) -> Json {
        Json::Bool(self)
    }
}

impl Field for u64 {
    const EXPECTED: &'static str = "a whole number from 0 on";
    fn from_json(value: Json) -> Option<Self> {
        value.as_u64()
    }
    fn into_json(self) -> Json {
        Json::from(self)
    }
}

impl Field for Vec<String> {
    const EXPECTED: &'static str = "an array of strings";
    fn from_json(value: Json) -> Option<Self> {
        array(value)
    }
    fn into_json(self) -> Json {
        Json::Array(self.into_iter().map(Field::into_json).collect())
    }
}

impl Field for Vec<u64> {
    const EXPECTED: &'static str = "an array of whole numbers from 0 on";
    fn from_json(value: Json) -> Option<Self> {
        array(value)
    }
    fn into_json(self) -> Json {
        Json::Array(self.into_iter().map(Field::into_json).collect())
    }
}

impl Field for Counters {
    const EXPECTED: &'static str = "an object of whole numbers from 0 on";
    fn from_json(value: Json) -> Option<Self> {
        let Json::Object(members) = value else {
            return None;
        };
        members
            .into_iter()
            .map(|(name, count)| Some((name, u64::from_json(count)?)))
            .collect()
    }
    fn into_json(self) -> Json {
        Json::Object(
            self.into_iter()
                .map(|(name, n)| (name, n.into_json()))
                .collect::<Object>(),
        )
    }
}

fn array<T: Field>(value: Json) -> Option<Vec<T>> {
    match value {
        Json::Array(items) => items.into_iter().map(T::from_json).collect(),
        _ => None,
    }
}
