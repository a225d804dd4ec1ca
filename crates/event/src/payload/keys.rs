//! The order of member names in canonical text.
#![expect(
    clippy::indexing_slicing,
    reason = "all of it runs in the compiler, where a wrong index is an error"
)]

/// Sorts names as canonical text has them. They are plain ASCII and end alike, so their bytes tell.
pub(super) const fn sorted<const N: usize>(mut names: [&str; N]) -> [&str; N] {
    let mut sorted = 1;
    while sorted < N {
        let mut at = sorted;
        while at > 0 && comes_before(names[at].as_bytes(), names[at - 1].as_bytes()) {
            (names[at], names[at - 1]) = (names[at - 1], names[at]);
            at -= 1;
        }
        sorted += 1;
    }
    names
}

const fn comes_before(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}
