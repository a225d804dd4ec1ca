//! Files of the corpus, and changing them at a place.

use std::fs;
use std::path::PathBuf;

use countersign_canon::{Json, Limits};

pub(crate) fn read(file: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    fs::read(path.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

pub(crate) fn json(file: &str) -> Json {
    Json::admit(&read(file), &Limits::event()).unwrap()
}

/// Puts a value at a pointer, whose parent exists.
pub(crate) fn set(root: &mut Json, pointer: &str, value: Json) {
    let (parent, name) = parent(root, pointer);
    match parent {
        Json::Object(members) => {
            members.insert(name, value);
        }
        Json::Array(items) => items[name.parse::<usize>().unwrap()] = value,
        other => panic!("nothing can be put at {pointer} of {other:?}"),
    }
}

/// Takes the member at a pointer out.
pub(crate) fn remove(root: &mut Json, pointer: &str) {
    let (parent, name) = parent(root, pointer);
    let removed = parent.as_object_mut().unwrap().remove(&name);
    assert!(removed.is_some(), "{pointer} is not there");
}

fn parent<'a>(root: &'a mut Json, pointer: &str) -> (&'a mut Json, String) {
    let mut parts: Vec<String> = pointer.split('/').skip(1).map(str::to_owned).collect();
    let name = parts.pop().unwrap();
    let parent = parts.iter().fold(root, |value, part| match value {
        Json::Object(members) => members.get_mut(part).unwrap(),
        Json::Array(items) => &mut items[part.parse::<usize>().unwrap()],
        other => panic!("{pointer} leads through {other:?}"),
    });
    (parent, name)
}
