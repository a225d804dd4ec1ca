//! The sorted form of policy inputs: what `serde_json` writes for a value whose keys were sorted.

use crate::jcs::write_string;
use crate::json::{Json, Object};
use crate::number::Number;

/// How a form spells numbers and strings. What stands around them is the same in every sorted form.
pub(crate) trait Spelling {
    fn number(number: &Number, out: &mut Vec<u8>);
    fn string(text: &str, out: &mut Vec<u8>);
}

/// How `serde_json` spells them.
struct Plain;

impl Spelling for Plain {
    fn number(number: &Number, out: &mut Vec<u8>) {
        number.write_plain(out);
    }

    fn string(text: &str, out: &mut Vec<u8>) {
        write_string(text, out);
    }
}

/// Appends the text of a value.
pub(crate) fn write(value: &Json, out: &mut Vec<u8>) {
    write_as::<Plain>(value, out);
}

/// Appends the text of a value in this spelling.
pub(crate) fn write_as<S: Spelling>(value: &Json, out: &mut Vec<u8>) {
    match value {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Number(number) => S::number(number, out),
        Json::String(text) => S::string(text, out),
        Json::Array(elements) => write_array::<S>(elements, out),
        Json::Object(object) => write_object::<S>(object, out),
    }
}

fn write_array<S: Spelling>(elements: &[Json], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_as::<S>(element, out);
    }
    out.push(b']');
}

fn write_object<S: Spelling>(object: &Object, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (key, value)) in object.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        S::string(key, out);
        out.push(b':');
        write_as::<S>(value, out);
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
