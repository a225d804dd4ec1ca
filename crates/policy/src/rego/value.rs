//! JSON to and from the values of the policy engine.

use std::collections::BTreeMap;

use countersign_canon::{Json, Limits, Number, Object};
use regorus::Value;

/// A value that policies can read.
pub fn to_value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => number_value(number),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(elements) => Value::from(elements.iter().map(to_value).collect::<Vec<_>>()),
        Json::Object(members) => {
            object(members.iter().map(|(name, value)| (name, to_value(value))))
        }
    }
}

/// An object from names and values.
pub(crate) fn object<'n>(members: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    let members: BTreeMap<Value, Value> = members
        .into_iter()
        .map(|(name, value)| (Value::from(name), value))
        .collect();
    Value::from(members)
}

/// What a policy answered, as JSON. Sets become arrays; `None` for what JSON cannot say.
pub fn from_value(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Number(_) => {
            Json::admit(value.to_json_str().ok()?.as_bytes(), &Limits::plan()).ok()?
        }
        Value::String(text) => Json::from(text.as_ref()),
        Value::Array(elements) => {
            Json::Array(elements.iter().map(from_value).collect::<Option<_>>()?)
        }
        Value::Set(elements) => {
            Json::Array(elements.iter().map(from_value).collect::<Option<_>>()?)
        }
        Value::Object(members) => Json::Object(
            members
                .iter()
                .map(|(name, value)| Some((name.as_string().ok()?.to_string(), from_value(value)?)))
                .collect::<Option<Object>>()?,
        ),
        Value::Undefined => return None,
    })
}

fn number_value(number: &Number) -> Value {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => Value::from(integer),
        (None, Some(float)) if !number.is_integer() => Value::from(float),
        _ => Value::from_numeric_string(&number.to_string()).unwrap_or(Value::Undefined),
    }
}
