//! Paths into what a policy is asked about: `$snap.tool_call.args["to list"][0]`.
//!
//! A path has a root and segments: `.name` (any text up to the next `.` or `[`), `[3]`, or `["any
//! name"]` with the escapes of JSON. `$` and `$.name` are short for `$snap` and `$snap.name`. There are
//! no wildcards, filters or negative indices, and nothing is coerced.

use std::fmt;
use std::str::FromStr;

use countersign_canon::{Json, Limits};

/// A path that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    text: String,
    root: Root,
    segments: Vec<Segment>,
}

/// Where a path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Root {
    /// `$snap`: what the host says about the moment.
    Snapshot,
    /// `$pi`: everything that the policy gets.
    Input,
    /// `$policy_target`: what is judged, and the only thing that may be changed.
    Target,
    /// `$tool`: the catalog entry of the tool that is called.
    Tool,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// The member of an object.
    Member(String),
    /// The element of an array.
    Element(usize),
}

/// Why a text is no path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not start with one of the roots.
    #[error("a path starts with `$snap`, `$pi`, `$policy_target`, `$tool`, `$` or `$.`")]
    Root,
    /// A step cannot be read.
    #[error("the path is malformed at byte {0}")]
    Malformed(usize),
}

/// Why a path leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The member or element is not there.
    #[error("there is nothing at that place")]
    Missing,
    /// A member of something that is no object, or an element of something that is no array.
    #[error("the path goes through a value of another type")]
    Type,
}

impl Path {
    /// Where it starts.
    pub fn root(&self) -> Root {
        self.root
    }

    /// The steps from there.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it leads to, from the value of its root.
    pub fn resolve<'j>(&self, root: &'j Json) -> Result<&'j Json, Lost> {
        self.segments
            .iter()
            .try_fold(root, |place, segment| match (place, segment) {
                (Json::Object(members), Segment::Member(name)) => {
                    members.get(name).ok_or(Lost::Missing)
                }
                (Json::Array(elements), Segment::Element(index)) => {
                    elements.get(*index).ok_or(Lost::Missing)
                }
                _ => Err(Lost::Type),
            })
    }

    /// What it leads to, to be changed.
    pub fn resolve_mut<'j>(&self, root: &'j mut Json) -> Result<&'j mut Json, Lost> {
        self.segments
            .iter()
            .try_fold(root, |place, segment| match (place, segment) {
                (Json::Object(members), Segment::Member(name)) => {
                    members.get_mut(name).ok_or(Lost::Missing)
                }
                (Json::Array(elements), Segment::Element(index)) => {
                    elements.get_mut(*index).ok_or(Lost::Missing)
                }
                _ => Err(Lost::Type),
            })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let (root, mut rest) = root(text).ok_or(PathError::Root)?;
        let mut segments = Vec::new();
        while !rest.is_empty() {
            let malformed = PathError::Malformed(text.len() - rest.len());
            let (segment, after) = segment(rest).ok_or(malformed)?;
            segments.push(segment);
            rest = after;
        }
        Ok(Self {
            text: text.to_owned(),
            root,
            segments,
        })
    }
}

fn root(text: &str) -> Option<(Root, &str)> {
    let named = ROOTS.iter().find_map(|(name, root)| {
        let rest = text.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some((*root, rest))
    });
    // `$` alone and `$.name`, but not `$[0]`.
    let short = || {
        let rest = text.strip_prefix('$')?;
        (rest.is_empty() || rest.starts_with('.')).then_some((Root::Snapshot, rest))
    };
    named.or_else(short)
}

fn segment(text: &str) -> Option<(Segment, &str)> {
    if let Some(rest) = text.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        return (!name.is_empty() && !name.contains(']'))
            .then(|| (Segment::Member(name.to_owned()), after));
    }
    let rest = text.strip_prefix('[')?;
    if rest.starts_with('"') {
        let (literal, after) = rest.split_at_checked(literal_end(rest)?)?;
        let name = Json::admit(literal.as_bytes(), &Limits::plan()).ok()?;
        return Some((
            Segment::Member(name.into_string()?),
            after.strip_prefix(']')?,
        ));
    }
    let (digits, after) = rest.split_once(']')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let index = digits.parse().ok().filter(|_| is_number)?;
    Some((Segment::Element(index), after))
}

/// Behind the quote that closes the literal at the start.
fn literal_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

const ROOTS: &[(&str, Root)] = &[
    ("$policy_target", Root::Target),
    ("$snap", Root::Snapshot),
    ("$tool", Root::Tool),
    ("$pi", Root::Input),
];

#[cfg(test)]
mod tests;
