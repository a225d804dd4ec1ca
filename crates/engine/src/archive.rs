//! Policies that decided something are kept, so that the decision can be taken again.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign_canon::{Digest, Json, Limits};
use countersign_policy::Policies;

use crate::Engine;
use crate::folder::sync_parent;
use crate::hot::lock;
use crate::refusal::Fault;

impl Engine {
    /// Keeps the policies in the data folder, under their digest.
    ///
    /// FAIL-CLOSED: nothing is decided by policies that nobody could look at later.
    pub(crate) fn keep(&self, policies: &Policies) -> Result<(), Fault> {
        let digest = policies.digest();
        let mut kept = lock(&self.kept);
        if *kept != Some(digest) {
            write(&self.store().folder().policies(digest), policies).map_err(Fault::Archive)?;
            *kept = Some(digest);
        }
        Ok(())
    }
}

impl Engine {
    /// The policies with this digest: those in force, or what was kept of them.
    pub(crate) fn policies_with(&self, digest: Digest) -> Result<Arc<Policies>, Fault> {
        let current = self.policies();
        if current.digest() == digest {
            return Ok(current);
        }
        let gone = |why: String| Fault::History(format!("the policies {digest} are gone: {why}"));
        let path = self.store().folder().policies(digest);
        let text = fs::read(path).map_err(|error| gone(error.to_string()))?;
        let archive = Json::admit(&text, &LIMITS).map_err(|error| gone(error.to_string()))?;
        // FAIL-CLOSED: who else had a say is known to the doors alone.
        let absent = |name: &str, _: &Json| Err(format!("`{name}` cannot be asked here"));
        let policies = Policies::from_archive(&archive, digest, &absent);
        Ok(Arc::new(policies.map_err(|error| gone(error.to_string()))?))
    }
}

fn write(path: &Path, policies: &Policies) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let Some(parent) = path.parent() else {
        return Err(io::Error::other(
            "the data folder has no place for policies",
        ));
    };
    fs::create_dir_all(parent)?;
    // Several engines may keep the same policies at once; each writes a file of its own.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let new = path.with_extension(format!("{}-{count}.new", std::process::id()));
    let mut file = fs::File::create(&new)?;
    file.write_all(&policies.to_archive().to_sorted_ascii())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_parent(path)
}

/// As large as the files of policies may be together.
const LIMITS: Limits = Limits {
    max_bytes: 64 << 20,
    ..Limits::event()
};
