//! How two JSON values differ, and which differences do not matter.

use countersign_canon::Json;

/// A place where two values differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What was there; nothing if it was not there at all.
    pub recorded: Option<Json>,
    /// What is there now.
    pub replayed: Option<Json>,
}

/// What may differ from one run to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Places, as JSON pointers; `*` stands for any one name or number.
    pub pointers: Vec<String>,
    /// Whether times and ids may differ: members with such names, and texts that are both times or both
    /// UUIDs.
    pub times_and_ids: bool,
}

/// The places where two values differ, without those that may. At most a thousand.
pub fn differences(recorded: &Json, replayed: &Json, ignored: &Ignored) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(Some(recorded), Some(replayed), "", ignored, &mut found);
    found
}

fn compare(
    recorded: Option<&Json>,
    replayed: Option<&Json>,
    pointer: &str,
    ignored: &Ignored,
    found: &mut Vec<Difference>,
) {
    if recorded == replayed || found.len() >= MOST || ignored.covers(pointer) {
        return;
    }
    match (recorded, replayed) {
        (Some(Json::Object(one)), Some(Json::Object(other))) => {
            let mut names: Vec<&str> = one.iter().map(|(name, _)| name).collect();
            names.extend(other.iter().map(|(name, _)| name));
            names.sort_unstable();
            names.dedup();
            for name in names {
                let below = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                compare(one.get(name), other.get(name), &below, ignored, found);
            }
        }
        (Some(Json::Array(one)), Some(Json::Array(other))) => {
            for index in 0..one.len().max(other.len()) {
                let below = format!("{pointer}/{index}");
                compare(one.get(index), other.get(index), &below, ignored, found);
            }
        }
        (Some(Json::String(one)), Some(Json::String(other)))
            if ignored.times_and_ids && are_alike(one, other) => {}
        (Some(Json::String(one)), Some(Json::String(other))) => {
            // Tools often answer with JSON in a text.
            match (document(one), document(other)) {
                (Some(one), Some(other)) => {
                    compare(Some(&one), Some(&other), pointer, ignored, found);
                }
                _ => push(recorded, replayed, pointer, found),
            }
        }
        _ => push(recorded, replayed, pointer, found),
    }
}

fn push(
    recorded: Option<&Json>,
    replayed: Option<&Json>,
    pointer: &str,
    found: &mut Vec<Difference>,
) {
    found.push(Difference {
        pointer: pointer.to_owned(),
        recorded: recorded.cloned(),
        replayed: replayed.cloned(),
    });
}

impl Ignored {
    fn covers(&self, pointer: &str) -> bool {
        let named = self.pointers.iter().any(|known| fits(known, pointer));
        let last = pointer.rsplit('/').next().unwrap_or_default();
        named || (self.times_and_ids && is_time_or_id(last))
    }
}

fn fits(pattern: &str, pointer: &str) -> bool {
    let (mut wanted, mut parts) = (pattern.split('/'), pointer.split('/'));
    loop {
        match (wanted.next(), parts.next()) {
            (None, None) => return true,
            (Some(wanted), Some(part)) if wanted == "*" || wanted == part => {}
            _ => return false,
        }
    }
}

/// `created_at`, `timestamp`, `requestId`, …
fn is_time_or_id(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| !matches!(c, '_' | '-')).collect();
    let plain = plain.to_ascii_lowercase();
    let ends_camel = name.ends_with("Id") || name.ends_with("At");
    let ends_snake = ["_id", "_at", "_ms", "_time", "-id"]
        .iter()
        .any(|end| name.ends_with(end));
    NAMES.contains(&plain.as_str()) || ends_camel || ends_snake
}

/// Two times, or two UUIDs.
fn are_alike(one: &str, other: &str) -> bool {
    (is_time(one) && is_time(other)) || (is_uuid(one) && is_uuid(other))
}

/// `2026-11-15T08:00:00…`
fn is_time(text: &str) -> bool {
    text.len() >= 19 && shape(text.get(..19).unwrap_or_default()) == "0000-00-00T00:00:00"
}

fn is_uuid(text: &str) -> bool {
    let is_hex = |part: &str| part.chars().all(|c| c.is_ascii_hexdigit());
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.split('-').all(is_hex)
}

fn shape(text: &str) -> String {
    let digit = |c: char| if c.is_ascii_digit() { '0' } else { c };
    text.chars().map(digit).collect()
}

fn document(text: &str) -> Option<Json> {
    let begins = text.trim_start().starts_with(['{', '[']);
    let read = || Json::admit(text.as_bytes(), &countersign_canon::Limits::event()).ok();
    begins.then(read).flatten()
}

const NAMES: [&str; 14] = [
    "id",
    "uuid",
    "guid",
    "time",
    "timestamp",
    "ts",
    "date",
    "datetime",
    "now",
    "etag",
    "nonce",
    "duration",
    "elapsed",
    "pid",
];
const MOST: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_canon::Limits;

    fn places(one: &str, other: &str, ignored: &Ignored) -> Vec<String> {
        let read = |text: &str| Json::admit(text.as_bytes(), &Limits::event()).unwrap();
        let found = differences(&read(one), &read(other), ignored);
        found.into_iter().map(|one| one.pointer).collect()
    }

    #[test]
    fn differences_are_found_where_they_are() {
        let strict = Ignored {
            pointers: Vec::new(),
            times_and_ids: false,
        };
        let check = |one: &str, other: &str, expect: &[&str]| {
            assert_eq!(places(one, other, &strict), expect, "{one} {other}");
        };
        check("{\"a\":[1,2]}", "{\"a\":[1,2]}", &[]);
        check("{\"a\":[1,2]}", "{\"a\":[1,3,4]}", &["/a/1", "/a/2"]);
        check("{\"a\":1}", "{\"b\":1}", &["/a", "/b"]);
        check("{\"a/b\":1}", "{\"a/b\":2}", &["/a~1b"]);
        check("{\"id\":1}", "{\"id\":2}", &["/id"]);
        // JSON in a text is compared as JSON.
        check(
            r#"{"t":"{\"x\":1, \"y\":2}"}"#,
            r#"{"t":"{\"y\":2,\"x\":1}"}"#,
            &[],
        );
        check(r#"{"t":"{\"x\":1}"}"#, r#"{"t":"{\"x\":2}"}"#, &["/t/x"]);
    }

    #[test]
    fn times_ids_and_named_places_may_differ_and_nothing_else() {
        let loose = Ignored {
            pointers: vec!["/rows/*/rank".to_owned()],
            times_and_ids: true,
        };
        let check = |one: &str, other: &str, expect: &[&str]| {
            assert_eq!(places(one, other, &loose), expect, "{one} {other}");
        };
        check(
            "{\"created_at\":1,\"requestId\":\"a\"}",
            "{\"created_at\":2,\"requestId\":\"b\"}",
            &[],
        );
        check(
            r#"{"x":"2026-11-15T08:00:00Z"}"#,
            r#"{"x":"2026-11-16T09:00:00Z"}"#,
            &[],
        );
        check(
            r#"{"x":"2026-11-15T08:00:00Z"}"#,
            r#"{"x":"tomorrow"}"#,
            &["/x"],
        );
        check(
            "{\"rows\":[{\"rank\":1,\"name\":\"a\"}]}",
            "{\"rows\":[{\"rank\":2,\"name\":\"b\"}]}",
            &["/rows/0/name"],
        );
        check(
            "{\"valid\":true,\"paid\":1}",
            "{\"valid\":false,\"paid\":2}",
            &["/paid", "/valid"],
        );
    }
}
