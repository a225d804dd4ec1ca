//! How far the write-ahead log has run ahead of the database.
//!
//! SQLite, left alone, moves the log into the database within the commit that made the log too long, and
//! whoever waits for that commit waits for both. Where several processes write, one of them always comes in
//! between: the log is never begun anew, and from then on every commit moves a little. Here those who wait
//! are answered first; then the log is moved beside others who write, and what they added meanwhile without them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::{Error, schema};

/// The log of one connection that writes, as it was after its last commit.
pub(crate) struct Backlog(Arc<Length>);

struct Length {
    /// In pages, with those of other processes.
    pages: AtomicU32,
    /// From here on it is moved.
    due: AtomicU32,
}

impl Backlog {
    pub(crate) fn watch(db: &mut Connection) -> Result<Self, Error> {
        db.pragma_update(None, "wal_autocheckpoint", 0)?;
        let length = Arc::new(Length {
            pages: AtomicU32::new(0),
            due: AtomicU32::new(ENOUGH),
        });
        let noted = Arc::clone(&length);
        db.wal_hook(Some(move |_: &mut _, pages: i32| {
            noted.after_commit(pages.unsigned_abs());
            Ok(())
        }))?;
        Ok(Self(length))
    }

    pub(crate) fn is_due(&self) -> bool {
        self.0.pages.load(Ordering::Relaxed) >= self.0.due.load(Ordering::Relaxed)
    }

    /// Moves the log into the database, so that the next commit begins it anew. What cannot be moved yet,
    /// because somebody reads an old state or the disk is full, is as safe where it is.
    pub(crate) fn clear(&self, db: &mut Connection) {
        // Nothing is due again before the next commit.
        let pages = self.0.pages.swap(0, Ordering::Relaxed);
        let mut moved = checkpoint(Mode::Passive, Duration::ZERO, db);
        if moved.leaves_little() {
            moved = checkpoint(Mode::Restart, patience(pages), db);
        }
        let due = match moved {
            Moved::Whole => ENOUGH,
            Moved::ByAnother => pages.saturating_add(ENOUGH / 4),
            Moved::AllBut(_) | Moved::Nothing => pages.saturating_add(ENOUGH),
        };
        self.0.due.store(due, Ordering::Relaxed);
    }
}

impl Length {
    fn after_commit(&self, pages: u32) {
        self.pages.store(pages, Ordering::Relaxed);
        if pages < ENOUGH {
            self.due.store(ENOUGH, Ordering::Relaxed);
        }
    }
}

/// Moves the log into the database and empties it, so that nothing which was overwritten lives on there.
/// `false` while a reader holds an old state.
pub(crate) fn empty(db: &mut Connection, wait: Duration) -> bool {
    let since = Instant::now();
    loop {
        let left = wait.saturating_sub(since.elapsed());
        match checkpoint(Mode::Truncate, left, db) {
            Moved::ByAnother if !left.is_zero() => std::thread::sleep(PAUSE),
            moved => return moved == Moved::Whole,
        }
    }
}

#[derive(Clone, Copy)]
enum Mode {
    /// As far as nobody is in the way, and beside those who write.
    Passive,
    /// Without anybody who writes; the next commit begins the log anew.
    Restart,
    /// The same, and the file is empty.
    Truncate,
}

#[derive(Debug, PartialEq, Eq)]
enum Moved {
    Whole,
    /// But for some pages, which others wrote meanwhile, or somebody still reads what was before them.
    AllBut(i64),
    /// Another connection is moving it, and nobody waits for that one.
    ByAnother,
    /// The disk is full, or fails. The log is as it was.
    Nothing,
}

impl Moved {
    fn leaves_little(&self) -> bool {
        match self {
            Self::Whole => true,
            Self::AllBut(pages) => *pages <= i64::from(ENOUGH / 2),
            Self::ByAnother | Self::Nothing => false,
        }
    }
}

fn checkpoint(mode: Mode, wait: Duration, db: &mut Connection) -> Moved {
    let sql = match mode {
        Mode::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
        Mode::Restart => "PRAGMA wal_checkpoint(RESTART)",
        Mode::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    let answer: rusqlite::Result<(bool, i64, i64)> = schema::wait_for_others(db, wait)
        .and_then(|()| db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))));
    let restored = schema::wait_for_others(db, schema::BUSY_TIMEOUT);
    let Ok((is_busy, pages, moved)) = restored.and(answer) else {
        return Moved::Nothing;
    };
    match (is_busy, pages, moved) {
        (false, pages, moved) if pages == moved => Moved::Whole,
        (true, -1, _) => Moved::ByAnother,
        (_, pages, moved) => Moved::AllBut(pages - moved),
    }
}

/// How long first others may take to end their commits, and then, while nobody can write, those who read an old
/// state to end that. The longer the log has become, the more it is worth.
fn patience(pages: u32) -> Duration {
    (PATIENCE * (pages / ENOUGH).max(1)).min(MOST_PATIENCE)
}

/// In pages. A small log is soon moved.
const ENOUGH: u32 = 1000;
const PATIENCE: Duration = Duration::from_millis(5);
const MOST_PATIENCE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop at once")]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;
    use std::time::Duration;

    use rusqlite::Connection;

    use super::{
        Backlog, ENOUGH, MOST_PATIENCE, Mode, Moved, PATIENCE, checkpoint, empty, patience,
    };
    use crate::{Durability, Folder, schema};

    struct Scene {
        _parent: tempfile::TempDir,
        folder: Folder,
        db: Connection,
        backlog: Backlog,
    }

    impl Scene {
        fn new() -> Self {
            let parent = tempfile::tempdir().unwrap();
            let folder = Folder::new(parent.path().join("data"));
            let mut db = schema::open_writer(&folder, Durability::Relaxed).unwrap();
            let backlog = Backlog::watch(&mut db).unwrap();
            db.execute_batch("CREATE TABLE much (it)").unwrap();
            Self {
                _parent: parent,
                folder,
                db,
                backlog,
            }
        }

        fn other(&self) -> Connection {
            Connection::open(self.folder.database()).unwrap()
        }

        /// Somebody who reads the state of now.
        fn reader(&self) -> Connection {
            let reader = self.other();
            reader
                .execute_batch("BEGIN; SELECT count(*) FROM much")
                .unwrap();
            reader
        }

        fn commit(&self, pages: u32) {
            let sql = "INSERT INTO much VALUES (zeroblob(?1))";
            self.db.execute(sql, [pages * 4096]).unwrap();
        }

        fn commit_until_due(&self) -> u32 {
            let commits = (1..100).find(|_| {
                self.commit(100);
                self.backlog.is_due()
            });
            commits.unwrap()
        }

        fn clear(&mut self) {
            self.backlog.clear(&mut self.db);
            assert!(!self.backlog.is_due());
            self.commit(1);
            assert!(!self.backlog.is_due());
        }

        fn due(&self) -> u32 {
            self.backlog.0.due.load(Ordering::Relaxed)
        }

        fn log_length(&self) -> u64 {
            let log = std::fs::metadata(self.folder.write_ahead_log());
            log.unwrap().len()
        }
    }

    #[test]
    fn the_log_is_begun_anew_each_time() {
        let mut scene = Scene::new();
        scene.commit_until_due();
        scene.clear();
        let length = scene.log_length();
        for _ in 0..5 {
            assert!(scene.commit_until_due() <= ENOUGH / 100);
            scene.clear();
        }
        assert!(scene.log_length() <= length + 110 * 4120);
    }

    #[test]
    fn what_somebody_reads_stays_and_is_moved_later() {
        let mut scene = Scene::new();
        scene.commit(1);
        let reader = scene.reader();
        for times in 2..4 {
            scene.commit_until_due();
            scene.clear();
            assert_eq!(scene.due() / ENOUGH, times);
        }
        reader.execute_batch("COMMIT").unwrap();
        scene.commit_until_due();
        scene.clear();
        assert_eq!(scene.due(), ENOUGH);
        assert!(scene.commit_until_due() <= ENOUGH / 100);
    }

    #[test]
    fn who_finds_the_log_begun_anew_by_another_one_waits_no_longer_than_usual() {
        let mut scene = Scene::new();
        let mut other = scene.reader();
        scene.commit_until_due();
        scene.clear();
        assert!(scene.due() > ENOUGH);
        other.execute_batch("COMMIT").unwrap();
        let moved = checkpoint(Mode::Restart, Duration::ZERO, &mut other);
        assert_eq!(moved, Moved::Whole);
        scene.commit(1);
        assert_eq!(scene.due(), ENOUGH);
    }

    #[test]
    fn who_empties_the_log_waits_for_another_one_who_moves_it() {
        let mut scene = Scene::new();
        scene.commit(1);
        let reader = scene.reader();
        scene.commit(1);
        let mut other = scene.other();
        thread::scope(|threads| {
            let restarts = || checkpoint(Mode::Restart, Duration::from_secs(600), &mut other);
            let restarts = threads.spawn(restarts);
            thread::sleep(Duration::from_millis(50));
            let empties = || empty(&mut scene.db, Duration::from_secs(600));
            let empties = threads.spawn(empties);
            thread::sleep(Duration::from_millis(50));
            assert!(!empties.is_finished());
            reader.execute_batch("COMMIT").unwrap();
            assert_eq!(restarts.join().unwrap(), Moved::Whole);
            assert!(empties.join().unwrap());
        });
        assert_eq!(scene.log_length(), 0);
    }

    #[test]
    fn a_long_log_is_worth_more_patience() {
        assert_eq!(patience(0), PATIENCE);
        assert_eq!(patience(2 * ENOUGH - 1), PATIENCE);
        assert_eq!(patience(3 * ENOUGH), PATIENCE * 3);
        assert_eq!(patience(u32::MAX), MOST_PATIENCE);
    }
}
