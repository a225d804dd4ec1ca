//! What a reader should look at twice.

use std::fmt;

use crate::character::Hidden;
use crate::piece::Show;
use crate::quoted::{quote, quoted};

/// Something in a plan that may deceive the eye. The pointer is a JSON pointer into the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Characters that do not show as themselves.
    Hidden {
        /// Which.
        what: Hidden,
        /// How many in the whole plan.
        count: usize,
        /// Where the first is.
        pointer: String,
    },
    /// A name that reads like another one, in ASCII.
    LooksLike {
        /// What it is.
        subject: Subject,
        /// The name.
        text: String,
        /// What it looks like.
        like: String,
        /// Where it is.
        pointer: String,
    },
    /// A name with letters of scripts that do not belong together.
    MixedScript {
        /// What it is.
        subject: Subject,
        /// The name.
        text: String,
        /// Where it is.
        pointer: String,
    },
    /// Two members of one object whose names look the same.
    KeysAlike {
        /// One name.
        first: String,
        /// The other.
        second: String,
        /// Where the object is.
        pointer: String,
    },
    /// So many empty lines that what follows would be out of sight.
    EmptyLines {
        /// How many in a row.
        count: usize,
        /// Where.
        pointer: String,
    },
    /// So many spaces that what follows would be out of sight.
    Spaces {
        /// How many in a row.
        count: usize,
        /// Where.
        pointer: String,
    },
}

/// What a suspicious name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The name of a member.
    Key,
    /// Written like the name of a host.
    Host,
    /// Written like an identifier.
    Identifier,
    /// A word of a text.
    Word,
}

impl Subject {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Host => "host",
            Self::Identifier => "identifier",
            Self::Word => "word",
        }
    }
}

/// Where something is, in words.
fn place(pointer: &str) -> String {
    match pointer {
        "" => "at the top".to_owned(),
        _ => format!("at {}", quote(pointer)),
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ascii = |text: &str| quoted(text, Show::Ascii);
        match self {
            Self::Hidden {
                what,
                count,
                pointer,
            } => {
                let what = what.as_str();
                write!(f, "{what}: {count}, the first {}", place(pointer))
            }
            Self::LooksLike {
                subject,
                text,
                like,
                pointer,
            } => {
                let (subject, text, like) = (subject.as_str(), ascii(text), ascii(like));
                write!(f, "{subject} {text} looks like {like}, {}", place(pointer))
            }
            Self::MixedScript {
                subject,
                text,
                pointer,
            } => {
                let (subject, text) = (subject.as_str(), ascii(text));
                write!(f, "{subject} {text} mixes scripts, {}", place(pointer))
            }
            Self::KeysAlike {
                first,
                second,
                pointer,
            } => {
                let (first, second) = (ascii(first), ascii(second));
                write!(
                    f,
                    "keys {first} and {second} look alike, {}",
                    place(pointer)
                )
            }
            Self::EmptyLines { count, pointer } => {
                write!(f, "{count} empty lines in a row, {}", place(pointer))
            }
            Self::Spaces { count, pointer } => {
                write!(f, "{count} spaces in a row, {}", place(pointer))
            }
        }
    }
}
