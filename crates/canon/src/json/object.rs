//! Objects: unique keys in code point order.

use std::{iter, slice, vec};

use super::Json;

/// Members of a JSON object. Keys are unique and kept sorted by code point, which is also the order
/// of their UTF-8 bytes; the order in a source text has no meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    // INVARIANT: strictly ascending by key.
    members: Vec<(String, Json)>,
}

impl Object {
    /// An object without members.
    pub const fn new() -> Self {
        Self {
            members: Vec::new(),
        }
    }

    /// The members in any order, or `None` if two of them share a key.
    pub(crate) fn from_unique(mut members: Vec<(String, Json)>) -> Option<Self> {
        if !is_ascending(&members) {
            members.sort_by(|a, b| a.0.cmp(&b.0));
            if !is_ascending(&members) {
                return None;
            }
        }
        Some(Self { members })
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let (_, value) = self.members.get(self.position(key).ok()?)?;
        Some(value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        let position = self.position(key).ok()?;
        let (_, value) = self.members.get_mut(position)?;
        Some(value)
    }

    /// Whether the key is there.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_ok()
    }

    /// Sets a member and returns the value it had before.
    ///
    /// Members that follow are moved; to build a large object, collect it instead.
    pub fn insert(&mut self, key: String, value: Json) -> Option<Json> {
        match self.position(&key) {
            Ok(position) => {
                let (_, present) = self.members.get_mut(position)?;
                Some(std::mem::replace(present, value))
            }
            Err(free) => {
                self.members.insert(free, (key, value));
                None
            }
        }
    }

    /// Takes a member out and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let position = self.position(key).ok()?;
        Some(self.members.remove(position).1)
    }

    /// The members in code point order of their keys.
    pub fn iter(&self) -> Members<'_> {
        self.members.iter().map(borrow)
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.members
            .binary_search_by(|(present, _)| present.as_str().cmp(key))
    }
}

/// Of two members with one key the later one stays.
impl FromIterator<(String, Json)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(members: I) -> Self {
        let mut members: Vec<_> = members.into_iter().collect();
        // The sort is stable, so reversed input puts the latest of equal keys first.
        members.reverse();
        members.sort_by(|a, b| a.0.cmp(&b.0));
        members.dedup_by(|later, kept| later.0 == kept.0);
        Self { members }
    }
}

impl IntoIterator for Object {
    type Item = (String, Json);
    type IntoIter = vec::IntoIter<(String, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = (&'a str, &'a Json);
    type IntoIter = Members<'a>;

    fn into_iter(self) -> Members<'a> {
        self.iter()
    }
}

/// Members of an object, borrowed.
pub type Members<'a> =
    iter::Map<slice::Iter<'a, (String, Json)>, fn(&'a (String, Json)) -> (&'a str, &'a Json)>;

fn borrow((key, value): &(String, Json)) -> (&str, &Json) {
    (key, value)
}

fn is_ascending(members: &[(String, Json)]) -> bool {
    members.is_sorted_by(|a, b| a.0 < b.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stay_sorted_and_unique() {
        let mut object = Object::new();
        for key in ["b", "a", "é", "B", "\u{e000}", "😀"] {
            assert_eq!(object.insert(key.to_owned(), Json::Null), None);
        }
        assert_eq!(
            object.insert("a".to_owned(), Json::from(true)),
            Some(Json::Null)
        );
        let keys: Vec<_> = object.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["B", "a", "b", "é", "\u{e000}", "😀"]);
        assert_eq!(object.get("a"), Some(&Json::Bool(true)));
        assert_eq!(object.remove("a"), Some(Json::Bool(true)));
        assert_eq!(object.remove("a"), None);
        assert!(!object.contains_key("a"));
        *object.get_mut("b").unwrap() = Json::from("new");
        assert_eq!(object.get("b").and_then(Json::as_str), Some("new"));
        assert_eq!(object.clone().into_iter().collect::<Object>(), object);
    }
}
