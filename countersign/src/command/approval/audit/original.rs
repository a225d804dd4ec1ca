//! The entries in the database, which the file is a copy of.

use std::collections::VecDeque;

use countersign_approval::audit::Head;
use countersign_store::{Folder, Reader};

use crate::errors::Failure;

/// How the file and the database compare.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Database {
    /// There is none.
    Absent,
    /// It has the same entries.
    Same,
    /// It goes on where the file ends.
    Ahead(u64),
    /// From this entry on it has others, or none.
    Differs(u64),
}

pub(super) struct Original {
    reader: Reader,
    /// Where they ended before the file was read.
    end: Head,
}

impl Original {
    pub(super) fn open(folder: &Folder) -> Result<Option<Self>, Failure> {
        if !folder.database().exists() && folder.audit().exists() {
            return Ok(None);
        }
        let reader = Reader::open(folder)?;
        let end = reader.audit_head()?;
        Ok(Some(Self { reader, end }))
    }

    pub(super) fn compare(&self) -> Comparison<'_> {
        Comparison {
            original: self,
            next: VecDeque::new(),
            compared: 0,
            differs: None,
        }
    }
}

/// Goes through file and database side by side.
pub(super) struct Comparison<'a> {
    original: &'a Original,
    /// Entries of the database that the file has not come to.
    next: VecDeque<(u64, Vec<u8>)>,
    compared: u64,
    differs: Option<u64>,
}

impl Comparison<'_> {
    /// The next line of the file.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), Failure> {
        if self.differs.is_some() {
            return Ok(());
        }
        if self.next.is_empty() {
            let next = self.original.reader.audit_after(self.compared, BATCH)?;
            self.next = next.into();
        }
        self.compared = self.compared.saturating_add(1);
        let stored = self.next.pop_front();
        let is_same = stored.is_some_and(|(number, text)| number == self.compared && text == line);
        if !is_same {
            self.differs = Some(self.compared);
        }
        Ok(())
    }

    /// The file has ended.
    pub(super) fn finish(self) -> Database {
        let end = self.original.end.count;
        match self.differs {
            Some(entry) => Database::Differs(entry),
            None if self.compared < end => Database::Ahead(end),
            None => Database::Same,
        }
    }
}

const BATCH: u64 = 256;
