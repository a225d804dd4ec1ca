use std::collections::BTreeMap;

use super::*;

fn check(text: &str, expect: Result<&str, PathError>) {
    let path = NormalPath::from_argument(text).map(|path| path.to_string());
    assert_eq!(path, expect.map(str::to_owned), "{text:?}");
}

#[test]
fn absolute_paths() {
    check("/", Ok("/"));
    check("//", Ok("/"));
    check("/data", Ok("/data"));
    check("/data/", Ok("/data"));
    check("//data//a", Ok("/data/a"));
    check("/data/./a/.", Ok("/data/a"));
    check("/data/a/../b", Ok("/data/b"));
    check("/data/a/b/../../../etc", Ok("/etc"));
    check("/data/..", Ok("/"));
    check("/...", Ok("/..."));
    check("/..a/b..", Ok("/..a/b.."));
    check("/data/a b/100%.txt", Ok("/data/a b/100%.txt"));
    check("/data/%zz", Ok("/data/%zz"));
    // Characters that only look like slashes and dots.
    check("/data/a∕..∕b", Ok("/data/a∕..∕b"));
    check("/data／..／etc", Ok("/data／..／etc"));
    check("/data/‥/etc", Ok("/data/‥/etc"));
}

#[test]
fn refused_paths() {
    check("", Err(PathError::Empty));
    check("work", Err(PathError::Relative));
    check("./data", Err(PathError::Relative));
    check("../etc/passwd", Err(PathError::Relative));
    check("/..", Err(PathError::AboveRoot));
    check("/data/../../etc", Err(PathError::AboveRoot));
    check("/data/\0", Err(PathError::Character));
    check("/data/a\n/b", Err(PathError::Character));
    check("/data/\u{1b}[2J", Err(PathError::Character));
    check("/data/..\\..\\etc", Err(PathError::Character));
    check("\\\\server\\share", Err(PathError::Character));
    check("C:\\work", Err(PathError::Character));
    check("/data/%2e%2e/etc", Err(PathError::Percent));
    check("/data/%2E./etc", Err(PathError::Percent));
    check("/data/..%2fetc", Err(PathError::Percent));
    check("/data/%252e%252e/etc", Err(PathError::Percent));
    check("/data/%00", Err(PathError::Percent));
    check("/data/%c0%ae%c0%ae/etc", Err(PathError::Percent));
    check("/data/%u002e%u002e/etc", Err(PathError::Percent));
    check(" /etc/passwd", Err(PathError::OuterSpace));
    check("/data/a ", Err(PathError::OuterSpace));
    check("/data/.. /etc", Err(PathError::OuterSpace));
    check("/data/\u{a0}../etc", Err(PathError::OuterSpace));
    check("~/.ssh/id", Err(PathError::Special));
    check("~root", Err(PathError::Special));
    check("file:///etc/passwd", Err(PathError::Special));
    check("C:/Windows", Err(PathError::Special));
    check(
        &format!("/{}", "a/".repeat(1 << 16)),
        Err(PathError::TooLong),
    );
}

#[test]
fn relative_paths_start_from_the_base() {
    let base = NormalPath::from_argument("/data/a").unwrap();
    let read = |text| NormalPath::from_argument_in(text, &base).map(|path| path.to_string());
    assert_eq!(read("b.txt"), Ok("/data/a/b.txt".to_owned()));
    assert_eq!(read("../b.txt"), Ok("/data/b.txt".to_owned()));
    assert_eq!(read("."), Ok("/data/a".to_owned()));
    assert_eq!(read("/etc"), Ok("/etc".to_owned()));
    assert_eq!(read("../../../etc"), Err(PathError::AboveRoot));
    assert_eq!(read("~/x"), Err(PathError::Special));
    assert_eq!(read("file:///etc/passwd"), Err(PathError::Special));
    let long = "a".repeat(4095);
    assert_eq!(read(&long), Err(PathError::TooLong));
}

fn check_within(path: &str, roots: &[&str], expect: bool) {
    let roots: Vec<NormalPath> = roots
        .iter()
        .map(|root| NormalPath::from_argument(root).unwrap())
        .collect();
    let path = NormalPath::from_argument(path).unwrap();
    assert_eq!(path.within(&roots), expect, "{path} in {roots:?}");
}

#[test]
fn within() {
    check_within("/data", &["/data"], true);
    check_within("/data/a/b", &["/data"], true);
    check_within("/dataspace", &["/data"], false);
    check_within("/data/../etc", &["/data"], false);
    check_within("/wor", &["/data"], false);
    check_within("/", &["/data"], false);
    check_within("/etc/passwd", &["/"], true);
    check_within("/", &["/"], true);
    check_within("/b/c", &["/a", "/b"], true);
    check_within("/data/a", &[], false);
    check_within("/WORK/a", &["/data"], false);
}

/// A disk with nothing but links on it.
fn walk(text: &str, links: &[(&str, &str)]) -> Result<String, PathError> {
    let links: BTreeMap<&str, &str> = links.iter().copied().collect();
    let base = NormalPath::from_argument("/data").unwrap();
    let examine = |path: &NormalPath| match links.get(path.as_str()) {
        Some(&"?") => Link::Unknown,
        Some(target) => Link::To((*target).to_owned()),
        None => Link::No,
    };
    NormalPath::resolve(text, Some(&base), examine).map(|path| path.to_string())
}

#[test]
fn links_are_walked_as_the_system_does() {
    let check = |text, links: &[(&str, &str)], expect: Result<&str, PathError>| {
        assert_eq!(walk(text, links), expect.map(str::to_owned), "{text}");
    };
    check("a/b", &[], Ok("/data/a/b"));
    check("/data/link", &[("/data/link", "/etc")], Ok("/etc"));
    check(
        "/data/link/passwd",
        &[("/data/link", "/etc")],
        Ok("/etc/passwd"),
    );
    check(
        "link/x",
        &[("/data/link", "sub/dir")],
        Ok("/data/sub/dir/x"),
    );
    check("link/x", &[("/data/link", "../other")], Ok("/other/x"));
    // `..` leaves the folder that the link leads into.
    check(
        "link/../shadow",
        &[("/data/link", "/etc/ssl")],
        Ok("/etc/shadow"),
    );
    check(
        "one/x",
        &[("/data/one", "two"), ("/data/two", "/etc")],
        Ok("/etc/x"),
    );
    check(
        "link",
        &[("/data/link", "link")],
        Err(PathError::TooManyLinks),
    );
    check("link/x", &[("/data/link", "?")], Err(PathError::Unexamined));
    check(
        "link",
        &[("/data/link", "../../..")],
        Err(PathError::AboveRoot),
    );
    check("link", &[("/data/link", "")], Err(PathError::Empty));
    check("link", &[("/data/link", "a\0b")], Err(PathError::Character));
    check("link", &[("/data/link", "%2e\\x")], Ok("/data/%2e\\x"));
    check("%2e%2e/x", &[], Err(PathError::Percent));
    assert_eq!(
        walk("link", &[("/data/link", &"a".repeat(5000))]),
        Err(PathError::TooLong)
    );
}

#[test]
fn links_that_grow_come_to_an_end() {
    let mut asked = 0;
    let grown = NormalPath::resolve("/a", None, |_| {
        asked += 1;
        Link::To("b/b/b/b/b/b/b/b".to_owned())
    });
    assert_eq!(grown, Err(PathError::TooManyLinks));
    assert!(asked <= 41);
}
