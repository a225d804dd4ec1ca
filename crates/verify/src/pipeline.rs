//! Batches of events, examined side by side on all cores and followed one after the other.
//!
//! One thread reads. Each batch goes to whichever worker is free. The state of the verification is
//! the baton of a relay: a worker does all that is costly, then takes the baton from whoever has the
//! batch before, follows its own events and hands the baton on to whoever has the next.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::examine::{Examination, Item, Opener};
use crate::report::{Finding, Progress};
use crate::stream::Run;

/// Some events that were read together.
pub(crate) trait Batch: Send {
    /// The events, in order.
    fn items(&self) -> impl Iterator<Item = Item<'_>>;

    /// Whether reading has to end behind the events.
    fn is_last(&self) -> bool;

    /// What was found there.
    fn end(&self, seen: Progress) -> Option<Finding>;
}

/// Reads batches until there are no more or something is bad, and takes them into the run.
///
/// `read` is given a batch that is no longer needed, for its memory.
pub(crate) fn take_all<B: Batch, E>(
    run: &mut Run<'_>,
    opener: Option<&dyn Opener>,
    progress: &mut dyn FnMut(Progress),
    read: impl FnMut(Option<B>) -> Result<Option<B>, E>,
) -> Result<(), E> {
    let read = relay(run, opener, progress, read);
    progress(run.progress());
    read
}

fn relay<B: Batch, E>(
    run: &mut Run<'_>,
    opener: Option<&dyn Opener>,
    progress: &mut dyn FnMut(Progress),
    mut read: impl FnMut(Option<B>) -> Result<Option<B>, E>,
) -> Result<(), E> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let workers = cores.min(MOST_WORKERS);
    let (jobs, queue) = channel();
    let queue = Mutex::new(queue);
    let (done, finished) = channel::<Done<B>>();
    thread::scope(|scope| {
        // Gone when the reading ends; that ends the workers.
        let jobs = jobs;
        // One for each worker and none for this thread, which would wait for itself.
        let mut unused = vec![done; workers];
        let (first, mut state) = sync_channel(1);
        let _ = first.send(run);
        for number in 0.. {
            let mut spare = None;
            if number >= workers + READ_AHEAD {
                // A worker that panics ends the others; then the scope panics, too.
                let Ok(done) = finished.recv() else { break };
                progress(done.seen);
                if done.failed {
                    break;
                }
                spare = Some(done.batch);
            }
            let Some(batch) = read(spare)? else { break };
            let is_last = batch.is_last();
            if let Some(done) = unused.pop() {
                let queue = &queue;
                scope.spawn(move || work(queue, opener, &done));
            }
            let (after, next) = sync_channel(1);
            let before = std::mem::replace(&mut state, next);
            let _ = jobs.send(Job {
                batch,
                before,
                after,
            });
            if is_last {
                break;
            }
        }
        Ok(())
    })
}

struct Job<'r, 'e, B> {
    batch: B,
    before: Receiver<&'r mut Run<'e>>,
    after: SyncSender<&'r mut Run<'e>>,
}

struct Done<B> {
    batch: B,
    seen: Progress,
    failed: bool,
}

fn work<B: Batch>(
    queue: &Mutex<Receiver<Job<'_, '_, B>>>,
    opener: Option<&dyn Opener>,
    done: &Sender<Done<B>>,
) {
    while let Some(Job {
        batch,
        before,
        after,
    }) = next(queue)
    {
        let examined = Examination::of(batch.items(), opener);
        let Ok(run) = before.recv() else { break };
        run.take(&batch, examined);
        let (seen, failed) = (run.progress(), run.has_failed());
        // Nobody listens when the reading has ended. What comes later is told later.
        let _ = done.send(Done {
            batch,
            seen,
            failed,
        });
        let _ = after.send(run);
    }
}

fn next<T>(queue: &Mutex<Receiver<T>>) -> Option<T> {
    queue
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .recv()
        .ok()
}

/// To follow an event takes about a tenth of examining it, and only one worker at a time can.
const MOST_WORKERS: usize = 8;
/// Batches that wait for a worker, so that no worker waits for the reader.
const READ_AHEAD: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expectation, Selection};

    struct Unreadable;

    impl Batch for Unreadable {
        fn items(&self) -> impl Iterator<Item = Item<'_>> {
            std::iter::from_fn(|| panic!("a bug"))
        }

        fn is_last(&self) -> bool {
            false
        }

        fn end(&self, _: Progress) -> Option<Finding> {
            None
        }
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_of_a_worker_is_heard_and_not_waited_for() {
        let (selection, expectation) = (Selection::default(), Expectation::default());
        let mut run = Run::new(&selection, &expectation);
        let endless = |_| Ok::<_, ()>(Some(Unreadable));
        let _ = take_all(&mut run, None, &mut |_| (), endless);
    }
}
