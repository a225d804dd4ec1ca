//! Taint: what untrusted content the session has taken in, and from where.

use std::collections::BTreeMap;

use countersign_canon::Json;

use crate::Name;
use crate::form::{Form, Malformed, Members, ObjectText, read_list, words, write_list};

/// The sources of untrusted content.
///
/// A source, once there, stays until the session ends. At most [`Taint::MAX_SOURCES`] are told
/// apart; what comes beyond counts as one source of its own, [`Label::Overflow`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taint {
    sources: BTreeMap<Origin, Seen>,
}

/// Where untrusted content came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// The kind of source.
    pub label: Label,
    /// The tool or the memory key, if known.
    pub name: Option<&'a Name>,
    /// The server that offers the tool, if one does.
    pub server: Option<&'a Name>,
    /// The first event that brought content from it.
    pub first_seq: u64,
    /// How many events did.
    pub count: u64,
}

/// A kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Label {
    /// Memory; its name is the memory key.
    MemoryRead,
    /// Sources that came after too many others to be told apart.
    Overflow,
    /// A tool; its name is the one under which the call was proposed.
    ToolOutput,
}

impl Taint {
    /// How many sources are told apart.
    pub const MAX_SOURCES: usize = 256;

    /// Whether there is any source.
    pub fn is_tainted(&self) -> bool {
        !self.sources.is_empty()
    }

    /// Every source, in the order of labels and names.
    pub fn sources(&self) -> impl Iterator<Item = Source<'_>> {
        self.sources.iter().map(|(origin, seen)| Source {
            label: origin.label,
            name: origin.name.as_ref(),
            server: origin.server.as_ref(),
            first_seq: seen.first_seq,
            count: seen.count,
        })
    }

    /// Every source but tools whose output is trusted, each by its server, if one offers it, and its
    /// name.
    pub fn untrusted(
        &self,
        trusted_tools: &dyn Fn(Option<&str>, &str) -> bool,
    ) -> impl Iterator<Item = Source<'_>> {
        self.sources().filter(move |source| {
            let tool = source.tool();
            !tool.is_some_and(|(server, name)| trusted_tools(server, name))
        })
    }

    /// Takes content from a source into account; tells whether the source is a new one.
    pub(crate) fn see(&mut self, mut origin: Origin, seq: u64) -> bool {
        if !self.sources.contains_key(&origin) && self.sources.len() >= Self::MAX_SOURCES {
            origin = Origin {
                label: Label::Overflow,
                name: None,
                server: None,
            };
        }
        let seen = self.sources.entry(origin).or_insert(Seen {
            first_seq: seq,
            count: 0,
        });
        seen.count += 1;
        seen.count == 1
    }
}

impl<'a> Source<'a> {
    /// The server and the tool, if the source is a tool and both names are known in full.
    ///
    /// SECURITY: nothing else can be trusted, whatever a manifest says.
    fn tool(&self) -> Option<(Option<&'a str>, &'a str)> {
        let server = match self.server {
            Some(server) => Some(server.verbatim()?),
            None => None,
        };
        match self.label {
            Label::ToolOutput => Some((server, self.name?.verbatim()?)),
            Label::MemoryRead | Label::Overflow => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin {
    pub(crate) label: Label,
    pub(crate) name: Option<Name>,
    pub(crate) server: Option<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    first_seq: u64,
    count: u64,
}

impl Form for Taint {
    fn write(&self, out: &mut Vec<u8>) {
        write_list(self.sources.iter(), out, |(origin, seen), out| {
            ObjectText::begin(out)
                .member("count", &seen.count)
                .member("first_seq", &seen.first_seq)
                .member("label", &origin.label)
                .member("name", &origin.name)
                .member("server", &origin.server)
                .end();
        });
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        let source = |json: &Json| {
            let members = Members::of(json)?;
            let origin = Origin {
                label: members.read("label")?,
                name: members.read("name")?,
                server: members.read("server")?,
            };
            let seen = Seen {
                first_seq: members.read("first_seq")?,
                count: members.read("count")?,
            };
            Ok((origin, seen))
        };
        Ok(Self {
            sources: read_list(json, Self::MAX_SOURCES + 1, source)?,
        })
    }
}

words!(Label { MemoryRead = "memory_read", Overflow = "overflow", ToolOutput = "tool_output" });
