//! Trees and proofs, against vectors that everybody uses and against the definition itself.

use countersign_canon::Hash;
use countersign_tlog::{Range, batch, consistency, hash, inclusion};
use proptest::prelude::*;

/// The tree by its definition, from all leaves.
pub(crate) fn naive(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => hash::empty(),
        [leaf] => *leaf,
        leaves => {
            let half = 1 << (leaves.len() - 1).ilog2();
            hash::node(&naive(&leaves[..half]), &naive(&leaves[half..]))
        }
    }
}

pub(crate) fn leaves(count: u64) -> Vec<Hash> {
    (0..count).map(|n| hash::leaf(&n.to_be_bytes())).collect()
}

/// Whole subtrees, as a store would keep them.
pub(crate) fn nodes(leaves: &[Hash]) -> impl Fn(u32, u64) -> Result<Hash, String> + '_ {
    |level, index| {
        let from = usize::try_from(index << level).unwrap();
        let part = leaves.get(from..from + (1 << level));
        part.map(naive)
            .ok_or_else(|| format!("no subtree {index} at level {level}"))
    }
}

#[test]
fn roots_are_those_of_the_certificate_logs() {
    let entries: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];
    let roots = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let mut tree = Range::default();
    for (size, root) in roots.iter().enumerate() {
        assert_eq!(tree.root().to_string(), *root, "{size} leaves");
        if let Some(entry) = entries.get(size) {
            tree.push(hash::leaf(entry));
        }
    }
}

#[test]
fn every_leaf_of_small_trees_is_proven_and_nothing_else_is() {
    for size in 1..=40u64 {
        let leaves = leaves(size);
        let root = naive(&leaves);
        for leaf in 0..size {
            let path = inclusion::prove(leaf, size, nodes(&leaves)).unwrap();
            let place = usize::try_from(leaf).unwrap();
            assert_eq!(
                inclusion::root(leaf, leaves[place], size, &path),
                Some(root)
            );
            for other in (0..size + 2).filter(|other| *other != leaf) {
                assert_ne!(
                    inclusion::root(other, leaves[place], size, &path),
                    Some(root)
                );
            }
            let longer: Vec<Hash> = path.iter().copied().chain([root]).collect();
            assert_ne!(
                inclusion::root(leaf, leaves[place], size, &longer),
                Some(root)
            );
            if let Some(shorter) = path.get(1..) {
                assert_ne!(
                    inclusion::root(leaf, leaves[place], size, shorter),
                    Some(root)
                );
            }
        }
    }
}

#[test]
fn a_tree_that_has_grown_is_told_from_one_that_was_changed() {
    for new in 0..=40u64 {
        let leaves = leaves(new);
        let new_head = (new, naive(&leaves));
        for old in 0..=new {
            let old_head = (old, naive(&leaves[..usize::try_from(old).unwrap()]));
            let proof = consistency::prove(old, new, nodes(&leaves)).unwrap();
            assert!(
                consistency::check(old_head, new_head, &proof),
                "{old} → {new}"
            );
            let forged = (old, hash::leaf(b"another history"));
            assert!(!consistency::check(forged, new_head, &proof));
            if old < new && old > 0 {
                assert!(!consistency::check(new_head, old_head, &proof), "it shrank");
                let elsewhere = (new, hash::leaf(b"another history"));
                assert!(!consistency::check(old_head, elsewhere, &proof));
                let longer: Vec<Hash> = proof.iter().copied().chain([new_head.1]).collect();
                assert!(!consistency::check(old_head, new_head, &longer));
                for at in 0..proof.len() {
                    let mut changed = proof.clone();
                    changed[at] = hash::leaf(b"x");
                    assert!(!consistency::check(old_head, new_head, &changed));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn ranges_joined_anywhere_give_the_same_root(size in 0u64..300, cuts in prop::collection::vec(0u64..300, 0..4)) {
        let leaves = leaves(size);
        let mut cuts: Vec<u64> = cuts.into_iter().map(|cut| cut.min(size)).collect();
        cuts.extend([0, size]);
        cuts.sort_unstable();
        let mut whole = Range::default();
        for pair in cuts.windows(2) {
            let mut part = Range::starting_at(pair[0]);
            for leaf in pair[0]..pair[1] {
                part.push(leaves[usize::try_from(leaf).unwrap()]);
            }
            prop_assert!(whole.join(&part));
        }
        prop_assert_eq!(whole.end(), size);
        prop_assert_eq!(whole.root(), naive(&leaves));
        prop_assert!(!whole.join(&Range::starting_at(size + 1)));
    }

    #[test]
    fn one_proof_covers_many_leaves(size in 1u64..200, chosen in prop::collection::btree_set(0u64..200, 0..20), flip in any::<prop::sample::Index>()) {
        let all = leaves(size);
        let root = naive(&all);
        let chosen: Vec<u64> = chosen.into_iter().filter(|leaf| *leaf < size).collect();
        let proof = batch::prove(&chosen, size, nodes(&all)).unwrap();
        let with_hashes: Vec<(u64, Hash)> =
            chosen.iter().map(|leaf| (*leaf, all[usize::try_from(*leaf).unwrap()])).collect();
        prop_assert_eq!(batch::root(&with_hashes, size, &proof, 2), Some(root));
        if !proof.is_empty() {
            let mut changed = proof.clone();
            let at = flip.index(proof.len());
            changed[at] = hash::leaf(b"x");
            prop_assert_ne!(batch::root(&with_hashes, size, &changed, 1), Some(root));
            prop_assert_eq!(batch::root(&with_hashes, size, &proof[1..], 1), None);
        }
        if with_hashes.len() > 1 {
            let mut swapped = with_hashes.clone();
            swapped.swap(0, 1);
            prop_assert_eq!(batch::root(&swapped, size, &proof, 1), None);
            let mut exchanged = with_hashes.clone();
            exchanged[0].1 = with_hashes[1].1;
            prop_assert_ne!(batch::root(&exchanged, size, &proof, 1), Some(root));
        }
    }
}

#[test]
fn many_leaves_are_checked_on_several_threads_alike() {
    let all = leaves(20_000);
    let root = naive(&all);
    let chosen: Vec<u64> = (0..20_000).filter(|leaf| leaf % 3 != 1).collect();
    let proof = batch::prove(&chosen, 20_000, nodes(&all)).unwrap();
    let with_hashes: Vec<(u64, Hash)> = chosen
        .iter()
        .map(|leaf| (*leaf, all[usize::try_from(*leaf).unwrap()]))
        .collect();
    for threads in [1, 2, 5] {
        assert_eq!(
            batch::root(&with_hashes, 20_000, &proof, threads),
            Some(root)
        );
    }
}

#[test]
fn sizes_that_no_log_has_are_no_trouble() {
    let leaf = hash::leaf(b"x");
    assert_eq!(inclusion::root(0, leaf, 0, &[]), None);
    assert_eq!(inclusion::root(u64::MAX, leaf, u64::MAX, &[]), None);
    assert!(inclusion::root(5, leaf, u64::MAX, &[leaf; 64]).is_some());
    assert!(!consistency::check(
        (1, leaf),
        (u64::MAX, leaf),
        &[leaf; 80]
    ));
    assert!(!consistency::check(
        (u64::MAX - 1, leaf),
        (u64::MAX, leaf),
        &[]
    ));
    assert_eq!(batch::root(&[(3, leaf)], u64::MAX, &[leaf; 3], 4), None);
    assert_eq!(batch::root(&[], u64::MAX, &[leaf], 4), Some(leaf));
    assert_eq!(batch::root(&[], 0, &[], 1), Some(hash::empty()));
}
