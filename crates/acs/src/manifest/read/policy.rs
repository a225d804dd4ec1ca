//! Definitions of policies.

use countersign_canon::Json;
use countersign_policy::manifest::{Named, Section, segment};

use super::{kind, said};
use crate::manifest::extends;
use crate::manifest::model::{self, CedarPolicy, CustomPolicy, Policy, RegoPolicy, TestPolicy};
use crate::manifest::pin::{self, Pinned};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Rego,
    Cedar,
    Test,
    Custom,
}

impl Named for Kind {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("rego", Self::Rego),
        ("cedar", Self::Cedar),
        ("test", Self::Test),
        ("custom", Self::Custom),
    ];
}

pub(super) fn read(parent: &mut Section<'_, '_>, name: &str) -> Option<Policy> {
    let members = parent.value(name).and_then(Json::as_object);
    let mut section = parent.section(name);
    let fields = |known: &[&str]| members.map(|members| model::others(members, known));
    match kind::<Kind>(&mut section)? {
        Kind::Rego => {
            let mut policy = rego(&mut section);
            policy.fields = fields(REGO)?;
            Some(Policy::Rego(policy))
        }
        Kind::Cedar => Some(Policy::Cedar(cedar(section))),
        Kind::Test => Some(Policy::Test(TestPolicy {
            fields: fields(&["type"])?,
        })),
        Kind::Custom => {
            if section.value("adapter").is_none() {
                section.note("/adapter", "missing");
            }
            Some(Policy::Custom(CustomPolicy {
                adapter: said(&mut section, "adapter")?,
                fields: fields(&["type", "adapter"])?,
            }))
        }
    }
}

fn rego(section: &mut Section<'_, '_>) -> RegoPolicy {
    for field in CEDAR_ONLY {
        if section.value(field).is_some() {
            section.note(&segment(field), "belongs to policies in Cedar only");
        }
    }
    let bundle_url = match section.value("bundle_url") {
        None => None,
        Some(Json::Object(members)) => extends::pinned(section, "/bundle_url", members),
        Some(_) => {
            section.note("/bundle_url", "expected an object with `url` and `sha256`");
            None
        }
    };
    // SECURITY: whoever writes the bundle writes the verdict; so an address is known by its bytes.
    if let Some(entry) = &bundle_url {
        if entry.digest.is_none() {
            section.note("/bundle_url", "needs its `sha256` or `integrity`");
        }
        if let Err(problem) = pin::address(&entry.reference, None) {
            section.note("/bundle_url/url", problem);
        }
    }
    if bundle_url.is_some() && section.value("bundle").is_some() {
        section.note("", "must not have both `bundle` and `bundle_url`");
    }
    let mut data = Vec::new();
    for name in ["data", "data_paths"] {
        let paths = section.one_or_each(name, |path| Ok::<_, String>(path.to_owned()));
        data.extend(paths);
    }
    RegoPolicy {
        query: said(section, "query"),
        bundle: said(section, "bundle"),
        bundle_url: bundle_url.map(|entry| Pinned {
            url: entry.reference,
            digest: entry.digest,
        }),
        data,
        fields: Default::default(),
    }
}

fn cedar(section: Section<'_, '_>) -> CedarPolicy {
    let mut section = section.only(CEDAR);
    let sources = ["policy_set", "policy_path"].map(|name| section.value(name).is_some());
    if sources[0] == sources[1] {
        section.note("", "expected exactly one of `policy_set` and `policy_path`");
    }
    let query = section.value("query");
    if query.is_some_and(|query| query.as_object().is_none()) {
        section.note("/query", "expected an object");
    }
    CedarPolicy {
        policy_set: said(&mut section, "policy_set"),
        policy_path: said(&mut section, "policy_path"),
        entities_path: said(&mut section, "entities_path"),
        schema_path: said(&mut section, "schema_path"),
        query: query.and_then(Json::as_object).cloned(),
    }
}

const REGO: &[&str] = &[
    "type",
    "query",
    "bundle",
    "bundle_url",
    "data",
    "data_paths",
];
const CEDAR_ONLY: [&str; 4] = ["policy_set", "policy_path", "entities_path", "schema_path"];
const CEDAR: &[&str] = &[
    "type",
    "policy_set",
    "policy_path",
    "entities_path",
    "schema_path",
    "query",
];
