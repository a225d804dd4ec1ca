//! What one request has to say to another: each waits with a mailbox.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::frame::Id;
use crate::outbound::Outbound;
use crate::{Done, Effect, Job};

use super::link::{Link, lock};

/// Something for a request that somebody else has caused.
pub(super) enum Letter {
    /// A job about it.
    Job(Box<Job>),
    /// A message for its client, with its share of what may wait.
    Message {
        bytes: Vec<u8>,
        _place: Option<OwnedSemaphorePermit>,
    },
    /// Something that the server is to be asked with the credential of its client.
    Question(Outbound),
}

/// Who waits for what becomes of a request of the client.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) mailboxes: HashMap<Id, Numbered>,
    /// A stream that was taken up again: it hears what nobody else waits for.
    pub(super) resumed: Option<Numbered>,
    count: u64,
}

pub(super) type Numbered = (u64, mpsc::UnboundedSender<Letter>);

/// Where jobs for a request arrive that somebody else has caused.
pub(super) struct Mailbox {
    link: Arc<Link>,
    /// None for a stream that was taken up again.
    id: Option<Id>,
    number: u64,
    jobs: mpsc::UnboundedReceiver<Letter>,
}

impl Link {
    pub(super) fn mailbox(self: &Arc<Self>, id: &Id) -> Mailbox {
        self.mailbox_of(Some(id.clone()))
    }

    /// A client takes a stream up again: what it waits for comes here, unless somebody else has it.
    pub(super) fn resumed(self: &Arc<Self>) -> Mailbox {
        self.mailbox_of(None)
    }

    fn mailbox_of(self: &Arc<Self>, id: Option<Id>) -> Mailbox {
        let (sender, jobs) = mpsc::unbounded_channel();
        let mut waiting = lock(&self.waiting);
        waiting.count += 1;
        let number = waiting.count;
        match id.clone() {
            Some(id) => drop(waiting.mailboxes.insert(id, (number, sender))),
            None => waiting.resumed = Some((number, sender)),
        }
        Mailbox {
            link: Arc::clone(self),
            id,
            number,
            jobs,
        }
    }
}

impl Waiting {
    /// Where a job about this request goes. What is not begun is left to whoever asked for it.
    pub(super) fn whose(&self, owner: &Id, job: &Job) -> Option<&mpsc::UnboundedSender<Letter>> {
        let resumed = self.resumed.as_ref().filter(|_| job.call().is_none());
        let mailbox = self.mailboxes.get(owner).or(resumed);
        mailbox.map(|(_, mailbox)| mailbox)
    }
}

impl Mailbox {
    pub(super) async fn next(&mut self) -> Option<Letter> {
        self.jobs.recv().await
    }

    /// What has come already.
    pub(super) fn come(&mut self) -> Option<Letter> {
        self.jobs.try_recv().ok()
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        let mut waiting = lock(&self.link.waiting);
        let is_ours = |(number, _): &Numbered| *number == self.number;
        match &self.id {
            Some(id) if waiting.mailboxes.get(id).is_some_and(is_ours) => {
                waiting.mailboxes.remove(id);
            }
            None if waiting.resumed.as_ref().is_some_and(is_ours) => waiting.resumed = None,
            Some(_) | None => {}
        }
        drop(waiting);
        // Jobs that came too late: a call that was not decided is not begun any more.
        self.jobs.close();
        while let Ok(letter) = self.jobs.try_recv() {
            let job = match letter {
                Letter::Job(job) => job,
                Letter::Message { .. } => continue,
                Letter::Question(question) => {
                    let link = Arc::clone(&self.link);
                    tokio::spawn(async move { link.not_asked(question).await });
                    continue;
                }
            };
            if let Some(id) = job.call().cloned() {
                drop(self.link.session().done(Done::Dropped(id), Instant::now()));
            } else {
                let link = Arc::clone(&self.link);
                tokio::spawn(async move { link.drive(vec![Effect::Job(job)], None).await });
            }
        }
    }
}
