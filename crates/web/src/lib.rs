//! What the HTTP doors share: who may call ([`Access`]), bodies with limits ([`Room`]), and
//! connections with an end ([`serve`]).
//!
//! The crate knows nothing of what is asked or answered, and decides nothing about it.
#![forbid(unsafe_code)]

mod access;
mod room;
mod serve;
mod tls;

pub use access::{Access, Stranger, Unclear, only};
pub use room::{Held, ReadError, Room, Share};
pub use serve::{Limits, Peer, serve};
pub use tls::{TlsError, acceptor};
pub use tokio_rustls::TlsAcceptor;
