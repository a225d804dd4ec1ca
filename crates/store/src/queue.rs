//! Where commands wait for whoever writes: a thread of its own, or a caller who would only wait for it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Error;
use crate::writer::{Command, Haste, Job, Writer};

pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// Wakes the writer's thread.
    arrived: Condvar,
    /// Wakes those who wait for room.
    taken: Condvar,
    /// Gone when the thread has ended. INVARIANT: commands are taken from the queue by whoever has
    /// this locked, so they are done in the order in which they came.
    writer: Mutex<Option<Writer>>,
}

#[derive(Default)]
struct Waiting {
    commands: VecDeque<Command>,
    /// When the first of them has waited long enough.
    due: Option<Instant>,
    /// How often the first of them gave way to other processes.
    put_off: u32,
    /// Nothing more comes.
    is_closed: bool,
    thread: Thread,
}

/// What the writer's thread does.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Thread {
    /// It looks at the queue before it sleeps.
    #[default]
    Awake,
    /// It sleeps until it is woken.
    Asleep,
    /// It sleeps until what is there is due; what comes now and is waited for by nobody has time until then.
    Lingers,
}

impl Queue {
    pub(crate) fn new(writer: Writer) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            arrived: Condvar::new(),
            taken: Condvar::new(),
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Adds a command; blocks while there are too many.
    pub(crate) fn put(&self, command: Command) -> Result<(), Error> {
        let waiting = self.taken.wait_while(self.waiting(), |it| it.is_full());
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        if waiting.is_closed {
            return Err(Error::Stopped);
        }
        let wakes = waiting.add(command);
        drop(waiting);
        if wakes {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Writes what is there on this thread, unless somebody is at it, here, or for long in another process: then
    /// the writer's thread does, and waits. What comes meanwhile is left to those who bring it.
    pub(crate) fn write_here(&self) {
        let is_written = match self.writer.try_lock() {
            Ok(mut writer) => writer.as_mut().is_some_and(|it| self.write_with(it)),
            Err(_) => false,
        };
        if !is_written {
            self.hurry();
        }
    }

    /// Whether everything is written that was there.
    fn write_with(&self, writer: &mut Writer) -> bool {
        let Some((batch, is_all)) = self.take(|waiting| {
            let batch = waiting.events()?;
            Some((batch, waiting.commands.is_empty()))
        }) else {
            return false;
        };
        let _closes = ClosesOnPanic(self);
        match writer.commit_within(AT_ONCE, batch) {
            None if writer.has_backlog() => {
                self.waiting().commands.push_back(Command::CatchUp);
                false
            }
            None => is_all,
            Some(batch) => {
                let first = Command::Append(batch, Haste::Now);
                self.waiting().commands.push_front(first);
                false
            }
        }
    }

    /// What is there does not wait any longer for others to come.
    fn hurry(&self) {
        let mut waiting = self.waiting();
        if waiting.commands.is_empty() {
            return;
        }
        waiting.due = Some(Instant::now());
        let wakes = waiting.thread != Thread::Awake;
        drop(waiting);
        if wakes {
            self.arrived.notify_one();
        }
    }

    /// The work of the writer's thread, until the queue is closed and empty.
    pub(crate) fn run(&self) {
        let _closes = ClosesOnPanic(self);
        while self.tidy() && self.wait_until_due() {
            if let Ok(mut writer) = self.writer.lock()
                && let Some(writer) = writer.as_mut()
            {
                self.do_next(writer);
            }
        }
        // Whoever broke off has left nothing to close.
        if let Ok(mut writer) = self.writer.lock()
            && let Some(writer) = writer.take()
        {
            writer.close();
        }
    }

    fn do_next(&self, writer: &mut Writer) {
        match self.take(Waiting::next) {
            Some((Command::Append(batch, Haste::Soon), put_off)) if put_off < MOST_PUT_OFF => {
                self.write_or_put_off(batch, put_off, writer);
            }
            Some((command, _)) => writer.run(command),
            None => (),
        }
        writer.catch_up();
    }

    /// Events that nobody waits for give way while another process writes, because somebody may wait for
    /// what that one does.
    fn write_or_put_off(&self, batch: Vec<Job>, put_off: u32, writer: &mut Writer) {
        let Some(batch) = writer.commit_within(Duration::ZERO, batch) else {
            return;
        };
        let mut waiting = self.waiting();
        let due = Instant::now() + PUT_OFF;
        waiting.due = Some(waiting.due.map_or(due, |earlier| earlier.min(due)));
        waiting.put_off = put_off + 1;
        let first = Command::Append(batch, Haste::Soon);
        waiting.commands.push_front(first);
    }

    /// Takes something that waits, for whoever has the writer.
    fn take<T>(&self, by: impl FnOnce(&mut Waiting) -> Option<T>) -> Option<T> {
        let mut waiting = self.waiting();
        let was_full = waiting.is_full();
        let taken = by(&mut waiting);
        waiting.put_off = 0;
        // What is left has waited since before now.
        waiting.due = (!waiting.commands.is_empty()).then(Instant::now);
        drop(waiting);
        if was_full {
            self.taken.notify_all();
        }
        taken
    }

    /// Nothing more comes; what is there is done.
    pub(crate) fn close(&self) {
        self.waiting().is_closed = true;
        self.arrived.notify_all();
        self.taken.notify_all();
    }

    /// Cleans up, if there is time for it. Not where somebody broke off.
    fn tidy(&self) -> bool {
        let Ok(mut writer) = self.writer.lock() else {
            return false;
        };
        if let Some(writer) = writer.as_mut()
            && self.waiting().commands.is_empty()
        {
            writer.tidy();
        }
        true
    }

    /// Sleeps until something has to be done; not where nothing more will come.
    fn wait_until_due(&self) -> bool {
        let mut waiting = self.waiting();
        // The outcome of what was written may come soon after it, and finds us about to look.
        let mut nap = Some(LINGER);
        loop {
            let now = Instant::now();
            let left = waiting.due.map(|due| due.saturating_duration_since(now));
            match left {
                None if waiting.is_closed => return false,
                Some(left) if left.is_zero() || waiting.is_closed => return true,
                _ => waiting = self.sleep(waiting, left.or_else(|| nap.take())),
            }
        }
    }

    /// Until somebody wakes us, or for as long.
    fn sleep<'w>(
        &self,
        mut waiting: MutexGuard<'w, Waiting>,
        longest: Option<Duration>,
    ) -> MutexGuard<'w, Waiting> {
        let mut woken = match longest {
            None => {
                waiting.thread = Thread::Asleep;
                let woken = self.arrived.wait(waiting);
                woken.unwrap_or_else(PoisonError::into_inner)
            }
            Some(longest) => {
                waiting.thread = Thread::Lingers;
                let woken = self.arrived.wait_timeout(waiting, longest);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        woken.thread = Thread::Awake;
        woken
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn is_full(&self) -> bool {
        self.commands.len() >= QUEUE_LENGTH && !self.is_closed
    }

    /// Whether the thread has to be woken for it.
    fn add(&mut self, command: Command) -> bool {
        let now = Instant::now();
        let (due, wakes) = match &command {
            // The caller is about to write.
            Command::Append(_, Haste::Here) => (now + LINGER, false),
            Command::Append(_, Haste::Soon) => (now + LINGER, self.thread == Thread::Asleep),
            _ => (now, self.thread != Thread::Awake),
        };
        self.commands.push_back(command);
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        wakes
    }

    /// What is done next in one go, and how often it was put off.
    fn next(&mut self) -> Option<(Command, u32)> {
        let command = match self.commands.front()? {
            Command::Append(..) => {
                let (batch, haste) = self.batch();
                Command::Append(batch, haste)
            }
            _ => self.commands.pop_front()?,
        };
        Some((command, self.put_off))
    }

    /// Everything that waits, if it is nothing but events.
    fn events(&mut self) -> Option<Vec<Job>> {
        let is_append = |command: &Command| matches!(command, Command::Append(..));
        let takes = !self.commands.is_empty() && self.commands.iter().all(is_append);
        takes.then(|| self.batch().0)
    }

    /// Events, up to a limit or to something else, and whether somebody waits for any of them.
    fn batch(&mut self) -> (Vec<Job>, Haste) {
        let (mut batch, mut bytes, mut haste) = (Vec::new(), 0, Haste::Soon);
        while let Some(Command::Append(..)) = self.commands.front()
            && batch.len() < MAX_BATCH_EVENTS
            && bytes < MAX_BATCH_BYTES
            && let Some(Command::Append(jobs, its_haste)) = self.commands.pop_front()
        {
            bytes += jobs.iter().map(Job::len).sum::<usize>();
            batch.extend(jobs);
            if its_haste != Haste::Soon {
                haste = Haste::Now;
            }
        }
        (batch, haste)
    }
}

/// FAIL-CLOSED: where writing broke off, nothing is written any more, and nobody waits for it.
struct ClosesOnPanic<'q>(&'q Queue);

impl Drop for ClosesOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let left = std::mem::take(&mut *self.0.waiting());
            self.0.close();
            drop(left);
        }
    }
}

const QUEUE_LENGTH: usize = 4096;
/// How long events that nobody waits for may wait for others.
const LINGER: Duration = Duration::from_millis(2);
/// They give way to another process for as long, and as often.
const PUT_OFF: Duration = Duration::from_millis(8);
const MOST_PUT_OFF: u32 = 4;
/// How long a caller who writes waits for another process: as long as a few commits take, and no longer than
/// one on a slow disk.
const AT_ONCE: Duration = Duration::from_millis(1);
const MAX_BATCH_EVENTS: usize = 1024;
const MAX_BATCH_BYTES: usize = 8 << 20;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop at once")]
mod tests {
    use std::sync::{Arc, OnceLock, Weak};
    use std::time::Instant;

    use rusqlite::Connection;

    use super::{LINGER, MOST_PUT_OFF, PUT_OFF, Queue, Thread, Waiting};
    use crate::audit::AuditFile;
    use crate::writer::{Command, Haste, Writer};
    use crate::{Durability, Folder, Observer, Step, schema};

    /// A queue without the thread that would write what is due.
    fn queue(observer: Option<Observer>) -> (tempfile::TempDir, Arc<Queue>) {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::new(parent.path().join("data"));
        let db = schema::open_writer(&folder, Durability::Full).unwrap();
        let writer = Writer::new(db, AuditFile::new(&folder), None, observer).unwrap();
        (parent, Queue::new(writer))
    }

    fn nothing(haste: Haste) -> Command {
        Command::Append(Vec::new(), haste)
    }

    #[test]
    fn what_comes_while_somebody_writes_is_not_due_before_its_time() {
        let place = Arc::new(OnceLock::<Weak<Queue>>::new());
        let known = Arc::clone(&place);
        let comes: Observer = Arc::new(move |step| {
            if step == Step::Written {
                let queue = known.get().and_then(Weak::upgrade).unwrap();
                queue.put(nothing(Haste::Soon)).unwrap();
            }
        });
        let (_parent, queue) = queue(Some(comes));
        place.set(Arc::downgrade(&queue)).unwrap();
        let before = Instant::now();
        queue.put(nothing(Haste::Here)).unwrap();
        queue.write_here();
        let waiting = queue.waiting();
        assert_eq!(waiting.commands.len(), 1);
        assert!(waiting.due.unwrap() >= before + LINGER);
    }

    #[test]
    fn only_who_sleeps_without_an_end_is_woken_for_what_nobody_waits_for() {
        for (thread, haste, wakes) in [
            (Thread::Asleep, Haste::Soon, true),
            (Thread::Lingers, Haste::Soon, false),
            (Thread::Awake, Haste::Soon, false),
            (Thread::Asleep, Haste::Now, true),
            (Thread::Lingers, Haste::Now, true),
            (Thread::Awake, Haste::Now, false),
        ] {
            let mut waiting = Waiting {
                thread,
                ..Waiting::default()
            };
            assert_eq!(waiting.add(nothing(haste)), wakes);
        }
    }

    #[test]
    fn what_nobody_waits_for_gives_way_some_times_and_then_waits_too() {
        let (parent, queue) = queue(None);
        let folder = Folder::new(parent.path().join("data"));
        let other = Connection::open(folder.database()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        queue.put(nothing(Haste::Soon)).unwrap();
        let mut writer = queue.writer.lock().unwrap();
        let writer = writer.as_mut().unwrap();
        for _ in 0..MOST_PUT_OFF {
            let before = Instant::now();
            queue.do_next(writer);
            assert!(queue.waiting().due.unwrap() >= before + PUT_OFF);
        }
        std::thread::scope(|threads| {
            threads.spawn(move || {
                std::thread::sleep(PUT_OFF);
                other.execute_batch("ROLLBACK").unwrap();
            });
            queue.do_next(writer);
        });
        assert!(queue.waiting().commands.is_empty());
        assert_eq!(queue.waiting().put_off, 0);
    }

    #[test]
    fn what_somebody_waits_for_is_due_at_once_where_another_writes() {
        let (_parent, queue) = queue(None);
        queue.put(nothing(Haste::Here)).unwrap();
        let writer = queue.writer.lock().unwrap();
        queue.write_here();
        drop(writer);
        assert!(queue.waiting().due.unwrap() <= Instant::now());
        queue.write_here();
        assert!(queue.waiting().due.is_none());
    }
}
