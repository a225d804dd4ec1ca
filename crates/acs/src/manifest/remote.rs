//! What a manifest from an address must not carry.
//!
//! Whoever writes such a manifest does not own this machine: it names no file of it, and no secret of
//! its environment, neither by itself nor by what a point lays over its declarations.

use std::collections::BTreeSet;

use countersign_canon::{Json, Object};

use super::ManifestError;
use super::origin::PATHS;

/// What came from addresses, as (section, name).
#[derive(Debug, Default)]
pub(super) struct Remote {
    names: BTreeSet<(&'static str, String)>,
}

impl Remote {
    /// Checks a document and remembers what it defines. `is_pinned` is whether every step of the way
    /// to it is.
    pub(super) fn take(
        &mut self,
        members: &Object,
        document: &str,
        is_pinned: bool,
    ) -> Result<(), ManifestError> {
        for section in ["policies", "annotators"] {
            for (name, fields) in objects(members.get(section)) {
                check(fields, document, &format!("{section}.{name}"))?;
                if fields.contains_key("bundle_url") && !is_pinned {
                    return Err(ManifestError::Remote {
                        document: document.to_owned(),
                        place: format!("{section}.{name}.bundle_url"),
                        problem: "the way to this manifest is not pinned",
                    });
                }
                self.names.insert((section, name.to_owned()));
            }
        }
        bindings(members, |place, _, _, fields| {
            check(fields, document, &place)
        })
    }

    /// Checks the merged document: what lies over a declaration from an address is as bound as that.
    pub(super) fn check_overlaid(&self, merged: &Object) -> Result<(), ManifestError> {
        bindings(merged, |place, section, name, fields| {
            match self.names.contains(&(section, name.to_owned())) {
                true => check(fields, "the manifest", &place),
                false => Ok(()),
            }
        })
    }
}

/// Every binding of a policy and of an annotator, with its place and what it lies over.
fn bindings(
    members: &Object,
    mut visit: impl FnMut(String, &'static str, &str, &Object) -> Result<(), ManifestError>,
) -> Result<(), ManifestError> {
    for (point, config) in objects(members.get("intervention_points")) {
        if let Some(Json::Object(policy)) = config.get("policy") {
            let id = policy.get("id").and_then(Json::as_str).unwrap_or_default();
            let place = format!("intervention_points.{point}.policy");
            visit(place, "policies", id, policy)?;
        }
        for (name, fields) in objects(config.get("annotations")) {
            let place = format!("intervention_points.{point}.annotations.{name}");
            visit(place, "annotators", name, fields)?;
        }
    }
    Ok(())
}

fn objects(section: Option<&Json>) -> impl Iterator<Item = (&str, &Object)> {
    let members = section.and_then(Json::as_object);
    members
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name, value.as_object()?)))
}

fn check(fields: &Object, document: &str, place: &str) -> Result<(), ManifestError> {
    let found = fields.iter().find_map(|(name, _)| {
        let problem = match name {
            _ if PATHS.contains(&name) => "it names a file of this machine",
            "api_key_env" => SECRET,
            _ if name.starts_with("aws_") && name.ends_with("_env") => SECRET,
            _ => return None,
        };
        Some((name, problem))
    });
    match found {
        None => Ok(()),
        Some((name, problem)) => Err(ManifestError::Remote {
            document: document.to_owned(),
            place: format!("{place}.{name}"),
            problem,
        }),
    }
}

const SECRET: &str = "it names a secret of this machine";
