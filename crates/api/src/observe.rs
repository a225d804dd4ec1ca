//! The one place where requests and events are seen: whoever measures or traces looks here.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use countersign_store::Stored;

use crate::Role;

/// Something that happened at the door.
#[non_exhaustive]
pub enum Observed<'a> {
    /// A request was answered.
    Request(&'a Answered<'a>),
    /// An event was recorded, by whomever.
    Event(&'a Stored),
}

/// A request that was answered. It has no content.
#[derive(Debug)]
pub struct Answered<'a> {
    /// Its name.
    pub id: &'a str,
    /// The method.
    pub method: &'a str,
    /// The path of the route, not the path that was asked for; `None` if there is no such route.
    pub route: Option<&'static str>,
    /// The status of the answer.
    pub status: u16,
    /// How long the answer took.
    pub time: Duration,
    /// Who asked: the id of the token and its role.
    pub caller: Option<(&'a str, Role)>,
    /// What the caller said, with its trace.
    pub headers: &'a HeaderMap,
}

/// Is told of everything, on the thread that does it: it must be quick and must not block.
pub type Observer = Arc<dyn Fn(&Observed<'_>) + Send + Sync>;

/// Tells what was counted, in the text format of Prometheus.
pub type Metrics = Arc<dyn Fn() -> String + Send + Sync>;
