//! Parting a payload into what is stored in clear and what is sealed, and joining it again.

use countersign_canon::{Json, Object};

/// The place of a payload that is not an object.
pub const WHOLE: &str = "";
/// The place of all members that the table does not name, as one object: their names are sealed too.
pub const OTHER: &str = "/*";

/// A payload in two halves.
#[derive(Default)]
pub struct Split {
    /// Members that may be stored in clear.
    pub public: Object,
    /// Values to seal, each with its place in the payload.
    pub sealed: Vec<(&'static str, Json)>,
}

impl Split {
    pub(super) fn public(&mut self, place: &'static str, value: Json) {
        self.public.insert(member(place).to_owned(), value);
    }

    pub(super) fn sealed(&mut self, place: &'static str, value: Json) {
        self.sealed.push((place, value));
    }

    pub(super) fn other(&mut self, members: Object) {
        if !members.is_empty() {
            self.sealed(OTHER, Json::Object(members));
        }
    }

    pub(super) fn whole(&mut self, value: Json) {
        self.sealed(WHOLE, value);
    }
}

/// Puts sealed values back at their places: the payload as it was given.
///
/// `None` when a place makes no sense or is taken, which only happens for values that no split has
/// made.
pub fn join(public: Object, sealed: impl IntoIterator<Item = (String, Json)>) -> Option<Json> {
    let mut payload = public;
    let mut sealed = sealed.into_iter();
    while let Some((place, value)) = sealed.next() {
        match (place.as_str(), value) {
            (WHOLE, value) => {
                let alone = payload.is_empty() && sealed.next().is_none();
                return alone.then_some(value);
            }
            (OTHER, Json::Object(members)) => {
                for (name, value) in members {
                    put(&mut payload, name, value)?;
                }
            }
            (OTHER, _) => return None,
            (place, value) => put(&mut payload, place.strip_prefix('/')?.to_owned(), value)?,
        }
    }
    Some(Json::Object(payload))
}

/// SECURITY: a sealed value never takes the place of one that everybody can read.
fn put(payload: &mut Object, name: String, value: Json) -> Option<()> {
    payload.insert(name, value).is_none().then_some(())
}

fn member(place: &'static str) -> &'static str {
    place.strip_prefix('/').unwrap_or(place)
}
