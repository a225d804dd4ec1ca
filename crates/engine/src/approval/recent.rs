//! Requests that were read and votes whose signatures were checked a moment ago. An approval is asked
//! for, decided and used within a short time, often by one process.

use std::collections::VecDeque;
use std::sync::Mutex;

use countersign_approval::{Keyring, Refusal, Signed, Submission};

use super::*;
use crate::Engine;
use crate::hot::lock;

/// What was made of the events that asked, and of what people said.
#[derive(Default)]
pub(crate) struct Recent {
    requests: Mutex<VecDeque<Read>>,
    votes: Mutex<VecDeque<Arc<Signed>>>,
}

struct Read {
    event: Stored,
    envelope: Arc<Envelope>,
    rendering: Arc<Rendering>,
}

impl Engine {
    /// A request as it stands now.
    ///
    /// SECURITY: the event that asked is read each time, and what was made of it before counts only for
    /// the very same bytes.
    pub(crate) fn standing(&self, asked: Requested) -> Result<Standing, Fault> {
        let Requested {
            approval: row,
            event,
        } = asked;
        if let Some((envelope, rendering)) = self.recent.find(&event) {
            return stand(row, envelope, rendering);
        }
        let (envelope, rendering) = read_back(&event, self.store().reader())?;
        let (envelope, rendering) = (Arc::new(envelope), Arc::new(rendering));
        if size(&event) <= LARGEST {
            let read = Read {
                event,
                envelope: Arc::clone(&envelope),
                rendering: Arc::clone(&rendering),
            };
            keep(&self.recent.requests, read, MOST);
        }
        stand(row, envelope, rendering)
    }
}

impl Recent {
    /// A submission whose signature is right.
    ///
    /// SECURITY: what was found before counts only for the very same submission, and whoever counts the
    /// vote compares the envelope and the key.
    pub(crate) fn signed(
        &self,
        submission: &Submission,
        envelope: &Envelope,
        keys: &Keyring,
    ) -> Result<Arc<Signed>, Refusal> {
        let known = lock(&self.votes)
            .iter()
            .rev()
            .find(|it| it.submission() == submission && it.is_about(envelope, keys))
            .cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let signed = Arc::new(Signed::check(submission.clone(), envelope, keys)?);
        keep(&self.votes, Arc::clone(&signed), MOST_VOTES);
        Ok(signed)
    }

    fn find(&self, event: &Stored) -> Option<(Arc<Envelope>, Arc<Rendering>)> {
        let all = lock(&self.requests);
        let found = all.iter().rev().find(|read| read.event == *event)?;
        Some((Arc::clone(&found.envelope), Arc::clone(&found.rendering)))
    }
}

fn size(event: &Stored) -> usize {
    event.line.len() + event.ciphertext.as_ref().map_or(0, Vec::len)
}

fn keep<T>(all: &Mutex<VecDeque<T>>, one: T, most: usize) {
    let mut all = lock(all);
    if all.len() >= most {
        all.pop_front();
    }
    all.push_back(one);
}

/// How many requests are remembered.
const MOST: usize = 16;
/// How large their events may be: what is made of an event takes many times as much.
const LARGEST: usize = 64 << 10;
/// How many votes are remembered.
const MOST_VOTES: usize = 64;
