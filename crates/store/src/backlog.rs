//! How far the write-ahead log has run ahead of the database.
//!
//! SQLite, left alone, moves the log into the database within the commit that made the log too long, and
//! whoever waits for that commit waits for both. Where several processes write, one of them always comes in
//! between: the log is never begun anew, and from then on every commit moves a little. Here those who wait
//! are answered first, and then other processes are kept out for as long as it takes to move all of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use crate::{Error, schema};

pub(crate) struct Backlog {
    /// Pages in the log after the last commit of this process.
    pages: Arc<AtomicU32>,
    /// With how many it is moved.
    due: u32,
}

impl Backlog {
    pub(crate) fn watch(db: &mut Connection) -> Result<Self, Error> {
        db.pragma_update(None, "wal_autocheckpoint", 0)?;
        let pages = Arc::new(AtomicU32::new(0));
        let noted = Arc::clone(&pages);
        db.wal_hook(Some(move |_: &mut _, pages: i32| {
            noted.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { pages, due: ENOUGH })
    }

    pub(crate) fn is_due(&mut self) -> bool {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < ENOUGH {
            self.due = ENOUGH;
        }
        pages >= self.due
    }

    /// Moves the log into the database, so that the next commit begins it anew. What cannot be moved yet,
    /// because somebody reads an old state or the disk is full, is as safe where it is.
    pub(crate) fn clear(&mut self, db: &mut Connection) {
        let pages = self.pages.swap(0, Ordering::Relaxed);
        let is_cleared = schema::rewind_wal(db, PATIENCE);
        self.due = match is_cleared {
            true => ENOUGH,
            false => pages.saturating_mul(2),
        };
    }
}

/// A small log keeps this short.
const ENOUGH: u32 = 1000;
/// For whoever is writing, and then for whoever reads an old state: nobody writes meanwhile.
const PATIENCE: Duration = Duration::from_millis(5);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop at once")]
mod tests {
    use rusqlite::Connection;

    use super::{Backlog, ENOUGH};
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

        fn commit(&self, pages: u32) {
            let sql = "INSERT INTO much VALUES (zeroblob(?1))";
            self.db.execute(sql, [pages * 4096]).unwrap();
        }

        fn commit_until_due(&mut self) -> u32 {
            let commits = (1..1000).find(|_| {
                self.commit(100);
                self.backlog.is_due()
            });
            commits.unwrap()
        }

        fn clear(&mut self) {
            self.backlog.clear(&mut self.db);
            self.commit(1);
            assert!(!self.backlog.is_due());
        }

        fn log_length(&self) -> u64 {
            std::fs::metadata(self.folder.write_ahead_log())
                .unwrap()
                .len()
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
        assert!(scene.log_length() <= length + 101 * 4120);
    }

    #[test]
    fn what_somebody_reads_stays_and_is_moved_later() {
        let mut scene = Scene::new();
        let reader = Connection::open(scene.folder.database()).unwrap();
        scene.commit(1);
        reader
            .execute_batch("BEGIN; SELECT count(*) FROM much")
            .unwrap();
        scene.commit_until_due();
        scene.clear();
        assert_eq!(scene.backlog.due / ENOUGH, 2);
        scene.commit_until_due();
        scene.clear();
        assert_eq!(scene.backlog.due / ENOUGH, 4);
        reader.execute_batch("COMMIT").unwrap();
        scene.commit_until_due();
        scene.clear();
        assert_eq!(scene.backlog.due, ENOUGH);
        assert!(scene.commit_until_due() <= ENOUGH / 100);
    }

    #[test]
    fn who_finds_the_log_begun_anew_by_another_one_waits_no_longer_than_usual() {
        let mut scene = Scene::new();
        let reader = Connection::open(scene.folder.database()).unwrap();
        reader
            .execute_batch("BEGIN; SELECT count(*) FROM much")
            .unwrap();
        scene.commit_until_due();
        scene.clear();
        reader.execute_batch("COMMIT").unwrap();
        assert!(schema::rewind_wal(&mut scene.db, super::PATIENCE));
        scene.commit(1);
        assert!(!scene.backlog.is_due());
        assert_eq!(scene.backlog.due, ENOUGH);
    }
}
