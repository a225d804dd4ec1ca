//! The sorted form of policy inputs: what `serde_json` writes for a value whose keys were sorted.

use crate::jcs::write_string;
use crate::json::{Json, Object};

/// Appends the text of a value.
pub(crate) fn write(value: &Json, out: &mut Vec<u8>) {
    match value {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Number(number) => number.write_plain(out),
        Json::String(text) => write_string(text, out),
        Json::Array(elements) => write_array(elements, out),
        Json::Object(object) => write_object(object, out),
    }
}

fn write_array(elements: &[Json], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(element, out);
    }
    out.push(b']');
}

fn write_object(object: &Object, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (key, value)) in object.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(key, out);
        out.push(b':');
        write(value, out);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn check(text: &str, expect: &str) {
        let value = Json::admit(text.as_bytes(), &Limits::plan()).unwrap();
        assert_eq!(String::from_utf8(value.to_sorted()).unwrap(), expect);
    }

    #[test]
    fn scalars_stay_what_they_are() {
        check(
            "[1, 1.0, -0.0, 1e21, 1e-7, 0.00001, 1e16, 1e15]",
            "[1,1.0,-0.0,1e+21,1e-7,0.00001,1e+16,1000000000000000.0]",
        );
        check("18446744073709551617", "18446744073709551617");
        check(r#""\u00e9\u0001\u2028\/""#, "\"é\\u0001\u{2028}/\"");
    }

    #[test]
    fn keys_are_sorted_by_code_point() {
        check(
            r#"{"b":1,"😀":2,"｡":3,"a":{}}"#,
            r#"{"a":{},"b":1,"｡":3,"😀":2}"#,
        );
    }
}
