//! A published log, read by programs that others wrote.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::fs;
use std::path::Path;
use std::process::Command;

use signed_note::{StandardVerifier, VerifierList};
use tlog_tiles::{Checkpoint, Tile, TileHashReader, TileReader, check_record, check_tree};
use tlog_tiles::{prove_record, prove_tree, record_hash};

/// The folder of a published log, as their reader asks for tiles.
struct Published<'a>(&'a Path);

impl TileReader for Published<'_> {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, tlog_tiles::Error> {
        // Their paths name the height of a tile, which is always the same, as well.
        let path = |tile: &Tile| self.0.join(tile.path().replacen("tile/8/", "tile/", 1));
        Ok(tiles
            .iter()
            .map(|tile| fs::read(path(tile)).unwrap())
            .collect())
    }

    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}

#[test]
fn others_accept_the_checkpoint_and_prove_events_from_the_tiles() {
    let parent = replayed::folder();
    let (old_size, old_root) = published(parent.path(), 300);
    let (size, root) = published(parent.path(), 250);
    assert_eq!((old_size, size), (300, 550));
    let folder = parent.path().join("public");
    let tiles = Published(&folder);
    let reader = TileHashReader::new(size, root, &tiles);
    for index in [0, 255, 256, 299, 300, 549] {
        let proof = prove_record(size, index, &reader).unwrap();
        let hash = record_hash(&entry(&folder, index, size));
        check_record(&proof, size, root, index, hash).unwrap();
        assert!(check_record(&proof, size, root, index, record_hash(b"another")).is_err());
    }
    let proof = prove_tree(size, old_size, &reader).unwrap();
    check_tree(&proof, size, root, old_size, old_root).unwrap();

    // The entries are the hashes of the events, in their order.
    let export = cs(parent.path(), &["log", "export"]);
    for (index, line) in (0..).zip(export.lines()) {
        let hex: String = entry(&folder, index, size)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert!(line.contains(&format!("\"hash\":\"{hex}\"")), "{index}");
    }
}

/// `COUNTERSIGN_GO=1` runs it: it needs Go, and fetches one module.
#[test]
fn the_packages_of_the_go_checksum_database_accept_a_published_log() {
    if std::env::var_os("COUNTERSIGN_GO").is_none() {
        return;
    }
    let parent = replayed::folder();
    published(parent.path(), 600);
    let key = cs(parent.path(), &["checkpoint", "show", "--key"]);
    let output = Command::new("go")
        .args(["run", "."])
        .arg(parent.path().join("public"))
        .arg(key.trim())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tlog_go"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "accepted example.com/log at 600\n", "{wrong}");
}

/// Appends, publishes, and opens the checkpoint as others do.
fn published(parent: &Path, events: usize) -> (u64, tlog_tiles::Hash) {
    let batch = parent.join("batch.jsonl");
    let event = r#"{"type":"MEMORY_WRITE","payload":{"memory_key":"k"}}"#;
    fs::write(&batch, format!("{event}\n").repeat(events)).unwrap();
    cs(
        parent,
        &["log", "append", "--session", "s", "--batch", "batch.jsonl"],
    );
    cs(
        parent,
        &[
            "checkpoint",
            "publish",
            "--name",
            "example.com/log",
            "--out",
            "public",
        ],
    );
    let note = fs::read(parent.join("public/checkpoint")).unwrap();
    let note = signed_note::Note::from_bytes(&note).unwrap();
    let key = cs(parent, &["checkpoint", "show", "--key"]);
    let key = StandardVerifier::new(key.trim()).unwrap();
    let (verified, _) = note
        .verify(&VerifierList::new(vec![Box::new(key)]))
        .unwrap();
    assert_eq!(verified.len(), 1);
    let checkpoint = Checkpoint::from_bytes(note.text()).unwrap();
    assert_eq!(checkpoint.origin(), "example.com/log");
    (checkpoint.size(), *checkpoint.hash())
}

/// An entry from its bundle: two bytes of length, then the entry.
fn entry(folder: &Path, index: u64, size: u64) -> Vec<u8> {
    let (number, place) = (index / 256, usize::try_from(index % 256).unwrap());
    let name = match size - number * 256 {
        width if width < 256 => format!("tile/entries/{number:03}.p/{width}"),
        _ => format!("tile/entries/{number:03}"),
    };
    let bundle = fs::read(folder.join(name)).unwrap();
    let start = place * 34;
    assert_eq!(bundle[start..start + 2], [0, 32]);
    bundle[start + 2..start + 34].to_vec()
}

fn cs(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(arguments)
        .current_dir(folder)
        .env("COUNTERSIGN_DATA", folder.join("data"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}
