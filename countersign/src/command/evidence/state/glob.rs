//! Predicates on paths and keys: `?` is any character but `/`, `*` any number of them, `**` any text.

/// Whether some of the predicates select a path.
pub(super) fn any(predicates: &[String], path: &str) -> bool {
    predicates.iter().any(|predicate| matches(predicate, path))
}

/// Whether a predicate selects a path. The cost is the product of both lengths, whatever they are.
pub(super) fn matches(predicate: &str, path: &str) -> bool {
    let path: Vec<char> = path.chars().collect();
    // Which beginnings of the path the predicate, read so far, covers.
    let mut covered = vec![false; path.len() + 1];
    if let Some(empty) = covered.first_mut() {
        *empty = true;
    }
    for part in parts(predicate) {
        covered = step(&part, &path, &covered);
    }
    covered.last().copied().unwrap_or_default()
}

enum Part {
    One(char),
    Any,
    Star,
    Everything,
}

fn parts(predicate: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = predicate;
    while let Some(first) = rest.chars().next() {
        let (part, length) = if rest.starts_with("**") {
            (Part::Everything, 2)
        } else {
            let part = match first {
                '*' => Part::Star,
                '?' => Part::Any,
                other => Part::One(other),
            };
            (part, first.len_utf8())
        };
        parts.push(part);
        rest = rest.get(length..).unwrap_or_default();
    }
    parts
}

fn step(part: &Part, path: &[char], covered: &[bool]) -> Vec<bool> {
    let mut next = Vec::with_capacity(covered.len());
    let before = std::iter::once(None).chain(path.iter().copied().map(Some));
    let mut shifted = false;
    for (is_covered, letter) in covered.iter().zip(before) {
        let last = next.last().copied().unwrap_or_default();
        next.push(match (part, letter) {
            (Part::Everything, _) => *is_covered || last,
            (Part::Star, letter) => *is_covered || last && letter != Some('/'),
            (Part::Any, Some(letter)) => shifted && letter != '/',
            (Part::One(one), Some(letter)) => shifted && letter == *one,
            (Part::Any | Part::One(_), None) => false,
        });
        shifted = *is_covered;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn predicates_select_what_they_say() {
        for (predicate, path, expect) in [
            ("src/**", "src/a/b.rs", true),
            ("src/**", "srcs/a", false),
            ("src/*", "src/a.rs", true),
            ("src/*", "src/a/b.rs", false),
            ("**/*.rs", "a/b/c.rs", true),
            ("**", "anything/at all", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXb/Yc", false),
        ] {
            assert_eq!(matches(predicate, path), expect, "{predicate} {path}");
        }
    }
}
