//! Readers that others wrote accept what is written here.

use countersign_canon::Hash;
use countersign_tlog::tile::{Tile, TileKind};
use countersign_tlog::{Checkpoint, Kind, Signer, consistency, inclusion};
use signed_note::{StandardVerifier, VerifierList};
use tlog_tiles::{check_record, check_tree, record_hash};

use crate::tree::{leaves, naive, nodes};

fn theirs(hash: &Hash) -> tlog_tiles::Hash {
    tlog_tiles::Hash(*hash.as_bytes())
}

#[test]
fn a_checkpoint_is_signed_and_formatted_as_others_expect() {
    let signer = Signer::new("example.com/log", &[3; 32]).unwrap();
    let checkpoint = Checkpoint {
        origin: "example.com/log".to_owned(),
        size: 1000,
        root: naive(&leaves(1000)),
        extensions: vec!["durability full".to_owned(), "sessions 1 x".to_owned()],
    };
    let mut note = checkpoint.to_note().unwrap();
    note.add(signer.sign(&note));
    note.add(Signer::new("w", &[4; 32]).unwrap().cosign(&note, 1));
    let text = note.to_string();

    let opened = signed_note::Note::from_bytes(text.as_bytes()).unwrap();
    let key = StandardVerifier::new(&signer.key(Kind::Note).to_string()).unwrap();
    let (verified, unknown) = opened
        .verify(&VerifierList::new(vec![Box::new(key)]))
        .unwrap();
    assert_eq!((verified.len(), unknown.len()), (1, 1));
    let read = tlog_tiles::Checkpoint::from_bytes(opened.text()).unwrap();
    assert_eq!(read.origin(), checkpoint.origin);
    assert_eq!(read.size(), 1000);
    assert_eq!(*read.hash(), theirs(&checkpoint.root));

    let other = Signer::new("example.com/log", &[5; 32]).unwrap();
    let key = StandardVerifier::new(&other.key(Kind::Note).to_string()).unwrap();
    assert!(
        opened
            .verify(&VerifierList::new(vec![Box::new(key)]))
            .is_err()
    );
}

#[test]
fn proofs_are_those_of_others() {
    assert_eq!(
        record_hash(b"x").0,
        *countersign_tlog::hash::leaf(b"x").as_bytes()
    );
    let all = leaves(700);
    for size in [1, 2, 3, 255, 256, 257, 699] {
        let part = &all[..usize::try_from(size).unwrap()];
        let root = theirs(&naive(part));
        for leaf in [0, size / 3, size - 1] {
            let path = inclusion::prove(leaf, size, nodes(part)).unwrap();
            let path: Vec<_> = path.iter().map(theirs).collect();
            let hash = theirs(&part[usize::try_from(leaf).unwrap()]);
            check_record(&path, size, root, leaf, hash).unwrap();
            assert!(check_record(&path, size, root, leaf, record_hash(b"no")).is_err());
        }
        let proof = consistency::prove(size, 700, nodes(&all)).unwrap();
        let proof: Vec<_> = proof.iter().map(theirs).collect();
        check_tree(&proof, 700, theirs(&naive(&all)), size, root).unwrap();
    }
}

#[test]
fn tile_paths_are_those_of_others() {
    for (level, number, width) in [(0, 0, 256), (0, 1_234_067, 256), (2, 1000, 17), (1, 255, 1)] {
        let ours = Tile {
            kind: TileKind::Hashes(level),
            number,
            width,
        };
        let theirs = tlog_tiles::Tile::new(8, level, number, u32::try_from(width).unwrap(), false);
        // They name the height of a tile, which is always the same, as well.
        let path = theirs.path().replacen("tile/8/", "tile/", 1);
        assert_eq!(ours.to_string(), path);
    }
}
