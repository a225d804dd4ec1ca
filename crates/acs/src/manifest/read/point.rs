//! The configuration of points.

use std::collections::BTreeMap;

use countersign_canon::Json;
use countersign_policy::manifest::{Named, Section, segment};
use countersign_policy::path::{Path, Root, Segment};

use super::{prompt, said};
use crate::Point;
use crate::manifest::model::{self, Annotation, Annotator, Binding, PointConfig, Policy};
use crate::prompts;

/// What a complete manifest defines.
pub(super) struct Known<'a> {
    pub(super) policies: &'a BTreeMap<String, Policy>,
    pub(super) annotators: &'a BTreeMap<String, Annotator>,
}

/// `known` is there if the manifest has to be complete.
pub(super) fn read_all(
    root: &mut Section<'_, '_>,
    known: Option<&Known<'_>>,
) -> BTreeMap<Point, PointConfig> {
    let mut section = root.section("intervention_points");
    let names: Vec<&str> = section.names().collect();
    let mut points = BTreeMap::new();
    for name in &names {
        match name.parse::<Point>() {
            Err(error) => section.note(&segment(name), error),
            Ok(point) => {
                if let Some(config) = read(section.section(name), point, known) {
                    points.insert(point, config);
                }
            }
        }
    }
    if known.is_some() && names.is_empty() {
        root.note("/intervention_points", "at least one point is needed");
    }
    points
}

fn read(section: Section<'_, '_>, point: Point, known: Option<&Known<'_>>) -> Option<PointConfig> {
    let mut section = section.only(&[
        "policy_target",
        "policy_target_kind",
        "tool_name_from",
        "annotations",
        "policy",
    ]);
    let target = section.parsed("policy_target", in_snapshot);
    let target_kind = said(&mut section, "policy_target_kind");
    let tool_name_from = section.parsed("tool_name_from", in_snapshot);
    if section.value("tool_name_from").is_some() && !point.has_tool() {
        section.note("/tool_name_from", "no tool is called at this point");
    }
    let annotations = annotations(section.section("annotations"), known);
    let policy = policy(&mut section, known);
    if known.is_some() {
        for name in ["policy_target", "policy"] {
            if section.value(name).is_none() {
                section.note(&segment(name), "missing");
            }
        }
    }
    Some(PointConfig {
        target: target?,
        target_kind,
        tool_name_from,
        annotations,
        policy: policy?,
    })
}

fn policy(section: &mut Section<'_, '_>, known: Option<&Known<'_>>) -> Option<Binding> {
    let members = section.value("policy")?.as_object();
    let mut section = section.section("policy");
    if members.is_some() && section.value("id").is_none() {
        section.note("/id", "missing");
    }
    let query = said(&mut section, "query");
    let id = said(&mut section, "id")?;
    if let Some(known) = known {
        match known.policies.get(&id) {
            None => section.note("/id", "there is no policy of this name"),
            Some(Policy::Rego(rego)) if query.is_none() && rego.query.is_none() => {
                section.note("/query", "missing, and the policy has none either");
            }
            Some(_) => {}
        }
    }
    Some(Binding {
        id,
        query,
        fields: model::others(members?, &["id", "query"]),
    })
}

fn annotations(
    mut section: Section<'_, '_>,
    known: Option<&Known<'_>>,
) -> BTreeMap<String, Annotation> {
    let mut found = BTreeMap::new();
    for name in section.names().collect::<Vec<_>>() {
        let declared = known.map(|known| known.annotators.get(name));
        if declared == Some(None) {
            section.note(&segment(name), "there is no annotator of this name");
        }
        let members = section.value(name).and_then(Json::as_object);
        let mut one = section.section(name);
        if members.is_some_and(|members| members.contains_key("annotator")) {
            one.note("/annotator", "the name of the annotation is the annotator");
        }
        if members.is_some() && one.value("from").is_none() {
            one.note("/from", "missing");
        }
        let from = one.parsed("from", anywhere);
        if let (Some(from), Some(members)) = (from, members) {
            let fields = overlaid(declared.flatten(), members);
            // What a declaration says alone is looked at where it stands.
            if let Some(annotator) = declared.flatten()
                && prompts::is_said(members)
            {
                prompt(&mut one, annotator.kind, &fields);
            }
            found.insert(name.to_owned(), Annotation { from, fields });
        }
    }
    found
}

/// The declaration with the fields of the point laid over it.
fn overlaid(
    declared: Option<&Annotator>,
    members: &countersign_canon::Object,
) -> countersign_canon::Object {
    let kind = declared.and_then(|annotator| annotator.kind.name());
    let kind = kind.map(|kind| ("type", Json::from(kind)));
    let declared = declared.map(|annotator| &annotator.fields);
    kind.iter()
        .map(|(name, value)| (*name, value))
        .chain(declared.into_iter().flatten())
        .chain(members)
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect()
}

fn in_snapshot(text: &str) -> Result<Path, String> {
    let path: Path = parse(text)?;
    match path.root() {
        Root::Snapshot => Ok(path),
        _ => Err("must lead into the snapshot: `$snap`, `$` or `$.name`".to_owned()),
    }
}

fn anywhere(text: &str) -> Result<Path, String> {
    let path: Path = parse(text)?;
    let first = path.segments().first();
    match (path.root(), first) {
        (Root::Input, Some(Segment::Member(name))) if name == "annotations" => {
            Err("annotators do not see what others said".to_owned())
        }
        _ => Ok(path),
    }
}

fn parse(text: &str) -> Result<Path, String> {
    text.parse()
        .map_err(|error: countersign_policy::path::PathError| error.to_string())
}
