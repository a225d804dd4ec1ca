//! Trees as tiles.

use std::collections::BTreeMap;

use countersign_canon::Hash;
use countersign_tlog::tile::{self, Tile, TileKind};
use countersign_tlog::{Edge, inclusion};

use crate::tree::{leaves, naive};

#[test]
fn paths_are_those_of_the_specification() {
    let tile = |number, width| Tile {
        kind: TileKind::Hashes(0),
        number,
        width,
    };
    assert_eq!(tile(1_234_067, 256).to_string(), "tile/0/x001/x234/067");
    assert_eq!(tile(7, 5).to_string(), "tile/0/007.p/5");
    for path in [
        "tile/0/000",
        "tile/3/x001/000.p/255",
        "tile/entries/x999/999",
        "tile/entries/000.p/1",
    ] {
        assert_eq!(path.parse::<Tile>().unwrap().to_string(), path);
    }
    for bad in [
        "",
        "tile/0",
        "tile/00/000",
        "tile/64/000",
        "tile/0/0",
        "tile/0/x000/001",
        "tile/0/000.p/256",
        "tile/0/000.p/0",
        "tile/0/000.p/05",
        "tile/0/000/",
        "tile/0/../000",
        "/tile/0/000",
        "tile/0/x99/x999/x999/x999/x999/x999/x999/999",
        "tile/entries/-01",
    ] {
        assert!(bad.parse::<Tile>().is_err(), "{bad}");
    }
}

/// The example of the specification: 70 000 leaves.
#[test]
fn a_tree_has_the_tiles_that_its_size_says() {
    let widths = |level| {
        let tiles: Vec<u64> = Tile::of_level(TileKind::Hashes(level), 70_000)
            .map(|tile| tile.width)
            .collect();
        (tiles.len(), *tiles.last().unwrap())
    };
    assert_eq!(Tile::levels(70_000).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(
        [widths(0), widths(1), widths(2)],
        [(274, 112), (2, 17), (1, 1)]
    );
    assert_eq!(Tile::levels(256).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(Tile::of_level(TileKind::Entries, 0).count(), 0);
    assert_eq!(Tile::levels(u64::MAX).count(), 8);
}

/// Grows a tree in steps of any size, each from what the step before has stored.
#[test]
fn a_tree_grows_from_its_stored_edge() {
    let all = leaves(70_000);
    let mut stored: BTreeMap<(u8, u64), Vec<Hash>> = BTreeMap::new();
    let mut size = 0;
    let steps = [1, 1, 253, 1, 1, 255, 256, 512, 3, 64_000, 255 * 18];
    for step in steps {
        let mut edge = Edge::read(size, |level, number| {
            Ok::<_, ()>(stored.get(&(level, number)).cloned().unwrap_or_default())
        })
        .unwrap()
        .expect("everything is stored");
        let from = usize::try_from(size).unwrap();
        for leaf in &all[from..from + step] {
            edge.push(*leaf);
        }
        for (level, number, hashes) in edge.take_tiles() {
            let old = stored
                .insert((level, number), hashes.clone())
                .unwrap_or_default();
            assert!(hashes.starts_with(&old), "a tile only grows");
        }
        size = edge.size();
        let part = &all[..usize::try_from(size).unwrap()];
        assert_eq!(edge.root(), naive(part), "{size}");
        check_tiles(size, part, &stored);
    }
    assert!(size > 65_536);

    let tiles = |level, number| Ok::<_, ()>(stored[&(level, number)].clone());
    let node = |level, index| tile::subtree_root(level, index, tiles).map(Option::unwrap);
    for leaf in [0, 255, 256, 65_535, 65_536, size - 1] {
        let path = inclusion::prove(leaf, size, node).unwrap();
        let place = usize::try_from(leaf).unwrap();
        let root = naive(&all[..usize::try_from(size).unwrap()]);
        assert_eq!(inclusion::root(leaf, all[place], size, &path), Some(root));
    }
}

fn check_tiles(size: u64, leaves: &[Hash], stored: &BTreeMap<(u8, u64), Vec<Hash>>) {
    let mut expected = 0;
    for level in Tile::levels(size) {
        for tile in Tile::of_level(TileKind::Hashes(level), size) {
            let hashes = &stored[&(level, tile.number)];
            assert_eq!(hashes.len() as u64, tile.width);
            expected += 1;
            let last = tile.number * 256 + tile.width - 1;
            let span = 256usize.pow(u32::from(level));
            let from = usize::try_from(last).unwrap() * span;
            assert_eq!(hashes.last(), Some(&naive(&leaves[from..from + span])));
        }
    }
    assert_eq!(stored.len(), expected, "no tile too many");
}

#[test]
fn an_edge_that_is_not_all_there_is_refused() {
    let none = |_, _| Ok::<_, ()>(Vec::new());
    assert_eq!(Edge::read(5, none), Ok(None));
    assert!(Edge::read(0, none).unwrap().is_some());
}

#[test]
fn bundles_of_entries_read_back() {
    let entries: Vec<Vec<u8>> = (0..256).map(|n| vec![7; n]).collect();
    let bytes = tile::entries_to_bytes(entries.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(tile::entries_from_bytes(&bytes).unwrap(), entries);
    assert_eq!(tile::entries_from_bytes(&bytes[..bytes.len() - 1]), None);
    assert_eq!(tile::entries_from_bytes(&[0]), None);
    assert_eq!(tile::entries_from_bytes(&[0; 2 * 257]), None);
    assert_eq!(
        tile::entries_to_bytes([vec![0; 65_536].as_slice()].into_iter()),
        None
    );
    let hashes = leaves(256);
    let bytes = tile::hashes_to_bytes(&hashes);
    assert_eq!(tile::hashes_from_bytes(&bytes), Some(hashes));
    assert_eq!(tile::hashes_from_bytes(&bytes[1..]), None);
    assert_eq!(tile::hashes_from_bytes(&[0; 257 * 32]), None);
}
