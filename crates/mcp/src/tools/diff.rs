//! What differs between two definitions.

use std::fmt;

use countersign_canon::Json;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What was there.
    pub before: Option<Json>,
    /// What is there now.
    pub after: Option<Json>,
}

/// Every difference, in the order of the members.
pub fn diff(before: &Json, after: &Json) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(Some(before), Some(after), String::new(), &mut changes);
    changes
}

fn compare(before: Option<&Json>, after: Option<&Json>, at: String, changes: &mut Vec<Change>) {
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Json::Object(before)), Some(Json::Object(after))) => {
            for (key, old) in before {
                compare(Some(old), after.get(key), below(&at, key), changes);
            }
            for (key, new) in after.iter().filter(|(key, _)| before.get(key).is_none()) {
                compare(None, Some(new), below(&at, key), changes);
            }
        }
        (Some(Json::Array(before)), Some(Json::Array(after))) => {
            for index in 0..before.len().max(after.len()) {
                let place = format!("{at}/{index}");
                compare(before.get(index), after.get(index), place, changes);
            }
        }
        (before, after) => changes.push(Change {
            pointer: at,
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

fn below(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// One line in ASCII, safe for a terminal.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Json| String::from_utf8_lossy(&value.to_sorted_ascii()).into_owned();
        let pointer = shown(&Json::from(self.pointer.as_str()));
        match (&self.before, &self.after) {
            (None, Some(after)) => write!(f, "+ {pointer}: {}", shown(after)),
            (Some(before), None) => write!(f, "- {pointer}: {}", shown(before)),
            (Some(before), Some(after)) => {
                write!(f, "~ {pointer}: {} -> {}", shown(before), shown(after))
            }
            (None, None) => Ok(()),
        }
    }
}
