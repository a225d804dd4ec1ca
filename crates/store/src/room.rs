//! Room at the end of the write-ahead log.
//!
//! A commit that makes a file longer also waits for the journal of the file system; one that writes over old
//! content waits for its content alone. SQLite lengthens its log frame by frame, until that is as long as
//! between two checkpoints and is written over from then on. Here it is lengthened by more at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use rusqlite::Transaction;

use crate::{Durability, Folder};

/// Makes room in the write-ahead log.
pub(crate) struct Room {
    log: PathBuf,
    opened: Option<File>,
}

impl Room {
    /// Nothing where commits do not wait for the disk.
    pub(crate) fn new(folder: &Folder, durability: Durability) -> Option<Self> {
        (durability == Durability::Full).then(|| Self {
            log: folder.write_ahead_log(),
            opened: None,
        })
    }

    /// Makes room for the next commits, if there is none.
    ///
    /// INVARIANT: the transaction has the lock for writing, so the log has no other writer, in no process. Who
    /// reads a log stops at the first frame that does not hold, and zeros are no frame.
    pub(crate) fn make(&mut self, _locked: &Transaction<'_>) {
        // Without room a commit takes longer. Whether it fails is SQLite's to tell.
        let _ = self.lengthen();
    }

    fn lengthen(&mut self) -> io::Result<()> {
        let mut log = match &self.opened {
            Some(log) => log,
            None => {
                let log = OpenOptions::new().read(true).write(true).open(&self.log)?;
                self.opened.insert(log)
            }
        };
        let mut end = [0; END];
        // An empty log has no end to look at, and stays as it is.
        let length = log.seek(SeekFrom::End(-(END as i64)))?;
        log.read_exact(&mut end)?;
        match end == [0; END] {
            true => Ok(()),
            false => log.write_all(&vec![0; length.clamp(LEAST, MOST) as usize]),
        }
    }
}

/// What is looked at, to see whether a log was written over to its end: less than its header.
const END: usize = 16;
/// A short session needs no more.
const LEAST: u64 = 256 << 10;
const MOST: u64 = 1 << 20;
