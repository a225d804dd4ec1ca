//! The files that pages load, kept in the binary.

use std::sync::LazyLock;

use countersign_canon::Hash;

use crate::html::Link;

/// A file that pages load.
#[derive(Debug)]
pub struct Asset {
    /// What it is.
    pub kind: &'static str,
    /// Its content.
    pub text: &'static str,
    /// Names exactly this content, in quotes.
    pub tag: String,
}

/// The file with this name.
pub fn asset(name: &str) -> Option<&'static Asset> {
    static ASSETS: LazyLock<Vec<(&str, Asset)>> = LazyLock::new(|| {
        let asset = |(name, kind, text): &(&'static str, &'static str, &'static str)| {
            let hash = Hash::of(text.as_bytes()).to_string();
            let tag = format!("\"{}\"", hash.get(..32).unwrap_or(&hash));
            (*name, Asset { kind, text, tag })
        };
        FILES.iter().map(asset).collect()
    });
    let found = ASSETS.iter().find(|(known, _)| *known == name);
    found.map(|(_, asset)| asset)
}

/// Where a file is.
pub(crate) fn link(name: &'static str) -> Link {
    Link::to(&["assets", name])
}

const FILES: &[(&str, &str, &str)] = &[
    (
        "console.css",
        "text/css; charset=utf-8",
        include_str!("../assets/console.css"),
    ),
    (
        "console.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/console.js"),
    ),
    (
        "sign.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/sign.js"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_str!("../assets/icon.svg"),
    ),
];
