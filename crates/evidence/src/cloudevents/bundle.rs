//! A bundle: a compressed archive of a manifest and of events, that the tools of Assay verify.
//!
//! The archive has plain headers and one member of compression, so every reader sees the same two files.

use std::io::Write as _;

use countersign_canon::{Digest, Json};
use flate2::{Compression, GzBuilder};

use super::event::{CloudEvent, Producer};

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A bundle has at least one event.
    #[error("a bundle needs an event")]
    Empty,
    /// The format has a limit.
    #[error("a bundle holds at most {MAX_EVENTS} events and lines of at most {MAX_LINE} bytes")]
    TooLarge,
    /// A number that JSON does not keep.
    #[error(transparent)]
    Json(#[from] countersign_canon::Error),
    /// Writing to memory failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The bundle of the events of one run, in their order.
pub fn bundle(events: &[CloudEvent], producer: &Producer) -> Result<Vec<u8>, BundleError> {
    let first = events.first().ok_or(BundleError::Empty)?;
    if events.len() > MAX_EVENTS {
        return Err(BundleError::TooLarge);
    }
    let mut lines = Vec::new();
    let mut root = Vec::new();
    for event in events {
        let line = event.to_json().to_jcs()?;
        if line.len() > MAX_LINE {
            return Err(BundleError::TooLarge);
        }
        lines.extend_from_slice(&line);
        lines.push(b'\n');
        root.extend_from_slice(event.text("assaycontenthash").as_bytes());
        root.push(b'\n');
    }
    let root = Digest::of(&root).to_string();
    let file = Json::object([
        ("path", Json::from("events.ndjson")),
        ("sha256", Json::from(Digest::of(&lines).to_string())),
        ("bytes", Json::from(lines.len() as u64)),
    ]);
    let manifest = Json::object([
        ("schema_version", Json::from(1u32)),
        ("bundle_id", Json::from(root.as_str())),
        (
            "producer",
            Json::object([
                ("name", Json::from(producer.name.as_str())),
                ("version", Json::from(producer.version.as_str())),
                ("git", Json::from(producer.git.as_str())),
            ]),
        ),
        ("run_id", Json::from(first.text("assayrunid"))),
        ("event_count", Json::from(events.len() as u64)),
        ("run_root", Json::from(root.as_str())),
        (
            "algorithms",
            Json::object([
                ("canon", Json::from("jcs-rfc8785")),
                ("hash", Json::from("sha256")),
                ("root", Json::from("sha256(concat(content_hash + \"\\n\"))")),
            ]),
        ),
        ("files", Json::object([("events.ndjson", file)])),
    ]);
    let mut archive = Vec::new();
    push_file("manifest.json", &manifest.to_jcs()?, &mut archive);
    push_file("events.ndjson", &lines, &mut archive);
    archive.resize(archive.len() + 2 * BLOCK, 0);
    let mut gzip = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::best());
    gzip.write_all(&archive)?;
    Ok(gzip.finish()?)
}

/// Adds a plain file to a tar archive.
fn push_file(name: &str, content: &[u8], archive: &mut Vec<u8>) {
    let size = format!("{:011o}", content.len());
    let fields: [(usize, &[u8]); 11] = [
        (0, name.as_bytes()),
        (100, b"0000644\0"),
        (108, b"0000000\0"),
        (116, b"0000000\0"),
        (124, size.as_bytes()),
        (136, b"00000000000\0"),
        (148, b"        "),
        (156, b"0"),
        (257, b"ustar\x0000"),
        (265, b"countersign"),
        (297, b"countersign"),
    ];
    let mut header = [0u8; BLOCK];
    for (at, field) in fields {
        put(&mut header, at, field);
    }
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    put(&mut header, 148, format!("{sum:06o}\0 ").as_bytes());
    archive.extend_from_slice(&header);
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

fn put(header: &mut [u8; BLOCK], at: usize, field: &[u8]) {
    if let Some(place) = header.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}

const BLOCK: usize = 512;
const MAX_EVENTS: usize = 100_000;
const MAX_LINE: usize = 1 << 20;
