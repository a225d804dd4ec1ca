//! JSON as values of Cedar, which knows booleans, whole numbers, text, sets and records.
//!
//! `null` is left out: `has` is how Cedar asks whether something is there. Numbers with a fraction are
//! decimals if four places hold them. Any other number is its text, so that it is there, equals no
//! number, and fails when it is compared.

use cedar_policy::RestrictedExpression as Value;
use countersign_canon::{Json, Number, Object};

/// The members of an object as the fields of a record.
pub(super) fn fields(object: &Object) -> Result<Vec<(String, Value)>, String> {
    object
        .iter()
        .filter_map(|(name, json)| Some((name, value(json).transpose()?)))
        .map(|(name, value)| Ok((name.to_owned(), value?)))
        .collect()
}

/// `None` for `null`.
pub(super) fn value(json: &Json) -> Result<Option<Value>, String> {
    Ok(Some(match json {
        Json::Null => return Ok(None),
        Json::Bool(value) => Value::new_bool(*value),
        Json::Number(value) => number(value),
        Json::String(text) => Value::new_string(text.clone()),
        Json::Array(elements) => {
            let elements = elements.iter().filter_map(|one| value(one).transpose());
            Value::new_set(elements.collect::<Result<Vec<_>, _>>()?)
        }
        Json::Object(members) => record(fields(members)?)?,
    }))
}

pub(super) fn record(fields: Vec<(String, Value)>) -> Result<Value, String> {
    Value::new_record(fields).map_err(|error| error.to_string())
}

fn number(number: &Number) -> Value {
    let text = number.to_string();
    match number.as_i64() {
        Some(whole) if number.is_integer() => Value::new_long(whole),
        _ if is_decimal(&text) => Value::new_decimal(text),
        _ => Value::new_string(text),
    }
}

/// Digits, a point, and one to four digits; small enough for Cedar's decimals.
fn is_decimal(text: &str) -> bool {
    let digits = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    text.strip_prefix('-')
        .unwrap_or(text)
        .split_once('.')
        .is_some_and(|(whole, fraction)| digits(whole, 14) && digits(fraction, 4))
}
