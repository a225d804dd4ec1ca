//! Any bytes as a note, a checkpoint, a key, a proof or a tile: what is read has exactly one text, and
//! no proof that fuzzing finds leads to a root by chance.
#![no_main]

use countersign_canon::Hash;
use countersign_tlog::tile::{self, Tile};
use countersign_tlog::{
    Checkpoint, Key, Note, ProofFile, Statement, batch, consistency, hash, inclusion,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(note) = Note::read(bytes) {
        assert_eq!(note.to_string().as_bytes(), bytes);
        if let Ok(checkpoint) = Checkpoint::read(note.text()) {
            assert_eq!(checkpoint.to_string(), note.text());
            let _ = Statement::of(&checkpoint);
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(key) = text.parse::<Key>() {
            assert_eq!(key.to_string(), text);
        }
        if let Ok(tile) = text.parse::<Tile>() {
            assert_eq!(tile.to_string(), text);
        }
    }
    if let Ok(proof) = ProofFile::read(bytes) {
        assert_eq!(proof.to_string().as_bytes(), bytes);
        assert!(proof.checkpoint_for(hash::leaf(b"a leaf of ours")).is_err());
    }
    if let Some(entries) = tile::entries_from_bytes(bytes) {
        assert_eq!(
            tile::entries_to_bytes(entries.into_iter()).as_deref(),
            Some(bytes)
        );
    }
    proofs(bytes);
});

fn proofs(bytes: &[u8]) {
    let Some((numbers, rest)) = bytes.split_first_chunk::<16>() else {
        return;
    };
    let [first, second] = [&numbers[..8], &numbers[8..]]
        .map(|bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes")));
    let path: Vec<Hash> = rest
        .as_chunks()
        .0
        .iter()
        .copied()
        .map(Hash::from_bytes)
        .collect();
    let (leaf, root) = (hash::leaf(b"a leaf"), hash::leaf(b"a root"));
    assert_ne!(inclusion::root(first, leaf, second, &path), Some(root));
    assert!(!consistency::check((first, leaf), (second, root), &path) || first == 0);
    assert_ne!(batch::root(&[(first, leaf)], second, &path, 2), Some(root));
}
