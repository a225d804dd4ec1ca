use countersign_canon::{Json, Limits};

use super::*;

fn manifest(integrity: &str) -> Manifest {
    let text = format!(r#"{{"integrity":{integrity}}}"#);
    Manifest::partial(&Json::admit(text.as_bytes(), &Limits::event()).unwrap()).unwrap()
}

fn files<'f>(files: &'f [(&str, &str)]) -> impl Iterator<Item = (String, Digest)> + 'f {
    let digest = |content: &str| Digest::of(content.as_bytes());
    files
        .iter()
        .map(move |(path, content)| ((*path).to_owned(), digest(content)))
}

fn check(integrity: &str, found: &[(&str, &str)], expect: Result<(usize, bool), &str>) {
    let compared = verify(&manifest(integrity), files(found));
    let compared = compared
        .map(|it| (it.files, it.tree))
        .map_err(|error| error.to_string());
    assert_eq!(compared, expect.map_err(str::to_owned), "{integrity}");
}

/// SHA-256 of `a` and `b`.
const A: &str = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
const B: &str = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d";
/// `printf 'a.txt:%s\na/b:%s\n' $A $B | sha256sum`
const TREE: &str = "6757b58b90686a8a829ec6648f473c8fce9b7905dd38305983b4f1881c5450eb";

#[test]
fn listed_files() {
    let listed = format!(r#"{{"files":{{"a.txt":"{A}","a/b":"{B}"}}}}"#);
    check(&listed, &[("a.txt", "a"), ("a/b", "b")], Ok((2, false)));
    check(
        &listed,
        &[("a.txt", "a"), ("a/b", "b"), ("extra", "x")],
        Ok((2, false)),
    );
    check(&listed, &[("a.txt", "a")], Err("`a/b` is missing"));
    check(
        &listed,
        &[("a.txt", "x"), ("a/b", "b")],
        Err("`a.txt` was changed"),
    );
    check(&listed, &[], Err("`a.txt` is missing\n`a/b` is missing"));
    check(
        &listed,
        &[("a/b", "a"), ("a.txt", "b")],
        Err("`a.txt` was changed\n`a/b` was changed"),
    );
    check("{}", &[("a", "a")], Ok((0, false)));
    check("{}", &[], Ok((0, false)));
}

#[test]
fn the_digest_over_all_files() {
    let tree_only = format!(r#"{{"tree_sha256":"{TREE}"}}"#);
    let differs = "the digest over all files differs: a file was added, removed or changed";
    check(&tree_only, &[("a/b", "b"), ("a.txt", "a")], Ok((0, true)));
    check(
        &tree_only,
        &[("a/b", "b"), ("a.txt", "a"), ("extra", "")],
        Err(differs),
    );
    check(&tree_only, &[("a.txt", "a")], Err(differs));
    check(&tree_only, &[("a/b", "a"), ("a.txt", "b")], Err(differs));
    check(&tree_only, &[], Err(differs));
    let both = format!(r#"{{"files":{{"a.txt":"{A}"}},"tree_sha256":"{TREE}"}}"#);
    check(&both, &[("a/b", "b"), ("a.txt", "a")], Ok((1, true)));
    let all = tree(files(&[("a/b", "b"), ("a.txt", "a")])).unwrap();
    assert_eq!(all.to_string(), TREE);
}

#[test]
fn paths_stay_below_where_they_start() {
    for path in [
        "/a", "../a", "a/../b", "./a", "a//b", "a/", "", ".", "..", "a\\b", "a\nb", "a\0",
    ] {
        assert!(check_path(path).is_err(), "{path:?}");
        let found = verify(&manifest("{}"), files(&[(path, "a")])).unwrap_err();
        assert_eq!(found.faults(), [Fault::Path(path.to_owned())]);
    }
    for path in ["a", "a/b", "a.b", "..a", "a b:c", "é"] {
        assert!(check_path(path).is_ok(), "{path:?}");
    }
    check("{}", &[("a", "a"), ("a", "a")], Err("`a` was given twice"));
    assert!(tree(files(&[("a", "a"), ("a", "b")])).is_err());
}
