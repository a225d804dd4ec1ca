//! Values that stand in manifests under a name.

use super::model::{Approval, OnTaint, Schema, SideEffect};

/// The names of a type's values, in manifests and in messages.
pub trait Named: Copy + PartialEq + 'static {
    /// Every name with its value.
    const NAMES: &'static [(&'static str, Self)];

    /// The value of a name.
    fn from_name(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        names
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    /// The name of a value, if it has one.
    fn name(self) -> Option<&'static str> {
        let mut names = Self::NAMES.iter();
        names
            .find(|(_, value)| *value == self)
            .map(|(name, _)| *name)
    }
}

impl Named for Schema {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("aegis.dev/manifest/v0.1", Self::Aegis),
        ("countersign/manifest/v1", Self::Countersign),
    ];
}

impl Named for SideEffect {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("read", Self::Read),
        ("mutate-local", Self::MutateLocal),
        ("mutate-external", Self::MutateExternal),
        ("network-egress", Self::NetworkEgress),
        ("unknown", Self::Unknown),
    ];
}

impl Named for OnTaint {
    const NAMES: &'static [(&'static str, Self)] = &[("deny", Self::Deny), ("hold", Self::Hold)];
}

/// Silence has no name.
impl Named for Approval {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("required", Self::Required),
        ("not-required", Self::NotRequired),
    ];
}
