//! Requests that were read a moment ago. An approval is asked for, decided and used within a short time,
//! often by one process.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::*;
use crate::Engine;
use crate::hot::lock;

/// What was made of the events that asked.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<Read>>);

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
    pub(crate) fn standing(&self, row: Approval) -> Result<Standing, Fault> {
        let reader = self.store().reader();
        let event = question(&row, reader)?;
        if let Some((envelope, rendering)) = self.recent.find(&event) {
            // What was erased is not told from memory.
            reader.session_key(&row.scope)?;
            return stand(row, envelope, rendering);
        }
        let (envelope, rendering) = read_back(&event, reader)?;
        let (envelope, rendering) = (Arc::new(envelope), Arc::new(rendering));
        self.recent.keep(Read {
            event,
            envelope: Arc::clone(&envelope),
            rendering: Arc::clone(&rendering),
        });
        stand(row, envelope, rendering)
    }
}

impl Recent {
    fn find(&self, event: &Stored) -> Option<(Arc<Envelope>, Arc<Rendering>)> {
        let all = lock(&self.0);
        let found = all.iter().rev().find(|read| read.event == *event)?;
        Some((Arc::clone(&found.envelope), Arc::clone(&found.rendering)))
    }

    fn keep(&self, read: Read) {
        let mut all = lock(&self.0);
        if all.len() >= MOST {
            all.pop_front();
        }
        all.push_back(read);
    }
}

/// How many requests are remembered; each may have a megabyte of arguments.
const MOST: usize = 16;
