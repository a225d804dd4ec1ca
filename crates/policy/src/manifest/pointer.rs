//! JSON pointers (RFC 6901): into manifests for messages, into arguments for what tools touch.

use std::fmt;

use countersign_canon::Json;

/// A JSON pointer such as `/files/0/path`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pointer {
    tokens: Vec<String>,
}

impl Pointer {
    /// Reads a pointer; the empty one is the whole document.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        if text.is_empty() {
            return Ok(Self { tokens: Vec::new() });
        }
        let tokens = text.strip_prefix('/').ok_or(PointerError::NoSlash)?;
        let tokens = tokens.split('/').map(unescaped).collect::<Option<_>>();
        tokens
            .map(|tokens| Self { tokens })
            .ok_or(PointerError::Escape)
    }

    /// The value it points to.
    pub fn resolve<'j>(&self, json: &'j Json) -> Option<&'j Json> {
        self.tokens
            .iter()
            .try_fold(json, |value, token| match value {
                Json::Object(members) => members.get(token),
                Json::Array(elements) => elements.get(index(token)?),
                _ => None,
            })
    }
}

impl Pointer {
    /// The whole value.
    pub(crate) fn root() -> Self {
        Self { tokens: Vec::new() }
    }

    /// The place that holds this one; the whole value holds itself.
    pub(crate) fn parent(&self) -> Self {
        let tokens = self.tokens.split_last().map(|(_, tokens)| tokens.to_vec());
        Self {
            tokens: tokens.unwrap_or_default(),
        }
    }

    /// The last step.
    pub(crate) fn name(&self) -> Option<&str> {
        self.tokens.last().map(String::as_str)
    }

    /// Whether this is the member of `place` with that name, or somewhere in it.
    pub(crate) fn passes(&self, place: &Self, name: &str) -> bool {
        let rest = self.tokens.strip_prefix(place.tokens.as_slice());
        rest.and_then(<[String]>::first)
            .is_some_and(|next| next == name)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens
            .iter()
            .try_for_each(|token| f.write_str(&segment(token)))
    }
}

/// Why a text is no JSON pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointerError {
    /// It is not empty and does not start with a slash.
    #[error("a pointer starts with `/`")]
    NoSlash,
    /// A `~` that is neither `~0` nor `~1`.
    #[error("`~` has to be written `~0`, and `/` in a name `~1`")]
    Escape,
}

/// One reference token with its slash.
pub fn segment(token: &str) -> String {
    format!("/{}", token.replace('~', "~0").replace('/', "~1"))
}

fn unescaped(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (escaped, rest) = match part.as_bytes().first()? {
            b'0' => ('~', part.strip_prefix('0')?),
            b'1' => ('/', part.strip_prefix('1')?),
            _ => return None,
        };
        out.push(escaped);
        out.push_str(rest);
    }
    Some(out)
}

/// Digits without leading zero.
fn index(token: &str) -> Option<usize> {
    let is_plain = token == "0" || !token.starts_with(['0', '+']);
    token.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests;
