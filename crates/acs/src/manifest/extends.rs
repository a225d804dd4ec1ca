//! What a manifest extends.

use countersign_canon::{Hash, Json, Object};
use countersign_policy::manifest::{Section, segment};

use super::pin;

/// One entry of `extends`, or a bundle at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The path or the address.
    pub(super) reference: String,
    /// Whether it was written as an object, which only addresses are.
    pub(super) is_address: bool,
    /// What is expected there.
    pub(super) digest: Option<Hash>,
}

impl Entry {
    /// Whether it is an address rather than a path.
    pub(super) fn is_address(&self) -> bool {
        let scheme = self.reference.split_once("://").map(|(scheme, _)| scheme);
        self.is_address
            || scheme.is_some_and(|scheme| {
                scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                    && scheme
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            })
    }
}

/// Reads the entries; faults are noted.
pub(super) fn entries(root: &mut Section<'_, '_>) -> Vec<Entry> {
    let Some(value) = root.value("extends") else {
        return Vec::new();
    };
    let Some(elements) = value.as_array() else {
        root.note("/extends", "expected an array of references");
        return Vec::new();
    };
    let mut entries = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        let at = format!("/extends/{index}");
        match element {
            Json::String(text) if text.trim().is_empty() => root.note(&at, "must not be empty"),
            Json::String(text) => entries.push(Entry {
                reference: text.clone(),
                is_address: false,
                digest: None,
            }),
            Json::Object(members) => entries.extend(pinned(root, &at, members)),
            _ => root.note(&at, "expected a path, an address, or an object with `url`"),
        }
    }
    entries
}

/// Reads `{url, sha256 | integrity}`; faults are noted.
pub(super) fn pinned(root: &mut Section<'_, '_>, at: &str, members: &Object) -> Option<Entry> {
    for (name, _) in members {
        if !["url", "integrity", "sha256"].contains(&name) {
            root.note(
                &format!("{at}{}", segment(name)),
                "unknown field, expected one of `url`, `sha256`, `integrity`",
            );
        }
    }
    let url = match members.get("url").and_then(Json::as_str) {
        Some(url) if !url.trim().is_empty() => url.to_owned(),
        _ => {
            root.note(&format!("{at}/url"), "expected an address");
            return None;
        }
    };
    let digest = match (members.get("sha256"), members.get("integrity")) {
        (None, None) => None,
        (Some(_), Some(_)) => {
            root.note(at, "must not have both `sha256` and `integrity`");
            return None;
        }
        (Some(digest), None) => {
            let digest = digest.as_str().and_then(pin::hex);
            if digest.is_none() {
                root.note(&format!("{at}/sha256"), "expected 64 hexadecimal digits");
                return None;
            }
            digest
        }
        (None, Some(digest)) => {
            let digest = digest.as_str().and_then(pin::integrity);
            if digest.is_none() {
                root.note(
                    &format!("{at}/integrity"),
                    "expected `sha256-` and the digest in base64",
                );
                return None;
            }
            digest
        }
    };
    Some(Entry {
        reference: url,
        is_address: true,
        digest,
    })
}
