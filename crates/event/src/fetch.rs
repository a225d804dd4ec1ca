//! What a protocol fetches by methods of its own, and not by tools.

use countersign_canon::Digest;

/// The definition of a method by which a protocol fetches something, and does nothing else. No other name has
/// one.
///
/// SECURITY: whoever stands at the door gives it to what came under that method. No tool has it: the
/// definition of a tool is an object, and this is the digest of something else.
pub fn fetching(method: &str) -> Option<Digest> {
    let fetches = FETCHING.contains(&method);
    fetches.then(|| Digest::of_parts(&[b"countersign/fetching\0", method.as_bytes()]))
}

/// The methods.
pub const FETCHING: [&str; 2] = ["resources/read", "prompts/get"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_methods_fetch_and_nothing_else_does() {
        let read = fetching("resources/read").unwrap();
        // Logs have it.
        assert_eq!(
            read.to_string(),
            "sha256:256b4ed96f9be65e7dafc109aad3b07d6f50f44587a9ec9ac9409d28a7c0bc95"
        );
        assert_ne!(fetching("prompts/get"), Some(read));
        for other in ["", "tools/call", "resources/list", "Resources/Read"] {
            assert_eq!(fetching(other), None, "{other}");
        }
    }
}
