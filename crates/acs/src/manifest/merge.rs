//! Several documents as one: additive, and nothing is overridden.

use countersign_canon::{Json, Limits, Object};
use countersign_policy::manifest as common;

use super::read::{self, Overlay};
use super::{Manifest, ManifestError};

/// Reads one document, JSON or YAML.
pub(super) fn document(text: &[u8], name: &str) -> Result<Overlay, ManifestError> {
    let source = common::admit(text, &LIMITS).map_err(|error| ManifestError::Document {
        document: name.to_owned(),
        error,
    })?;
    read::overlay(source, name)
}

pub(super) fn chain(texts: &[&[u8]]) -> Result<Manifest, ManifestError> {
    let mut merged = Object::new();
    for (index, text) in texts.iter().enumerate() {
        let name = match texts.len() {
            1 => "the manifest".to_owned(),
            _ => format!("manifest {}", index + 1),
        };
        let overlay = document(text, &name)?;
        if let Some(entry) = overlay.extends.first() {
            return Err(ManifestError::Extends {
                document: name,
                entry: entry.reference.clone(),
                problem: "nothing can be extended here: load the manifest as a file".to_owned(),
            });
        }
        add(&mut merged, overlay.members, &name)?;
    }
    read::whole(Json::Object(merged), "the manifest")
}

/// Adds a document to what came before it.
pub(super) fn add(merged: &mut Object, document: Object, name: &str) -> Result<(), ManifestError> {
    let conflict = |place: String| ManifestError::Conflict {
        document: name.to_owned(),
        place,
    };
    for (section, value) in document {
        let Some(before) = merged.get_mut(&section) else {
            if section != "extends" {
                merged.insert(section, value);
            }
            continue;
        };
        let merged = match (section.as_str(), before, value) {
            ("metadata", before, value) => join(before, value, usize::MAX),
            ("policies" | "tools" | "annotators", before, value) => join(before, value, 1),
            // A point, its fields, and the annotations among them.
            ("intervention_points", before, value) => points(before, value),
            (_, before, value) => equal(before, &value),
        };
        merged.map_err(|place| conflict(format!("{section}{place}")))?;
    }
    Ok(())
}

/// Adds members that are missing, so many levels deep; others must be equal. The error is the place
/// of a difference.
fn join(before: &mut Json, value: Json, levels: usize) -> Result<(), String> {
    let (Some(levels), Json::Object(before), Json::Object(members)) =
        (levels.checked_sub(1), &mut *before, &value)
    else {
        return equal(before, &value);
    };
    for (name, value) in members {
        match before.get_mut(name) {
            None => drop(before.insert(name.to_owned(), value.clone())),
            Some(before) => {
                join(before, value.clone(), levels).map_err(|place| format!(".{name}{place}"))?;
            }
        }
    }
    Ok(())
}

fn points(before: &mut Json, value: Json) -> Result<(), String> {
    let (Json::Object(before), Json::Object(points)) = (before, value) else {
        return Ok(());
    };
    for (name, value) in points {
        let Some(before) = before.get_mut(&name) else {
            before.insert(name, value);
            continue;
        };
        let (Json::Object(before), Json::Object(fields)) = (before, value) else {
            continue;
        };
        for (field, value) in fields {
            match before.get_mut(&field) {
                None => drop(before.insert(field, value)),
                Some(before) => {
                    let levels = usize::from(field == "annotations");
                    join(before, value, levels)
                        .map_err(|place| format!(".{name}.{field}{place}"))?;
                }
            }
        }
    }
    Ok(())
}

fn equal(before: &Json, value: &Json) -> Result<(), String> {
    match before == value {
        true => Ok(()),
        false => Err(String::new()),
    }
}

/// Manifests are written by people; these limits are far beyond them.
const LIMITS: Limits = Limits {
    max_bytes: 1 << 20,
    max_depth: 64,
    ..Limits::plan()
};
