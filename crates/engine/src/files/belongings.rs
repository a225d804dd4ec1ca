//! The files that a manifest names the digests of.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use countersign_canon::{Digest, read_bounded};
use countersign_policy::manifest::Manifest;
use countersign_policy::manifest::integrity::{self, Compared};

use crate::folder::{Extent, Unreadable, walk};

/// Which of the files below a folder are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All of them.
    Whole,
    /// Those that the manifest speaks of, which is all of them if it names a digest over all.
    Named,
}

/// Files as they stand below a manifest's folder, without the manifest itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Belongings {
    /// Plain files and their digests, by path from the folder.
    pub files: Vec<(String, Digest)>,
    /// What is neither a plain file nor a folder. Links are never followed.
    pub others: Vec<String>,
}

impl Belongings {
    /// Reads what stands below the folder now.
    pub fn read(
        manifest: &Manifest,
        file: &Path,
        folder: &Path,
        reach: Reach,
    ) -> Result<Self, Unreadable> {
        let names_tree = manifest.integrity().tree_sha256.is_some();
        let (names, others) = match reach == Reach::Whole || names_tree {
            true => {
                let walked = walk(folder, Extent::Whole)?;
                (walked.files, walked.others)
            }
            false => (named(manifest, folder), Vec::new()),
        };
        let own = fs::canonicalize(file).ok();
        let mut files = Vec::new();
        for name in names {
            let path = folder.join(&name);
            if fs::canonicalize(&path).ok() != own {
                let digest = digest(&path).map_err(|error| Unreadable { path, error })?;
                files.push((name, digest));
            }
        }
        Ok(Self { files, others })
    }

    /// Compares them with what the manifest says; gives back everything that does not hold.
    pub fn check(&self, manifest: &Manifest) -> Result<Compared, Vec<String>> {
        let compared = integrity::verify(manifest, self.files.iter().cloned());
        let mut faults = Vec::new();
        if manifest.integrity().tree_sha256.is_some() {
            let uncovered =
                |other| format!("`{other}` is not a plain file, so no digest can cover it");
            faults.extend(self.others.iter().map(uncovered));
        }
        match compared {
            Ok(compared) if faults.is_empty() => Ok(compared),
            Ok(_) => Err(faults),
            Err(error) => {
                faults.extend(error.faults().iter().map(ToString::to_string));
                Err(faults)
            }
        }
    }
}

/// The listed files that are there. One that stands behind a link is not.
fn named(manifest: &Manifest, folder: &Path) -> Vec<String> {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let is_there = |name: &&String| {
        let path: PathBuf = folder.join(name);
        fs::canonicalize(&path).is_ok_and(|found| found == path) && path.is_file()
    };
    let listed = manifest.integrity().files.keys();
    listed.filter(is_there).cloned().collect()
}

fn digest(path: &Path) -> io::Result<Digest> {
    let bytes = read_bounded(File::open(path)?, MAX_BYTES).map_err(io::Error::other)?;
    Ok(Digest::of(&bytes))
}

/// Files are held in memory one at a time.
const MAX_BYTES: usize = 1 << 30;
