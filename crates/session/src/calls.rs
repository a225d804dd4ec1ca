//! Tool calls: the newest ones, and those that have no outcome yet.

use std::collections::BTreeMap;

use countersign_canon::{Error, Hash, Json};

use crate::Name;
use crate::form::{Form, Malformed, Members, ObjectText, read_list, record, write_list};

/// A tool call as it was proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The event that proposed it.
    pub seq: u64,
    /// The tool.
    pub tool_name: Name,
    /// SHA-256 of the canonical arguments.
    pub args: Hash,
}

impl Call {
    /// A call of a tool. Absent arguments count as `null`; `{"x":1}` and `{"x":1.0}` are the same,
    /// because they have the same canonical text (RFC 8785).
    pub fn new(seq: u64, tool_name: &str, args: Option<&Json>) -> Result<Self, Error> {
        let args = Hash::of(&args.unwrap_or(&Json::Null).to_jcs()?);
        Ok(Self {
            seq,
            tool_name: Name::of(tool_name),
            args,
        })
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.tool_name == other.tool_name && self.args == other.args
    }
}

record!(Call {
    args,
    seq,
    tool_name
});

/// The newest calls, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecentCalls(Vec<Call>);

impl RecentCalls {
    pub(crate) const MAX: usize = 32;

    pub(crate) fn push(&mut self, call: Call) {
        if self.0.len() >= Self::MAX {
            self.0.remove(0);
        }
        self.0.push(call);
    }

    pub(crate) fn as_slice(&self) -> &[Call] {
        &self.0
    }
}

impl Form for RecentCalls {
    fn write(&self, out: &mut Vec<u8>) {
        write_list(self.0.iter(), out, Call::write);
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        read_list(json, Self::MAX, Call::read).map(Self)
    }
}

/// Calls that were neither answered nor denied, by their id.
///
/// FAIL-CLOSED: beyond [`OpenCalls::MAX`] the oldest call is forgotten; its result, should it ever
/// come, is one of an unknown tool, which nothing trusts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OpenCalls {
    calls: BTreeMap<Name, OpenCall>,
}

/// A call without an outcome, and the server that offers its tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenCall {
    pub(crate) call: Call,
    pub(crate) server: Option<Name>,
}

impl OpenCalls {
    pub(crate) const MAX: usize = 128;

    pub(crate) fn open(&mut self, call_id: Name, open: OpenCall) {
        self.calls.insert(call_id, open);
        if self.calls.len() > Self::MAX {
            let oldest = self.calls.iter().min_by_key(|(_, open)| open.call.seq);
            if let Some(oldest) = oldest.map(|(call_id, _)| call_id.clone()) {
                self.calls.remove(&oldest);
            }
        }
    }

    /// The call, which now has its outcome.
    pub(crate) fn close(&mut self, call_id: Option<&str>) -> Option<OpenCall> {
        self.calls.remove(&Name::of(call_id?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &Call)> {
        self.calls
            .iter()
            .map(|(call_id, open)| (call_id, &open.call))
    }
}

impl Form for OpenCalls {
    fn write(&self, out: &mut Vec<u8>) {
        write_list(self.calls.iter(), out, |(call_id, open), out| {
            ObjectText::begin(out)
                .member("call", &open.call)
                .member("call_id", call_id)
                .member("server", &open.server)
                .end();
        });
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        let open = |json: &Json| {
            let members = Members::of(json)?;
            let open = OpenCall {
                call: members.read("call")?,
                server: members.read("server")?,
            };
            Ok((members.read("call_id")?, open))
        };
        Ok(Self {
            calls: read_list(json, Self::MAX, open)?,
        })
    }
}
