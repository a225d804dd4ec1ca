//! Batches of events, examined side by side on all cores and followed one after the other.
//!
//! A worker reads a batch, so that it finds the bytes in its own cache, and does all that is costly.
//! The state of the verification is the baton of a relay: the worker takes it from whoever has the
//! batch before, follows its own events and hands it on to whoever has the next.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};

use crate::examine::{Examination, Item, Opener};
use crate::report::{Finding, Progress};
use crate::stream::Run;
use crate::tree::Later;

/// Some events that were read together.
pub(crate) trait Batch: Send {
    /// The events, in order.
    fn items(&self) -> impl Iterator<Item = Item<'_>>;

    /// Whether reading has to end behind the events.
    fn is_last(&self) -> bool;

    /// What was found there.
    fn end(&self, seen: Progress) -> Option<Finding>;
}

/// Is told how far a verification has come, from any thread.
pub(crate) type OnProgress<'p> = dyn FnMut(Progress) + Send + 'p;

/// Reads batches until there are no more or something is bad, and takes them into the run.
///
/// `read` is given a batch that is no longer needed, for its memory.
pub(crate) fn take_all<B: Batch, E: Send>(
    run: &mut Run<'_>,
    opener: Option<&dyn Opener>,
    progress: &mut OnProgress<'_>,
    read: impl FnMut(Option<B>) -> Result<Option<B>, E> + Send,
) -> Result<(), E> {
    let taken = relay(opener, read, |batch: &B, examined: Examination<'_>| {
        let later = run.take(batch, examined);
        progress(run.progress());
        (run.has_failed(), later)
    });
    progress(run.progress());
    taken
}

/// `take` is the baton: it takes one batch after the other, until it says that one is bad, and may leave
/// something to be done without it.
fn relay<B: Batch, E: Send>(
    opener: Option<&dyn Opener>,
    read: impl FnMut(Option<B>) -> Result<Option<B>, E> + Send,
    take: impl FnMut(&B, Examination<'_>) -> (bool, Option<Later>) + Send,
) -> Result<(), E> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (first, baton) = sync_channel(1);
    let _ = first.send(take);
    let source = Mutex::new(Source {
        read,
        baton,
        ended: None,
    });
    thread::scope(|scope| work(scope, cores.min(MOST_WORKERS), opener, &source));
    let source = source.into_inner();
    let ended = source.unwrap_or_else(PoisonError::into_inner).ended;
    // INVARIANT: workers leave when the reading has ended, or by a panic that the scope passes on.
    ended.unwrap_or(Ok(()))
}

/// What [`take_all`] does, with batches that only this thread can read.
#[cfg(feature = "database")]
pub(crate) fn take_all_read_here<B: Batch, E>(
    run: &mut Run<'_>,
    opener: Option<&dyn Opener>,
    progress: &mut OnProgress<'_>,
    mut read: impl FnMut(Option<B>) -> Result<Option<B>, E>,
) -> Result<(), E> {
    use std::convert::Infallible;

    let (batches, queue) = sync_channel(READ_AHEAD);
    let (used, spares) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let Ok(()) = take_all(run, opener, progress, move |spare| {
                // Nobody listens when the reading has ended.
                let _ = spare.map(|batch| used.send(batch));
                Ok::<_, Infallible>(queue.recv().ok())
            });
        });
        // Gone when the reading ends; that ends the workers. They are gone when something is bad.
        let batches = batches;
        while let Some(batch) = read(spares.try_recv().ok())? {
            let is_last = batch.is_last();
            if batches.send(batch).is_err() || is_last {
                break;
            }
        }
        Ok(())
    })
}

/// Where the workers get their batches.
struct Source<R, T, E> {
    read: R,
    /// Where the baton for the next batch will come from.
    baton: Receiver<T>,
    /// How the reading ended.
    ended: Option<Result<(), E>>,
}

/// A batch, and whom its baton comes from and goes to.
struct Job<B, T> {
    batch: B,
    before: Receiver<T>,
    after: SyncSender<T>,
}

impl<R, T, E> Source<R, T, E> {
    fn next<B: Batch>(&mut self, spare: Option<B>) -> Option<Job<B, T>>
    where
        R: FnMut(Option<B>) -> Result<Option<B>, E>,
    {
        if self.ended.is_some() {
            return None;
        }
        let batch = match (self.read)(spare) {
            Ok(Some(batch)) => batch,
            end => {
                self.ended = Some(end.map(drop));
                return None;
            }
        };
        if batch.is_last() {
            self.ended = Some(Ok(()));
        }
        let (after, baton) = sync_channel(1);
        let before = std::mem::replace(&mut self.baton, baton);
        Some(Job {
            batch,
            before,
            after,
        })
    }
}

/// Takes batches until there are no more; with the first one, asks the next worker to help.
fn work<'scope, B, R, T, E>(
    scope: &'scope Scope<'scope, '_>,
    mut workers: usize,
    opener: Option<&'scope dyn Opener>,
    source: &'scope Mutex<Source<R, T, E>>,
) where
    B: Batch,
    R: FnMut(Option<B>) -> Result<Option<B>, E> + Send,
    T: FnMut(&B, Examination<'_>) -> (bool, Option<Later>) + Send,
    E: Send,
{
    let mut spare = None;
    // Reading that panicked has nothing more to give; the scope panics, too.
    while let Some(job) = source.lock().ok().and_then(|mut it| it.next(spare.take())) {
        if workers > 1 {
            let others = workers - 1;
            workers = 0;
            scope.spawn(move || work(scope, others, opener, source));
        }
        let examined = Examination::of(job.batch.items(), opener);
        // A worker that panics loses the baton, which ends the others.
        let Ok(mut take) = job.before.recv() else {
            break;
        };
        let (is_bad, later) = take(&job.batch, examined);
        if is_bad && let Ok(mut source) = source.lock() {
            source.ended.get_or_insert(Ok(()));
        }
        // Nobody waits for it behind the last batch.
        let _ = job.after.send(take);
        if let Some(later) = later {
            later();
        }
        spare = Some(job.batch);
    }
}

/// To follow an event takes about a tenth of examining it, and only one worker at a time can.
const MOST_WORKERS: usize = 8;
/// Batches that wait for a worker, so that no worker waits for the reader.
#[cfg(feature = "database")]
const READ_AHEAD: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expectation, Selection};

    struct Unreadable;

    /// Panics from the second batch on, on whichever thread that is.
    struct Later(usize);

    impl Batch for Later {
        fn items(&self) -> impl Iterator<Item = Item<'_>> {
            let number = self.0;
            std::iter::from_fn(move || match number {
                0 => None,
                _ => panic!("a bug"),
            })
        }

        fn is_last(&self) -> bool {
            false
        }

        fn end(&self, _: Progress) -> Option<Finding> {
            None
        }
    }

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
    #[should_panic(expected = "a bug")]
    fn a_panic_of_a_worker_is_heard_and_not_waited_for() {
        let (selection, expectation) = (Selection::default(), Expectation::default());
        let mut run = Run::new(&selection, &expectation);
        let endless = |_| Ok::<_, ()>(Some(Unreadable));
        let _ = take_all(&mut run, None, &mut |_| (), endless);
    }

    #[test]
    #[should_panic]
    fn a_panic_of_any_worker_is_heard() {
        let (selection, expectation) = (Selection::default(), Expectation::default());
        let mut run = Run::new(&selection, &expectation);
        let mut read = 0;
        let endless = |_| {
            read += 1;
            Ok::<_, ()>(Some(Later(read - 1)))
        };
        let _ = take_all(&mut run, None, &mut |_| (), endless);
    }
}
