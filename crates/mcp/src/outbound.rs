//! What may be sent to a server.

use countersign_engine::Running;

use crate::frame::{Frame, Kind};
use crate::method::Route;

/// Bytes that may be sent to a server.
///
/// INVARIANT: a call is here only with its permit: either nothing in the frame is a call, or the
/// engine has begun it.
#[must_use]
pub struct Outbound(Vec<u8>);

/// A call that the engine has begun.
pub struct Begun {
    bytes: Vec<u8>,
    running: Running,
}

impl Outbound {
    /// A frame that needs no permit; `None` for a call.
    pub(crate) fn passing(frame: Frame) -> Option<Self> {
        let method = match frame.kind() {
            Kind::Request { method, .. } | Kind::Notification { method, .. } => *method,
            Kind::Response { .. } | Kind::Error { .. } => return Some(Self(frame.into_bytes())),
        };
        match method.from_client() {
            Route::Call => None,
            _ => Some(Self(frame.into_bytes())),
        }
    }

    /// A call with its permit, and what is needed to settle it.
    pub(crate) fn begun(begun: Begun) -> (Self, Running) {
        (Self(begun.bytes), begun.running)
    }

    /// A message of our own making, which calls nothing.
    pub(crate) fn own(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl Begun {
    /// SECURITY: `running` exists only after `Engine::begin` has compared these bytes with a permit.
    pub(crate) fn new(bytes: Vec<u8>, running: Running) -> Self {
        Self { bytes, running }
    }

    pub(crate) fn running(&self) -> &Running {
        &self.running
    }
}
