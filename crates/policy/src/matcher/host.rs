//! Hosts: from a tool argument to a name or address that can be compared.

mod parse;
mod pattern;
mod rules;

pub use pattern::{HostPattern, HostPatternError};
pub use rules::{HostRules, parents};

use std::fmt;
use std::net::IpAddr;

/// The one host that a URL or a bare host names: an ASCII name in lower case without a trailing
/// dot, or an address. An IPv4 address inside IPv6 (`::ffff:1.2.3.4`) is that IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(Form);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Form {
    /// INVARIANT: non-empty labels of `a-z`, `0-9`, `-` and `_`, joined by single dots.
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Reads a tool argument: a URL (`http`, `https`, `ws`, `wss`, `ftp`), a host, or `host:port`.
    /// The port plays no part in what the host is.
    pub fn from_argument(text: &str) -> Result<Self, HostError> {
        parse::argument(text)
    }

    /// The name, unless this is an address.
    pub fn as_name(&self) -> Option<&str> {
        match &self.0 {
            Form::Name(name) => Some(name),
            Form::Address(_) => None,
        }
    }

    fn address(address: IpAddr) -> Self {
        Self(Form::Address(address.to_canonical()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Name(name) => f.pad(name),
            Form::Address(address) => write!(f, "{address}"),
        }
    }
}

/// Why a text names no single host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// There is no host.
    #[error("no host")]
    Empty,
    /// The text is longer than any sensible URL.
    #[error("too long")]
    TooLong,
    /// White space, a control character or a backslash, which readers skip or turn into something
    /// else.
    #[error("white space, control characters and backslashes are not allowed")]
    Character,
    /// A URL of a kind that is not known to name a host.
    #[error("unknown URL scheme")]
    Scheme,
    /// `user@host`, or text that some readers take for it.
    #[error("a user name in front of the host is not allowed")]
    UserInfo,
    /// What follows the colon is no port.
    #[error("malformed port")]
    Port,
    /// Percent-encoding in a host, which some readers decode and others do not.
    #[error("percent-encoding in a host is not allowed")]
    Percent,
    /// A character that old and new rules for international names read as different hosts.
    #[error("a character that clients map to different hosts; write the name in its `xn--` form")]
    Ambiguous,
    /// An IPv4 address in another form than four decimal numbers.
    #[error("an address that clients read differently; write it as four decimal numbers")]
    Number,
    /// A label that is empty, too long or made of other characters than letters, digits, hyphen and
    /// underscore.
    #[error("malformed label")]
    Label,
    /// None of name, IPv4 address and IPv6 address.
    #[error("not a host name or address")]
    Malformed,
}

#[cfg(test)]
mod tests;
