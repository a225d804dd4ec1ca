//! Folders, and files that are written as a whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

pub(crate) use countersign_engine::folder::{Extent, parent, walk};

/// Writes a file as a whole: whoever looks sees the old text or the new one.
pub(crate) fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = parent(file).join(name);
    let written = File::create_new(&temporary).and_then(|mut new| {
        new.write_all(text)?;
        new.sync_all()
    });
    written
        .and_then(|()| fs::rename(&temporary, file))
        .inspect_err(|_| {
            // Nobody will look for half a file.
            let _ = fs::remove_file(&temporary);
        })
}
