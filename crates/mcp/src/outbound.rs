//! What may be sent to a server.

use countersign_engine::Running;

use crate::Id;
use crate::frame::{Frame, Kind};
use crate::method::{Method, Route};

/// Bytes that may be sent to a server.
///
/// INVARIANT: what the engine decides about is here only with its permit: either nothing in the frame is
/// a call or fetches anything, or the engine has begun it.
#[must_use]
pub struct Outbound {
    bytes: Vec<u8>,
    carries: Carries,
}

/// What somebody has to know who sends each message on a way of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Carries {
    /// The client's request with this id.
    Request(Id),
    /// A notification or an answer of the client.
    Word,
    /// Something of our own making.
    Own,
    /// The same, because the client's request with this id needs it: whoever made that is let in for it.
    OwnFor(Id),
}

/// A call that the engine has begun.
pub struct Begun {
    bytes: Vec<u8>,
    running: Running,
}

impl Outbound {
    /// A frame that needs no permit; `None` for a call.
    pub(crate) fn passing(frame: Frame) -> Option<Self> {
        let (method, carries) = match frame.kind() {
            Kind::Request { method, id, .. } => (Some(*method), Carries::Request(id.clone())),
            Kind::Notification { method, .. } => (Some(*method), Carries::Word),
            Kind::Response { .. } | Kind::Error { .. } => (None, Carries::Word),
        };
        match method.map(Method::from_client) {
            Some(Route::Call) => None,
            _ => Some(Self {
                bytes: frame.into_bytes(),
                carries,
            }),
        }
    }

    /// A call with its permit, and what is needed to settle it.
    pub(crate) fn begun(id: Id, begun: Begun) -> (Self, Running) {
        let outbound = Self {
            bytes: begun.bytes,
            carries: Carries::Request(id),
        };
        (outbound, begun.running)
    }

    /// A message of our own making, which calls nothing.
    pub(crate) fn own(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            carries: Carries::Own,
        }
    }

    /// The same, where a request of the client needs the answer.
    pub(crate) fn own_for(id: Id, bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            carries: Carries::OwnFor(id),
        }
    }

    pub(crate) fn carries(&self) -> &Carries {
        &self.carries
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Begun {
    /// SECURITY: bytes are sent only for an action that was begun with exactly these; for others
    /// there is nothing.
    pub(crate) fn new(bytes: Vec<u8>, running: Running) -> Option<Self> {
        running.covers(&bytes).then_some(Self { bytes, running })
    }

    pub(crate) fn running(&self) -> &Running {
        &self.running
    }
}
