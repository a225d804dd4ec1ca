//! The approval section.

use std::collections::BTreeMap;

use countersign_canon::Json;
use countersign_policy::manifest::{Section, segment};

use super::{named, said};
use crate::manifest::model::{self, Approval, Resolver};

pub(super) fn read(root: &mut Section<'_, '_>) -> Option<Approval> {
    root.value("approval")?;
    let mut section = root.section("approval").only(&[
        "default_resolver",
        "timeout_seconds",
        "on_timeout",
        "fatigue_threshold",
        "fatigue_window_seconds",
        "resolvers",
    ]);
    let resolvers: BTreeMap<String, Resolver> = named(&mut section, "resolvers", resolver);
    let default_resolver = said(&mut section, "default_resolver");
    if let Some(name) = &default_resolver
        && !resolvers.is_empty()
        && !resolvers.contains_key(name)
    {
        section.note("/default_resolver", "is not one of `resolvers`");
    }
    Some(Approval {
        default_resolver,
        timeout_seconds: positive(&mut section, "timeout_seconds"),
        on_timeout: section.choice("on_timeout"),
        fatigue_threshold: positive(&mut section, "fatigue_threshold"),
        fatigue_window_seconds: positive(&mut section, "fatigue_window_seconds"),
        resolvers,
    })
}

fn resolver(parent: &mut Section<'_, '_>, name: &str) -> Option<Resolver> {
    let fields = parent.value(name).and_then(Json::as_object);
    let mut section = parent.section(name);
    if section.value("type").is_none() {
        section.note("/type", "missing");
    }
    Some(Resolver {
        kind: said(&mut section, "type")?,
        fields: model::others(fields?, &["type"]),
    })
}

fn positive(section: &mut Section<'_, '_>, name: &str) -> Option<u64> {
    let count = section.count(name)?;
    if count == 0 {
        section.note(&segment(name), "must be greater than zero");
        return None;
    }
    Some(count)
}
