//! What a server hears when the door ends a session that the server has named.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method as Verb;
use hyper::header::{HeaderMap, HeaderValue};
use tokio::sync::Semaphore;

use crate::Era;

use super::headers::{SESSION, VERSION};
use super::upstream::{Idle, Remote};

/// Tells a server that sessions are over, a few at a time.
///
/// It has nothing of the session, whose end is recorded meanwhile, and no credential of a client: those are not
/// kept for it.
pub(super) struct Farewells(Arc<Semaphore>);

impl Default for Farewells {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

impl Farewells {
    /// The session of this name is over. A server that leaves too many of these unanswered is not told: it ends
    /// its sessions by itself too.
    pub(super) fn tell(&self, remote: &Remote, name: &str, era: Option<&'static Era>) {
        let turn = Arc::clone(&self.0).try_acquire_owned();
        let (Ok(turn), Ok(name)) = (turn, HeaderValue::try_from(name)) else {
            return;
        };
        let mut headers = HeaderMap::new();
        headers.insert(SESSION, name);
        if let Some(era) = era.filter(|era| era.version_header) {
            headers.insert(VERSION, HeaderValue::from_static(era.version));
        }
        let remote = remote.clone();
        tokio::spawn(async move {
            let _turn = turn;
            let sent = remote.send(Idle::default(), Verb::DELETE, headers, Bytes::new());
            // What it says to that changes nothing.
            let _ = tokio::time::timeout(TIME, sent).await;
        });
    }
}

/// How many are told at the same time.
const MOST: usize = 16;
/// How long a server may take to hear it.
const TIME: Duration = Duration::from_secs(5);
