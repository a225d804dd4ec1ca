//! A place inside the action that a transform changes: `$policy_target.body.items[2]`.

use std::fmt;
use std::str::FromStr;

use countersign_canon::Json;

/// A path from the root of the action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPath {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Member(String),
    Element(usize),
}

/// Why a path cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It leads into something else than the action.
    #[error("the path does not start at `$policy_target`")]
    OtherRoot,
    /// It cannot be read.
    #[error("the path is malformed")]
    Malformed,
    /// There is nothing at the place.
    #[error("there is nothing at the place that the path names")]
    Missing,
}

impl TargetPath {
    /// Puts a value at the place, which must exist: a transform changes, it does not add.
    pub fn replace(&self, target: &mut Json, value: Json) -> Result<(), TargetError> {
        let mut place = target;
        for segment in &self.segments {
            place = step(place, segment).ok_or(TargetError::Missing)?;
        }
        *place = value;
        Ok(())
    }
}

impl fmt::Display for TargetPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for TargetPath {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let rest = text.strip_prefix(ROOT).ok_or(TargetError::OtherRoot)?;
        if rest.starts_with(|next: char| next != '.' && next != '[') {
            return Err(TargetError::OtherRoot);
        }
        let mut segments = Vec::new();
        let mut rest = rest;
        while !rest.is_empty() {
            let (segment, after) = segment(rest).ok_or(TargetError::Malformed)?;
            segments.push(segment);
            rest = after;
        }
        Ok(Self {
            text: text.to_owned(),
            segments,
        })
    }
}

fn step<'j>(place: &'j mut Json, segment: &Segment) -> Option<&'j mut Json> {
    match (place, segment) {
        (Json::Object(members), Segment::Member(name)) => members.get_mut(name),
        (Json::Array(elements), Segment::Element(index)) => elements.get_mut(*index),
        _ => None,
    }
}

/// `.name`, `[3]` or `["any name"]`, and what follows.
fn segment(text: &str) -> Option<(Segment, &str)> {
    if let Some(rest) = text.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        return (!name.is_empty() && name.chars().all(plain))
            .then(|| (Segment::Member(name.to_owned()), after));
    }
    let rest = text.strip_prefix('[')?;
    if let Some(rest) = rest.strip_prefix('"') {
        let (name, after) = rest.split_once("\"]")?;
        return (!name.contains(['"', '\\'])).then(|| (Segment::Member(name.to_owned()), after));
    }
    let (index, after) = rest.split_once(']')?;
    let canonical = index == "0" || !index.starts_with(['0', '+']);
    canonical.then(|| {
        index
            .parse()
            .ok()
            .map(|index| (Segment::Element(index), after))
    })?
}

const ROOT: &str = "$policy_target";
