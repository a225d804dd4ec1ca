//! The policies that took recorded decisions, by their digest.

use std::collections::HashMap;
use std::sync::Arc;

use countersign_canon::{Digest, Json, Limits};
use countersign_policy::{ArchiveError, Policies};
use countersign_store::Folder;

use crate::Error;

/// Reads each set of policies once.
pub(crate) struct Shelf<'f> {
    folder: &'f Folder,
    read: HashMap<Digest, Arc<Policies>>,
}

impl<'f> Shelf<'f> {
    pub(crate) fn new(folder: &'f Folder) -> Self {
        Self {
            folder,
            read: HashMap::new(),
        }
    }

    /// The policies that took the decision `seq`.
    pub(crate) fn policies(&mut self, digest: Digest, seq: u64) -> Result<Arc<Policies>, Error> {
        if let Some(policies) = self.read.get(&digest) {
            return Ok(Arc::clone(policies));
        }
        let text = std::fs::read(self.folder.policies(digest));
        let text = text.map_err(|error| Error::NotKept { seq, digest, error })?;
        let unusable = |error| Error::Unusable { seq, digest, error };
        let archive = Json::admit(&text, &limits())
            .map_err(|_| unusable(ArchiveError::Form("the document")))?;
        let policies =
            Policies::from_archive(&archive, digest, &countersign_acs::revive).map_err(unusable)?;
        let policies = Arc::new(policies);
        self.read.insert(digest, Arc::clone(&policies));
        Ok(policies)
    }
}

/// As large as the files of policies may be together.
fn limits() -> Limits {
    Limits {
        max_bytes: 64 << 20,
        ..Limits::event()
    }
}
