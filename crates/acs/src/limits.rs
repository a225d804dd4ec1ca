//! How much a manifest, a snapshot, an annotator and a policy may ask of us.

use std::time::Duration;

use countersign_canon::Json;

/// The limits, by the names that the specification gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The canonical text of a snapshot.
    pub max_snapshot_bytes: usize,
    /// Nesting of the policy input, and of everything that comes from outside.
    pub max_policy_input_depth: usize,
    /// Annotators of one point.
    pub max_annotators_per_point: usize,
    /// The canonical text of what one annotator says.
    pub max_annotator_output_bytes: usize,
    /// The canonical text of what a policy says.
    pub max_policy_output_bytes: usize,
    /// Manifests that extend one another.
    pub max_extends_depth: usize,
    /// The canonical text of a manifest with everything that it extends.
    pub max_merged_manifest_bytes: usize,
    /// A manifest or a bundle from an address.
    pub max_manifest_url_bytes: usize,
    /// How long one address may take.
    pub manifest_url_timeout: Duration,
    /// How often an address may send us on.
    pub max_manifest_url_redirects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_snapshot_bytes: 1 << 20,
            max_policy_input_depth: 64,
            max_annotators_per_point: 16,
            max_annotator_output_bytes: 256 << 10,
            max_policy_output_bytes: 256 << 10,
            max_extends_depth: 16,
            max_merged_manifest_bytes: 1 << 20,
            max_manifest_url_bytes: 1 << 20,
            manifest_url_timeout: Duration::from_secs(30),
            max_manifest_url_redirects: 5,
        }
    }
}

/// How many arrays and objects stand one in another.
pub(crate) fn depth(value: &Json) -> usize {
    match value {
        Json::Array(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
        Json::Object(members) => {
            let below = members.iter().map(|(_, value)| depth(value));
            1 + below.max().unwrap_or(0)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_count_scalars_do_not() {
        let depth =
            |text: &[u8]| depth(&Json::admit(text, &countersign_canon::Limits::plan()).unwrap());
        assert_eq!(depth(b"1"), 0);
        assert_eq!(depth(b"{}"), 1);
        assert_eq!(depth(b"[[],{\"a\":[1]}]"), 3);
    }
}
