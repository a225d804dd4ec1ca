//! The text that is signed and linked: sorted keys, no white space, numbers as ECMAScript prints them.
//!
//! That is RFC 8785, but for two habits of writers: keys that look like array indices come first, in
//! the order of their numbers, where a record was rebuilt as a JavaScript object; and keys are sorted
//! by code point where it was written by others. For nearly all records the four orders are one.

use countersign_canon::{Error, Hash, Json, Object, jcs};

use crate::word::words;

words! {
    /// In which order the keys of objects stand.
    Order {
        /// RFC 8785: by UTF-16 code units.
        Jcs = "jcs",
        /// As JCS, but array indices first.
        JsObject = "js-object",
        /// By code point.
        CodePoint = "code-point",
        /// By code point, but array indices first.
        CodePointJsObject = "code-point-js-object",
    }
}

/// The hash by which the next record refers to this one.
pub fn record_hash(record: &Object) -> Result<Hash, Error> {
    Ok(Hash::of(&text(record, UNLINKED, Order::Jcs)?))
}

/// The canonical text of a record without some of its members.
pub(super) fn text(record: &Object, without: &[&str], order: Order) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    write_object(record, without, order, &mut out)?;
    Ok(out)
}

/// The canonical texts that some writer may have meant, each once, RFC 8785 first.
pub(super) fn texts(record: &Object, without: &[&str]) -> Result<Vec<(Order, Vec<u8>)>, Error> {
    let mut texts: Vec<(Order, Vec<u8>)> = Vec::with_capacity(1);
    for order in Order::ALL {
        let text = text(record, without, *order)?;
        if texts.iter().all(|(_, earlier)| *earlier != text) {
            texts.push((*order, text));
        }
    }
    Ok(texts)
}

fn write(value: &Json, order: Order, out: &mut Vec<u8>) -> Result<(), Error> {
    match value {
        Json::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, order, out)?;
            }
            out.push(b']');
            Ok(())
        }
        Json::Object(object) => write_object(object, &[], order, out),
        scalar => scalar.write_jcs(out),
    }
}

fn write_object(
    object: &Object,
    without: &[&str],
    order: Order,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let members = object.iter().filter(|(name, _)| !without.contains(name));
    let mut members: Vec<(&str, &Json)> = members.collect();
    match order {
        Order::Jcs | Order::JsObject => {
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        }
        Order::CodePoint | Order::CodePointJsObject => members.sort_by_key(|(name, _)| *name),
    }
    if matches!(order, Order::JsObject | Order::CodePointJsObject) {
        // Stable: what is no index keeps its place after those that are.
        members.sort_by_key(|(name, _)| array_index(name).map_or(u64::MAX, u64::from));
    }
    out.push(b'{');
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        jcs::write_string(name, out);
        out.push(b':');
        write(value, order, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// A key that JavaScript takes for an index: a whole number up to 2³²−2, written the plain way.
fn array_index(name: &str) -> Option<u32> {
    let plain = name == "0" || !name.starts_with('0');
    let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let number: u32 = name.parse().ok()?;
    (plain && digits && number < u32::MAX).then_some(number)
}

/// What a signature inside a record does not cover.
pub(super) const UNSIGNED: &[&str] = &["signature", "dsse_envelope"];
/// What a link does not cover.
pub(super) const UNLINKED: &[&str] = UNSIGNED;

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_canon::Limits;

    fn check(json: &str, order: Order, expect: &str) {
        let value = Json::admit(json.as_bytes(), &Limits::event()).unwrap();
        let text = text(value.as_object().unwrap(), &[], order).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), expect);
    }

    #[test]
    fn array_indices_come_first_only_where_an_object_was_rebuilt() {
        let clock = r#"{"b":1,"9":1,"10":2,"01":3,"a":{"2":0,"1":1}}"#;
        check(
            clock,
            Order::Jcs,
            r#"{"01":3,"10":2,"9":1,"a":{"1":1,"2":0},"b":1}"#,
        );
        check(
            clock,
            Order::JsObject,
            r#"{"9":1,"10":2,"01":3,"a":{"1":1,"2":0},"b":1}"#,
        );
    }

    #[test]
    fn the_two_orders_differ_above_the_basic_plane() {
        let keys = "{\"\u{10000}\":1,\"\u{ff5e}\":2}";
        check(keys, Order::Jcs, "{\"\u{10000}\":1,\"\u{ff5e}\":2}");
        check(keys, Order::CodePoint, "{\"\u{ff5e}\":2,\"\u{10000}\":1}");
    }

    #[test]
    fn ordinary_records_have_one_text() {
        let value = Json::admit(br#"{"b":[1,{"d":1,"c":2}],"a":1.0}"#, &Limits::event()).unwrap();
        assert_eq!(texts(value.as_object().unwrap(), &[]).unwrap().len(), 1);
    }
}
