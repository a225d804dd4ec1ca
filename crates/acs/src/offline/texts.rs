//! Every text inside a value, with its place.

use countersign_canon::Json;
use countersign_policy::manifest::segment;

/// A text, where it stands (a JSON pointer), and the name of the member that holds it.
pub(super) struct Text<'j> {
    pub(super) at: String,
    pub(super) name: &'j str,
    pub(super) text: &'j str,
    /// Whether it is the key of a member rather than a value.
    pub(super) is_key: bool,
}

/// Visits every text, keys included, in document order.
pub(super) fn each<'j>(value: &'j Json, visit: &mut dyn FnMut(Text<'j>)) {
    walk(value, "", String::new(), visit);
}

fn walk<'j>(value: &'j Json, name: &'j str, at: String, visit: &mut dyn FnMut(Text<'j>)) {
    match value {
        Json::String(text) => visit(Text {
            at,
            name,
            text,
            is_key: false,
        }),
        Json::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                walk(element, name, format!("{at}/{index}"), visit);
            }
        }
        Json::Object(members) => {
            for (key, value) in members {
                let at = format!("{at}{}", segment(key));
                visit(Text {
                    at: at.clone(),
                    name: key,
                    text: key,
                    is_key: true,
                });
                walk(value, key, at, visit);
            }
        }
        _ => {}
    }
}
