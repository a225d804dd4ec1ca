//! What a caller must work out about an argument: which path or host it really names.

/// Normal forms of the places that arguments name.
///
/// The engine implements this with the matchers of the policy crate and with the file system; the
/// rules here only compare. `None` means that it cannot be told, and then nothing is covered.
pub trait Places {
    /// The absolute path that an argument names, links resolved, without `.` and `..`.
    fn path(&self, argument: &str, value: &str) -> Option<String>;

    /// The host that an argument names, lower-case, in ASCII, without a dot at its end.
    fn host(&self, argument: &str, value: &str) -> Option<String>;
}
