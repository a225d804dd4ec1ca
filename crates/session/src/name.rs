//! Text from events, in a bounded form.

use std::fmt;

use countersign_canon::Digest;

/// Text that an event gave: a tool name, an id, a key.
///
/// Text of at most [`Name::MAX_BYTES`] bytes is held as it is. Longer text, and text with control
/// characters, is held by its digest, `sha256:…`; so is text that starts with `sha256:`, so that
/// two texts never get the same name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

impl Name {
    /// The longest text that is held as it is.
    pub const MAX_BYTES: usize = 128;

    /// The name of this text.
    pub fn of(text: &str) -> Self {
        match is_short(text) {
            true => Self(text.into()),
            false => Self(Digest::of(text.as_bytes()).to_string().into()),
        }
    }

    pub(crate) fn of_option(text: Option<&str>) -> Option<Self> {
        text.map(Self::of)
    }

    /// Reads a name back.
    pub(crate) fn read(name: &str) -> Option<Self> {
        (is_short(name) || name.parse::<Digest>().is_ok()).then(|| Self(name.into()))
    }

    /// The text or its digest.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, unless only its digest is held.
    pub fn verbatim(&self) -> Option<&str> {
        is_short(&self.0).then_some(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

fn is_short(text: &str) -> bool {
    text.len() <= Name::MAX_BYTES
        && !text.starts_with("sha256:")
        // Each would take six bytes in JSON.
        && !text.bytes().any(|byte| byte < b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, verbatim: bool) {
        let name = Name::of(text);
        let digest = Digest::of(text.as_bytes()).to_string();
        assert_eq!(name.as_str(), if verbatim { text } else { &digest });
        assert_eq!(name.verbatim(), verbatim.then_some(text));
        assert_eq!(Name::read(name.as_str()), Some(name));
    }

    #[test]
    fn short_text_is_held_as_it_is_and_the_rest_by_digest() {
        check("fs.read", true);
        check("", true);
        check("werkzeug \"ü\"", true);
        check(&"x".repeat(128), true);
        check(&"x".repeat(129), false);
        check(&"é".repeat(65), false);
        check("a\nb", false);
    }

    #[test]
    fn no_text_can_pass_for_the_digest_of_another() {
        let long = "x".repeat(500);
        let digest = Name::of(&long).as_str().to_owned();
        check(&digest, false);
        assert_ne!(Name::of(&digest), Name::of(&long));
        check("sha256:", false);
        assert_eq!(Name::read("sha256:"), None);
        assert_eq!(Name::read(&long), None);
    }
}
