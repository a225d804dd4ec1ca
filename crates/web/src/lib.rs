//! What the HTTP doors share: who may call ([`Access`]), bodies with limits ([`Room`]),
//! connections with an end ([`serve`]), and the threads that carry them ([`Carriers`]).
//!
//! The crate knows nothing of what is asked or answered, and decides nothing about it.
#![forbid(unsafe_code)]

mod access;
mod carriers;
mod room;
mod seats;
mod serve;
mod tls;

pub use access::{Access, NotAnOrigin, Stranger, Unclear, only};
pub use carriers::Carriers;
pub use room::{Held, ReadError, Room, Share};
pub use serve::{Limits, Peer, serve};
pub use tls::{TlsError, acceptor};
pub use tokio_rustls::TlsAcceptor;
