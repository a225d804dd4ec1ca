//! What a policy is asked about: five members, and nothing else.

use std::borrow::Cow;
use std::collections::BTreeMap;

use countersign_canon::{Digest, Hash, Json, Object, jcs};
use countersign_policy::path::{Lost, Path, Root, Segment};
use countersign_policy::rego::{self, to_value};

use crate::limits::depth;
use crate::{Point, PointConfig};

/// The policy input. It borrows the snapshot: nothing is copied to ask.
#[derive(Debug, Clone)]
pub struct Input<'a> {
    pub(crate) point: Point,
    pub(crate) config: &'a PointConfig,
    pub(crate) snapshot: &'a Json,
    /// What is judged: a part of the snapshot.
    pub(crate) target: &'a Json,
    /// The catalog entry of the tool; `null` where there is none.
    pub(crate) tool: &'a Json,
    pub(crate) annotations: Object,
}

impl Input<'_> {
    /// The point.
    pub fn point(&self) -> Point {
        self.point
    }

    /// The snapshot, as the host gave it.
    pub fn snapshot(&self) -> &Json {
        self.snapshot
    }

    /// What is judged.
    pub fn target(&self) -> &Json {
        self.target
    }

    /// What kind of thing is judged.
    pub fn target_kind(&self) -> Option<&str> {
        self.config.target_kind.as_deref()
    }

    /// The catalog entry of the tool; `null` where there is none.
    pub fn tool(&self) -> &Json {
        self.tool
    }

    /// What annotators said, by their names.
    pub fn annotations(&self) -> &Object {
        &self.annotations
    }

    /// As JSON.
    pub fn to_json(&self) -> Json {
        let kind = self.config.target_kind.as_deref();
        Json::object([
            ("annotations", Json::Object(self.annotations.clone())),
            ("intervention_point", self.point.as_str().into()),
            (
                "policy_target",
                Json::object([
                    ("kind", Json::from(kind)),
                    ("path", self.config.target.as_str().into()),
                    ("value", self.target.clone()),
                ]),
            ),
            ("snapshot", self.snapshot.clone()),
            ("tool", self.tool.clone()),
        ])
    }

    /// As a value of Rego. The target is the part of the snapshot, not a copy of it.
    pub fn to_value(&self) -> rego::Value {
        let snapshot = to_value(self.snapshot);
        let target =
            part(&snapshot, self.config.target.segments()).unwrap_or_else(|| to_value(self.target));
        let kind = self.config.target_kind.as_deref();
        object([
            (
                "annotations",
                to_value(&Json::Object(self.annotations.clone())),
            ),
            ("intervention_point", self.point.as_str().into()),
            (
                "policy_target",
                object([
                    ("kind", kind.map_or(rego::Value::Null, Into::into)),
                    ("path", self.config.target.as_str().into()),
                    ("value", target),
                ]),
            ),
            ("snapshot", snapshot),
            ("tool", to_value(self.tool)),
        ])
    }

    /// What a path leads to.
    pub fn resolve(&self, path: &Path) -> Result<Cow<'_, Json>, Lost> {
        let borrowed = match path.root() {
            Root::Snapshot => path.resolve(self.snapshot),
            Root::Target => path.resolve(self.target),
            Root::Tool => path.resolve(self.tool),
            Root::Input => return path.resolve(&self.to_json()).cloned().map(Cow::Owned),
        };
        borrowed.map(Cow::Borrowed)
    }

    /// How deep it is.
    pub(crate) fn depth(&self, snapshot_depth: usize, target_depth: usize) -> usize {
        let annotations = self.annotations.iter().map(|(_, value)| depth(value));
        (1 + snapshot_depth)
            .max(2 + target_depth)
            .max(1 + depth(self.tool))
            .max(2 + annotations.max().unwrap_or(0))
    }

    /// SHA-256 over the canonical text, with this target. The text of the snapshot is at hand.
    pub(crate) fn identity(&self, snapshot: &[u8], target: &Json) -> Digest {
        let mut head = b"{\"annotations\":{".to_vec();
        for (index, (name, value)) in self.annotations.iter().enumerate() {
            if index > 0 {
                head.push(b',');
            }
            jcs::write_string(name, &mut head);
            head.push(b':');
            value.write_sorted(&mut head);
        }
        head.extend_from_slice(b"},\"intervention_point\":\"");
        head.extend_from_slice(self.point.as_str().as_bytes());
        head.extend_from_slice(b"\",\"policy_target\":{\"kind\":");
        match self.config.target_kind.as_deref() {
            Some(kind) => jcs::write_string(kind, &mut head),
            None => head.extend_from_slice(b"null"),
        }
        head.extend_from_slice(b",\"path\":");
        jcs::write_string(self.config.target.as_str(), &mut head);
        head.extend_from_slice(b",\"value\":");
        target.write_sorted(&mut head);
        head.extend_from_slice(b"},\"snapshot\":");
        let mut tail = b",\"tool\":".to_vec();
        self.tool.write_sorted(&mut tail);
        tail.push(b'}');
        Hash::of_parts(&[&head, snapshot, &tail]).to_digest()
    }
}

fn object<const N: usize>(members: [(&str, rego::Value); N]) -> rego::Value {
    let members: BTreeMap<rego::Value, rego::Value> = members
        .into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect();
    members.into()
}

fn part(value: &rego::Value, segments: &[Segment]) -> Option<rego::Value> {
    let found = segments
        .iter()
        .try_fold(value, |place, segment| match segment {
            Segment::Member(name) => place.as_object().ok()?.get(&name.as_str().into()),
            Segment::Element(index) => place.as_array().ok()?.get(*index),
        })?;
    Some(found.clone())
}
