//! From JSON to a manifest, with every fault noted.

mod approval;
mod point;
mod policy;

use std::collections::BTreeMap;

use countersign_canon::{Digest, Json, Object};
use countersign_policy::manifest::{self as common, Named, Problem, Section, segment};

use super::extends::{self, Entry};
use super::model::{self, Annotator, AnnotatorKind, Policy};
use super::{Manifest, ManifestError};
use crate::prompts;

/// What a document of its own says, before anything is merged.
pub(super) struct Overlay {
    pub(super) members: Object,
    pub(super) extends: Vec<Entry>,
}

/// Reads a document that may be a part of a manifest only.
pub(super) fn overlay(source: Json, document: &str) -> Result<Overlay, ManifestError> {
    let mut problems = Vec::new();
    let mut root = Section::root(&source, &mut problems).only(FIELDS);
    let extends = extends::entries(&mut root);
    parts(&mut root, false);
    refuse(problems, document)?;
    Ok(Overlay {
        members: source.into_object().unwrap_or_default(),
        extends,
    })
}

/// Reads a document that is complete.
pub(super) fn whole(source: Json, document: &str) -> Result<Manifest, ManifestError> {
    let mut problems = Vec::new();
    let mut root = Section::root(&source, &mut problems).only(FIELDS);
    if !extends::entries(&mut root).is_empty() {
        root.note(
            "/extends",
            "nothing can be extended here: load the manifest as a file",
        );
    }
    let parts = parts(&mut root, true);
    refuse(problems, document)?;
    Ok(Manifest {
        digest: Digest::of(&source.to_sorted()),
        policies: parts.policies,
        points: parts.points,
        tools: parts.tools,
        annotators: parts.annotators,
        approval: parts.approval,
        source,
    })
}

fn refuse(problems: Vec<Problem>, document: &str) -> Result<(), ManifestError> {
    match problems.is_empty() {
        true => Ok(()),
        false => Err(ManifestError::Document {
            document: document.to_owned(),
            error: common::ManifestError::Invalid(problems),
        }),
    }
}

struct Parts {
    policies: BTreeMap<String, Policy>,
    points: BTreeMap<crate::Point, model::PointConfig>,
    tools: BTreeMap<String, Json>,
    annotators: BTreeMap<String, Annotator>,
    approval: Option<model::Approval>,
}

fn parts(root: &mut Section<'_, '_>, is_whole: bool) -> Parts {
    version(root);
    if let Some(metadata) = root.value("metadata")
        && metadata.as_object().is_none()
    {
        root.note("/metadata", "expected an object");
    }
    let policies = named(root, "policies", policy::read);
    let annotators = named(root, "annotators", annotator);
    let tools = named(root, "tools", |parent, name| {
        let fields = parent.value(name).and_then(Json::as_object);
        let fields = fields.map(|fields| model::projected(name, fields));
        parent.section(name);
        fields
    });
    let approval = approval::read(root);
    let known = point::Known {
        policies: &policies,
        annotators: &annotators,
    };
    let points = point::read_all(root, is_whole.then_some(&known));
    Parts {
        policies,
        points,
        tools,
        annotators,
        approval,
    }
}

fn version(root: &mut Section<'_, '_>) {
    let version = root.required_text("agent_control_specification_version");
    if !version.is_empty() && !VERSIONS.contains(&version.as_str()) {
        let known = VERSIONS.join("`, `");
        root.note(
            "/agent_control_specification_version",
            format!("unsupported, expected one of `{known}`"),
        );
    }
}

/// Everything of a section, by name.
fn named<'j, T>(
    root: &mut Section<'j, '_>,
    name: &str,
    read: impl Fn(&mut Section<'j, '_>, &str) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut section = root.section(name);
    let mut found = BTreeMap::new();
    for name in section.names().collect::<Vec<_>>() {
        if name.trim().is_empty() {
            section.note(&segment(name), "a name must not be blank");
        }
        if let Some(value) = read(&mut section, name) {
            found.insert(name.to_owned(), value);
        }
    }
    found
}

fn annotator(parent: &mut Section<'_, '_>, name: &str) -> Option<Annotator> {
    let fields = parent.value(name).and_then(Json::as_object);
    let mut section = parent.section(name);
    let kind = kind::<AnnotatorKind>(&mut section)?;
    prompt(&mut section, kind, fields?);
    Some(Annotator {
        kind,
        fields: model::others(fields?, &["type"]),
    })
}

/// Notes what is wrong with the prompt of a model.
fn prompt(section: &mut Section<'_, '_>, kind: AnnotatorKind, fields: &Object) {
    let objection = (kind == AnnotatorKind::Llm).then(|| prompts::objection(fields));
    if let Some((field, problem)) = objection.flatten() {
        let at = match field {
            "" => String::new(),
            field => segment(field),
        };
        section.note(&at, problem);
    }
}

/// The `type`, which has to be there.
fn kind<T: Named>(section: &mut Section<'_, '_>) -> Option<T> {
    if section.value("type").is_none() {
        section.note("/type", "missing");
    }
    section.choice("type")
}

/// A text that is more than white space.
fn said(section: &mut Section<'_, '_>, name: &str) -> Option<String> {
    let text = section.text(name)?;
    if text.trim().is_empty() {
        section.note(&segment(name), "must not be blank");
        return None;
    }
    Some(text.to_owned())
}

const FIELDS: &[&str] = &[
    "agent_control_specification_version",
    "metadata",
    "extends",
    "policies",
    "intervention_points",
    "tools",
    "annotators",
    "approval",
];

const VERSIONS: &[&str] = &[
    "0.3.1-beta",
    "0.3.1-beta-agt",
    "0.3.0-alpha",
    "0.3.0-alpha-agt",
];
