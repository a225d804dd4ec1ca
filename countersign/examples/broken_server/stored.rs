//! Faults of what is kept on the disk.

use std::io::Write as _;
use std::path::Path;

/// A storage that rots: the newest event is no longer what was written.
pub(crate) fn rot(scratch: &Path) {
    let folder = countersign_store::Folder::new(scratch.join("data"));
    let database = rusqlite::Connection::open(folder.database()).unwrap();
    let change = "DROP TRIGGER IF EXISTS events_keep_content;
        UPDATE events SET line = replace(line, '\"seq\":', '\"seq\": ')
        WHERE id = (SELECT max(id) FROM events)";
    database.execute_batch(change).unwrap();
}

/// A build that does not keep the policies beside the log.
pub(crate) fn lose_policies(scratch: &Path) {
    let Ok(entries) = std::fs::read_dir(scratch.join("data/policies")) else {
        return;
    };
    for entry in entries {
        let _ = std::fs::remove_file(entry.unwrap().path());
    }
}

/// Spans that tell more than they should.
pub(crate) fn span(text: &str, scratch: &Path) {
    let path = scratch.join("data/more-spans.ndjson");
    std::fs::write(path, text).unwrap();
}

/// An access log that somebody switched on.
pub(crate) fn note(text: &str, scratch: &Path) {
    let path = scratch.join("data/access.log");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create(true).append(true).open(path).unwrap();
    writeln!(file, "{text}").unwrap();
}

/// Which socket listens on this address: another one once the server was started again.
pub(crate) fn socket(address: &str) -> String {
    let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
    let wanted = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let mut lines = table.lines().map(|line| line.split_whitespace());
    let found = lines.find_map(|mut words| {
        let local = words.nth(1)?;
        let state = words.nth(1)?;
        let inode = words.nth(5)?;
        (local.ends_with(&wanted) && state == "0A").then(|| inode.to_owned())
    });
    found.unwrap_or_default()
}
