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
    check("/work", Ok("/work"));
    check("/work/", Ok("/work"));
    check("//work//a", Ok("/work/a"));
    check("/work/./a/.", Ok("/work/a"));
    check("/work/a/../b", Ok("/work/b"));
    check("/work/a/b/../../../etc", Ok("/etc"));
    check("/work/..", Ok("/"));
    check("/...", Ok("/..."));
    check("/..a/b..", Ok("/..a/b.."));
    check("/work/a b/100%.txt", Ok("/work/a b/100%.txt"));
    check("/work/%zz", Ok("/work/%zz"));
    // Characters that only look like slashes and dots.
    check("/work/a∕..∕b", Ok("/work/a∕..∕b"));
    check("/work／..／etc", Ok("/work／..／etc"));
    check("/work/‥/etc", Ok("/work/‥/etc"));
}

#[test]
fn refused_paths() {
    check("", Err(PathError::Empty));
    check("work", Err(PathError::Relative));
    check("./work", Err(PathError::Relative));
    check("../etc/passwd", Err(PathError::Relative));
    check("/..", Err(PathError::AboveRoot));
    check("/work/../../etc", Err(PathError::AboveRoot));
    check("/work/\0", Err(PathError::Character));
    check("/work/a\n/b", Err(PathError::Character));
    check("/work/\u{1b}[2J", Err(PathError::Character));
    check("/work/..\\..\\etc", Err(PathError::Character));
    check("\\\\server\\share", Err(PathError::Character));
    check("C:\\work", Err(PathError::Character));
    check("/work/%2e%2e/etc", Err(PathError::Percent));
    check("/work/%2E./etc", Err(PathError::Percent));
    check("/work/..%2fetc", Err(PathError::Percent));
    check("/work/%252e%252e/etc", Err(PathError::Percent));
    check("/work/%00", Err(PathError::Percent));
    check("/work/%c0%ae%c0%ae/etc", Err(PathError::Percent));
    check("/work/%u002e%u002e/etc", Err(PathError::Percent));
    check(" /etc/passwd", Err(PathError::OuterSpace));
    check("/work/a ", Err(PathError::OuterSpace));
    check("/work/.. /etc", Err(PathError::OuterSpace));
    check("/work/\u{a0}../etc", Err(PathError::OuterSpace));
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
    let base = NormalPath::from_argument("/work/a").unwrap();
    let read = |text| NormalPath::from_argument_in(text, &base).map(|path| path.to_string());
    assert_eq!(read("b.txt"), Ok("/work/a/b.txt".to_owned()));
    assert_eq!(read("../b.txt"), Ok("/work/b.txt".to_owned()));
    assert_eq!(read("."), Ok("/work/a".to_owned()));
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
    check_within("/work", &["/work"], true);
    check_within("/work/a/b", &["/work"], true);
    check_within("/workspace", &["/work"], false);
    check_within("/work/../etc", &["/work"], false);
    check_within("/wor", &["/work"], false);
    check_within("/", &["/work"], false);
    check_within("/etc/passwd", &["/"], true);
    check_within("/", &["/"], true);
    check_within("/b/c", &["/a", "/b"], true);
    check_within("/work/a", &[], false);
    check_within("/WORK/a", &["/work"], false);
}

/// A disk with nothing but links on it.
fn walk(text: &str, links: &[(&str, &str)]) -> Result<String, PathError> {
    let links: BTreeMap<&str, &str> = links.iter().copied().collect();
    let base = NormalPath::from_argument("/work").unwrap();
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
    check("a/b", &[], Ok("/work/a/b"));
    check("/work/link", &[("/work/link", "/etc")], Ok("/etc"));
    check(
        "/work/link/passwd",
        &[("/work/link", "/etc")],
        Ok("/etc/passwd"),
    );
    check(
        "link/x",
        &[("/work/link", "sub/dir")],
        Ok("/work/sub/dir/x"),
    );
    check("link/x", &[("/work/link", "../other")], Ok("/other/x"));
    // `..` leaves the folder that the link leads into.
    check(
        "link/../shadow",
        &[("/work/link", "/etc/ssl")],
        Ok("/etc/shadow"),
    );
    check(
        "one/x",
        &[("/work/one", "two"), ("/work/two", "/etc")],
        Ok("/etc/x"),
    );
    check(
        "link",
        &[("/work/link", "link")],
        Err(PathError::TooManyLinks),
    );
    check("link/x", &[("/work/link", "?")], Err(PathError::Unexamined));
    check(
        "link",
        &[("/work/link", "../../..")],
        Err(PathError::AboveRoot),
    );
    check("link", &[("/work/link", "")], Err(PathError::Empty));
    check("link", &[("/work/link", "a\0b")], Err(PathError::Character));
    check("link", &[("/work/link", "%2e\\x")], Ok("/work/%2e\\x"));
    check("%2e%2e/x", &[], Err(PathError::Percent));
    assert_eq!(
        walk("link", &[("/work/link", &"a".repeat(5000))]),
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
