//! Why JSON text was refused, and where.

use std::fmt;

use crate::pointer;
use crate::quoted::Quoted;

/// A refusal: a [`Reason`], a JSON pointer (RFC 6901) to the place, and the byte where reading
/// stopped when there was text to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Refusal>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Refusal {
    reason: Reason,
    pointer: String,
    offset: Option<usize>,
}

impl Error {
    #[cold]
    pub(crate) fn new(reason: Reason, pointer: String, offset: Option<usize>) -> Self {
        Self(Box::new(Refusal {
            reason,
            pointer,
            offset,
        }))
    }

    /// What is wrong.
    pub fn reason(&self) -> &Reason {
        &self.0.reason
    }

    /// Where it is wrong: the innermost value that was being read. Empty means the whole document.
    pub fn pointer(&self) -> &str {
        &self.0.pointer
    }

    /// The byte of the text where reading stopped; `None` when a value was written, not read.
    pub fn offset(&self) -> Option<usize> {
        self.0.offset
    }

    /// The same refusal seen from a document that holds this one at `prefix`, a JSON pointer such
    /// as `/payload`. The offset still counts from the start of the inner text.
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        self.0.pointer.insert_str(0, prefix);
        self
    }

    pub(crate) fn within_member(self, key: &str) -> Self {
        self.within(&pointer::segment(key))
    }

    pub(crate) fn within_element(self, index: usize) -> Self {
        self.within(&format!("/{index}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at ", self.0.reason)?;
        match self.0.pointer.as_str() {
            "" => f.write_str("the top level")?,
            pointer => write!(f, "{}", Quoted(pointer))?,
        }
        match self.0.offset {
            Some(offset) => write!(f, " (byte {offset})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// What is wrong with a text or a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// An object names the same key twice.
    #[error("duplicate key {}", Quoted(.0))]
    DuplicateKey(String),
    /// `NaN`, `Infinity` or `-Infinity`.
    #[error("not a number")]
    NotANumber,
    /// A number that JSON's grammar does not know, such as `01`, `1.` or `-`.
    #[error("malformed number")]
    InvalidNumber,
    /// A number that would change in a round trip through a double.
    #[error("number does not survive a round trip through a double")]
    InexactNumber,
    /// A number beyond the largest double.
    #[error("number out of range")]
    NumberOutOfRange,
    /// Half of a surrogate pair, which is no character.
    #[error("lone surrogate")]
    LoneSurrogate,
    /// Bytes that are not UTF-8.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// The text starts with a byte order mark.
    #[error("byte order mark")]
    ByteOrderMark,
    /// Something follows the value.
    #[error("trailing data")]
    TrailingData,
    /// Arrays and objects are nested deeper than allowed.
    #[error("nested deeper than {limit}")]
    TooDeep {
        /// The deepest nesting allowed.
        limit: usize,
    },
    /// The text is longer than allowed.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// The largest size allowed.
        limit: usize,
    },
    /// The text ends inside a value.
    #[error("unexpected end")]
    UnexpectedEnd,
    /// A byte that cannot stand here.
    #[error("unexpected {}", Byte(*.0))]
    UnexpectedByte(u8),
    /// A backslash with something after it that JSON does not know.
    #[error("invalid escape")]
    InvalidEscape,
    /// A control character that stands unescaped in a string.
    #[error("control character {}", Byte(*.0))]
    ControlCharacter(u8),
    /// Valid JSON, but not the canonical text of its value.
    #[error("not in canonical form: {0}")]
    NotCanonical(Deviation),
    /// Another kind of value was required.
    #[error("expected {0}")]
    Expected(Kind),
    /// A required key is not there.
    #[error("missing key {}", Quoted(.0))]
    MissingKey(String),
    /// A key stands where another one, or none, was required.
    #[error("unexpected key {}{}", Quoted(.found), Instead(.expected.as_deref()))]
    UnexpectedKey {
        /// The key that was read.
        found: String,
        /// The key that was required, or `None` if the object had to end.
        expected: Option<String>,
    },
}

/// How valid JSON text differs from its canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Deviation {
    /// White space outside strings.
    #[error("white space")]
    WhiteSpace,
    /// A key that sorts before its predecessor.
    #[error("keys out of order")]
    KeyOrder,
    /// An escape where the character itself, or another escape, is canonical.
    #[error("escape")]
    Escape,
    /// A number written in another way.
    #[error("number")]
    Number,
}

/// A kind of JSON value that a reader asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Kind {
    /// `{…}`
    #[error("an object")]
    Object,
    /// `[…]`
    #[error("an array")]
    Array,
    /// `"…"`
    #[error("a string")]
    String,
    /// `"…"` or `null`
    #[error("a string or null")]
    OptionalString,
    /// An integer between −(2⁵³−1) and 2⁵³−1.
    #[error("an integer of at most 53 bits")]
    Integer,
    /// `true` or `false`
    #[error("a boolean")]
    Boolean,
}

struct Byte(u8);

impl fmt::Display for Byte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            graphic @ 0x21..=0x7e => write!(
                f,
                "{}",
                Quoted(char::from(graphic).encode_utf8(&mut [0; 4]))
            ),
            other => write!(f, "byte 0x{other:02x}"),
        }
    }
}

struct Instead<'a>(Option<&'a str>);

impl fmt::Display for Instead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(expected) => write!(f, " instead of {}", Quoted(expected)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reason: Reason, pointer: &str, offset: Option<usize>, expect: &str) {
        assert_eq!(
            Error::new(reason, pointer.to_owned(), offset).to_string(),
            expect
        );
    }

    #[test]
    fn messages() {
        let duplicate = Reason::DuplicateKey("a".to_owned());
        check(
            duplicate,
            "/x/0/a",
            Some(17),
            "duplicate key `a` at `/x/0/a` (byte 17)",
        );
        check(
            Reason::InexactNumber,
            "/n",
            None,
            "number does not survive a round trip through a double at `/n`",
        );
        check(
            Reason::UnexpectedByte(b'}'),
            "",
            Some(3),
            "unexpected `}` at the top level (byte 3)",
        );
        check(
            Reason::ControlCharacter(0x1b),
            "/s",
            Some(9),
            "control character byte 0x1b at `/s` (byte 9)",
        );
        let swapped = Reason::UnexpectedKey {
            found: "b".to_owned(),
            expected: Some("a".to_owned()),
        };
        check(
            swapped,
            "",
            Some(1),
            "unexpected key `b` instead of `a` at the top level (byte 1)",
        );
        let deviation = Reason::NotCanonical(Deviation::KeyOrder);
        check(
            deviation,
            "/o",
            Some(1),
            "not in canonical form: keys out of order at `/o` (byte 1)",
        );
    }

    #[test]
    fn a_refusal_moves_into_the_outer_document() {
        let inner = Error::new(Reason::LoneSurrogate, "/a".to_owned(), Some(1));
        assert_eq!(inner.within("/payload").pointer(), "/payload/a");
        let named = Error::new(Reason::LoneSurrogate, "/0".to_owned(), None);
        assert_eq!(
            named.within_member("a/b~c").within_element(7).pointer(),
            "/7/a~1b~0c/0"
        );
    }
}
