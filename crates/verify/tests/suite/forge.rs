//! What somebody can do who knows the format.

use countersign_canon::{Hash, Json, Limits, Object};

/// The line with its content edited and its own hash computed anew.
pub(crate) fn forge(line: &[u8], edit: impl FnOnce(&mut Object)) -> Vec<u8> {
    let mut event = Json::admit(line, &Limits::event())
        .unwrap()
        .into_object()
        .unwrap();
    edit(&mut event);
    event.remove("hash");
    let hash = Hash::of(&Json::Object(event.clone()).to_jcs().unwrap());
    event.insert("hash".to_owned(), Json::from(hash.to_string()));
    Json::Object(event).to_jcs().unwrap()
}

/// Sets one member of the envelope.
pub(crate) fn set(event: &mut Object, member: &str, value: impl Into<Json>) {
    event.insert(member.to_owned(), value.into());
}

/// The payload, to be changed.
pub(crate) fn payload(event: &mut Object) -> &mut Object {
    event.get_mut("payload").unwrap().as_object_mut().unwrap()
}

/// Links the events of one session anew, from the first on: a history without a fault, but another
/// one.
pub(crate) fn relink(lines: &mut [Vec<u8>]) {
    let mut prev_hash = Json::Null;
    for (seq, line) in lines.iter_mut().enumerate() {
        *line = forge(line, |event| {
            set(event, "seq", seq as u64);
            set(event, "prev_hash", prev_hash);
        });
        let event = Json::admit(line, &Limits::event()).unwrap();
        prev_hash = event.get("hash").unwrap().clone();
    }
}
