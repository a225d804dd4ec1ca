//! Policies that decided something are kept, so that the decision can be taken again.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign_policy::Policies;

use crate::Engine;
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
    fs::rename(&new, path)
}
