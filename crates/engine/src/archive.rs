//! Policies that decided something are kept, so that the decision can be taken again.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use countersign_canon::Digest;
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
            write(self.store().folder().path(), policies).map_err(Fault::Archive)?;
            *kept = Some(digest);
        }
        Ok(())
    }
}

fn write(folder: &Path, policies: &Policies) -> io::Result<()> {
    let path = policies_path(folder, policies.digest());
    if path.exists() {
        return Ok(());
    }
    let Some(parent) = path.parent() else {
        return Err(io::Error::other(
            "the data folder has no place for policies",
        ));
    };
    fs::create_dir_all(parent)?;
    // Several processes may keep the same policies at once; each writes its own file.
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = fs::File::create(&new)?;
    file.write_all(&policies.to_archive().to_sorted_ascii())?;
    file.sync_all()?;
    fs::rename(&new, &path)
}

/// Where the policies with this digest are kept in a data folder.
pub fn policies_path(folder: &Path, digest: Digest) -> PathBuf {
    let name = digest.to_string().replace(':', "-");
    folder.join("policies").join(name).with_extension("json")
}
