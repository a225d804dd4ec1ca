//! The durable form of a snapshot: how its parts write canonical text, and read it back.
//!
//! A snapshot is hashed for every decision, so its parts write text at once, without a tree.

use countersign_canon::{Hash, Json, Object, jcs};
use countersign_event::MAX_EXACT;

use crate::Name;

/// Why text or a value is not a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// It is not JSON, or too large.
    #[error("not a snapshot: {0}")]
    NotJson(#[from] countersign_canon::Error),
    /// A part is missing, or is not what stands there in a snapshot.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The parts are right, but no snapshot is written like this: an unknown member, another
    /// version, parts out of order, white space.
    #[error("not exactly what a snapshot of this version writes")]
    NotExact,
}

/// A part of a snapshot that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a snapshot: expected {expected} at `{pointer}`")]
pub struct Malformed {
    pointer: String,
    expected: &'static str,
}

/// A part of a snapshot. Reading back what was written gives the same value.
pub(crate) trait Form: Sized {
    /// Appends the canonical text (RFC 8785).
    fn write(&self, out: &mut Vec<u8>);
    fn read(json: &Json) -> Result<Self, Malformed>;
}

/// An object that is being written.
///
/// INVARIANT: members come in the order of their names, which are plain ASCII.
pub(crate) struct ObjectText<'o> {
    out: &'o mut Vec<u8>,
    last: Option<&'static str>,
}

impl<'o> ObjectText<'o> {
    pub(crate) fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, last: None }
    }

    pub(crate) fn member(mut self, name: &'static str, value: &impl Form) -> Self {
        debug_assert!(self.last < Some(name), "`{name}` is out of order");
        if self.last.replace(name).is_some() {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        value.write(self.out);
        self
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}

/// Appends an array.
pub(crate) fn write_list<T>(
    parts: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    write: impl Fn(T, &mut Vec<u8>),
) {
    out.push(b'[');
    for (index, part) in parts.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(part, out);
    }
    out.push(b']');
}

/// The members of an object.
pub(crate) struct Members<'a>(&'a Object);

impl<'a> Members<'a> {
    pub(crate) fn of(json: &'a Json) -> Result<Self, Malformed> {
        json.as_object()
            .map(Self)
            .ok_or_else(|| Malformed::expected("an object"))
    }

    pub(crate) fn read<T: Form>(&self, member: &str) -> Result<T, Malformed> {
        let value = self
            .0
            .get(member)
            .ok_or_else(|| Malformed::expected("a value"));
        value
            .and_then(T::read)
            .map_err(|error| error.within(member))
    }
}

/// An array of at most `max` parts.
pub(crate) fn read_list<T, C: FromIterator<T>>(
    json: &Json,
    max: usize,
    read: impl Fn(&Json) -> Result<T, Malformed>,
) -> Result<C, Malformed> {
    let parts = json.as_array().filter(|parts| parts.len() <= max);
    let parts = parts.ok_or_else(|| Malformed::expected("an array that is not too long"))?;
    let read = |(index, part): (usize, &Json)| {
        read(part).map_err(|error| error.within(&index.to_string()))
    };
    parts.iter().enumerate().map(read).collect()
}

impl Malformed {
    pub(crate) fn expected(expected: &'static str) -> Self {
        Self {
            pointer: String::new(),
            expected,
        }
    }

    fn within(mut self, member: &str) -> Self {
        self.pointer = format!("/{member}{}", self.pointer);
        self
    }
}

/// A struct whose members are named after its fields, in the order of their names.
macro_rules! record {
    ($record:ident { $($field:ident),* $(,)? }) => {
        impl $crate::form::Form for $record {
            fn write(&self, out: &mut Vec<u8>) {
                $crate::form::ObjectText::begin(out)
                    $( .member(stringify!($field), &self.$field) )*
                    .end();
            }

            fn read(json: &countersign_canon::Json) -> Result<Self, $crate::form::Malformed> {
                let members = $crate::form::Members::of(json)?;
                Ok(Self { $( $field: members.read(stringify!($field))? ),* })
            }
        }
    };
}

/// An enum of words.
macro_rules! words {
    ($words:ident { $($word:ident = $text:literal),* $(,)? }) => {
        impl $words {
            /// The word in snapshots.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$word => $text ),* }
            }
        }

        impl $crate::form::Form for $words {
            fn write(&self, out: &mut Vec<u8>) {
                countersign_canon::jcs::write_string(self.as_str(), out);
            }

            fn read(json: &countersign_canon::Json) -> Result<Self, $crate::form::Malformed> {
                match json.as_str() {
                    $( Some($text) => Ok(Self::$word), )*
                    _ => Err($crate::form::Malformed::expected(concat!("one of", $(" `", $text, "`"),*))),
                }
            }
        }
    };
}

pub(crate) use {record, words};

/// INVARIANT: writes no number that a double would not keep, so every part has a canonical text.
impl Form for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(digits.format((*self).min(MAX_EXACT)).as_bytes());
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        let exact = json.as_u64().filter(|number| *number <= MAX_EXACT);
        exact.ok_or_else(|| Malformed::expected("a whole number from 0 to 2^53 - 1"))
    }
}

impl Form for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        json.as_bool()
            .ok_or_else(|| Malformed::expected("a boolean"))
    }
}

impl Form for Name {
    fn write(&self, out: &mut Vec<u8>) {
        jcs::write_string(self.as_str(), out);
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        json.as_str()
            .and_then(Name::read)
            .ok_or_else(|| Malformed::expected("a short string"))
    }
}

impl Form for Hash {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        out.extend_from_slice(&self.to_hex());
        out.push(b'"');
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        let hash = json.as_str().and_then(|text| text.parse().ok());
        hash.ok_or_else(|| Malformed::expected("64 lower-case hex digits"))
    }
}

impl<T: Form> Form for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(out),
            None => out.extend_from_slice(b"null"),
        }
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        match json {
            Json::Null => Ok(None),
            value => T::read(value).map(Some),
        }
    }
}
