//! Noticing that policies have changed on disk, without reading them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{PolicyFiles, list, list_of};

/// What the disk says about the files. Two stamps that are equal mean that nothing was written between
/// them, as far as the clock of the file system can tell two moments apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp(Vec<(PathBuf, Option<Mark>)>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    size: u64,
    modified: Option<SystemTime>,
    place: Place,
}

impl PolicyFiles {
    /// How the files stand now. Those that cannot be looked at count as such.
    pub fn stamp(&self) -> Stamp {
        let single = self.manifest.iter().chain(&self.publishers).cloned();
        let several = self.enforced.iter().chain(&self.shadow);
        let several = several.flat_map(|path| list(path).unwrap_or_else(|_| vec![path.clone()]));
        let beside = self.agent_control.iter().flat_map(|file| {
            let folder = file.path.parent().unwrap_or(Path::new(""));
            let folder = match folder.as_os_str().is_empty() {
                true => Path::new("."),
                false => folder,
            };
            list_of(folder, &ENDINGS).unwrap_or_else(|_| vec![file.path.clone()])
        });
        let stamped = single.chain(several).chain(beside).map(|path| {
            let mark = mark(&path);
            (path, mark)
        });
        Stamp(stamped.collect())
    }
}

fn mark(path: &Path) -> Option<Mark> {
    let found = fs::metadata(path).ok()?;
    Some(Mark {
        size: found.len(),
        modified: found.modified().ok(),
        place: place(&found),
    })
}

/// Which file it is, and when the system last changed anything about it: a tool that copies a file with
/// its times cannot set that one.
#[cfg(unix)]
type Place = (u64, u64, i64, i64);

#[cfg(unix)]
fn place(found: &fs::Metadata) -> Place {
    use std::os::unix::fs::MetadataExt as _;
    (found.dev(), found.ino(), found.ctime(), found.ctime_nsec())
}

#[cfg(not(unix))]
type Place = ();

#[cfg(not(unix))]
fn place(_: &fs::Metadata) -> Place {}

/// What an Agent Control manifest may refer to.
const ENDINGS: [&str; 6] = ["cedar", "cedarschema", "json", "rego", "yaml", "yml"];
