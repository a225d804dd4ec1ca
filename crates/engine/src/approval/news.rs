//! Whether anything has happened to approvals since somebody looked.
//!
//! Every change of an approval adds a line to the audit, whichever process makes it. Who waits for one
//! of many does not read it again before that.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use countersign_approval::audit::Head;

use crate::hot::lock;
use crate::refusal::Fault;
use crate::{Engine, Refusal};

/// Where the audit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct News(Head);

/// What was read last, and when.
#[derive(Default)]
pub(crate) struct Board(Mutex<Option<(Instant, News)>>);

impl Engine {
    /// What has happened so far. What was read before it may have changed, what is read after it has not
    /// since then.
    pub fn news(&self) -> Result<News, Refusal> {
        let head = self.store().reader().audit_head().map_err(Fault::from)?;
        let news = News(head);
        *lock(&self.board.0) = Some((Instant::now(), news));
        Ok(news)
    }

    /// The same without the disk, if somebody has read it a moment ago.
    pub fn latest_news(&self) -> Option<News> {
        let latest = *lock(&self.board.0);
        latest
            .filter(|(read, _)| read.elapsed() < MOMENT)
            .map(|(_, news)| news)
    }
}

/// People do not notice.
const MOMENT: Duration = Duration::from_millis(100);
