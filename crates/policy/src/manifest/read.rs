//! From JSON to a manifest: every field by its type, every fault noted.

mod permissions;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use countersign_canon::{Digest, Json, Object};

use super::Manifest;
use super::error::{ManifestError, Problem};
use super::integrity::check_path;
use super::model::{Integrity, Loops, Permissions, Sandbox, Schema};
use super::named::Named;
use super::pointer::segment;
use super::section::Section;
use crate::matcher;
use countersign_canon::Quoted;

/// How much a manifest has to say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Everything that a manifest needs.
    Whole,
    /// Whatever it likes.
    Partial,
}

pub(super) fn whole(source: &Json) -> Result<Manifest, ManifestError> {
    read(source, source, Extent::Whole)
}

pub(super) fn partial(source: &Json) -> Result<Manifest, ManifestError> {
    match source {
        Json::Null => read(source, &Json::Object(Object::new()), Extent::Partial),
        _ => read(source, source, Extent::Partial),
    }
}

fn read(source: &Json, document: &Json, extent: Extent) -> Result<Manifest, ManifestError> {
    let digest = Digest::of(&source.to_jcs()?);
    let mut problems = Vec::new();
    let root = Section::root(document, &mut problems);
    if !root.is_object() {
        return Err(ManifestError::Invalid(problems));
    }
    let manifest = fields(root, extent, source, digest);
    let is_read = |problem: &Problem| !problem.pointer().starts_with("/sandbox");
    if extent == Extent::Whole && problems.iter().all(is_read) {
        problems.extend(sandbox_problem(&manifest));
    }
    match problems.is_empty() {
        true => Ok(manifest),
        false => Err(ManifestError::Invalid(problems)),
    }
}

fn fields(mut root: Section<'_, '_>, extent: Extent, source: &Json, digest: Digest) -> Manifest {
    let schema = schema(&mut root, extent);
    let mut root = root.only(known(schema));
    let mut text = |name| match extent {
        Extent::Whole => root.required_text(name),
        Extent::Partial => root.text(name).unwrap_or_default().to_owned(),
    };
    Manifest {
        source: source.clone(),
        digest,
        schema,
        name: text("name"),
        version: text("version"),
        publisher: text("publisher"),
        permissions: permissions::read(root.section("permissions"), schema, extent),
        loops: loops(root.section("loops")),
        sandbox: sandbox(root.section("sandbox")),
        integrity: integrity(root.section("integrity")),
    }
}

/// A schema that is not known is read as ours, which lets more faults be found than a stop.
fn schema(root: &mut Section<'_, '_>, extent: Extent) -> Schema {
    match (root.value("schema"), extent) {
        (None, Extent::Partial) => Schema::Aegis,
        (None, Extent::Whole) => {
            let names: Vec<&str> = Schema::NAMES.iter().map(|(name, _)| *name).collect();
            root.note(
                "/schema",
                format!("missing, expected `{}`", names.join("` or `")),
            );
            Schema::Countersign
        }
        (Some(_), _) => root.choice("schema").unwrap_or(Schema::Countersign),
    }
}

fn known(schema: Schema) -> &'static [&'static str] {
    match schema {
        Schema::Aegis => &[
            "schema",
            "name",
            "version",
            "publisher",
            "permissions",
            "sandbox",
            "integrity",
        ],
        Schema::Countersign => &[
            "schema",
            "name",
            "version",
            "publisher",
            "permissions",
            "loops",
            "sandbox",
            "integrity",
        ],
    }
}

fn loops(section: Section<'_, '_>) -> Loops {
    let mut section = section.only(&[
        "identical_calls",
        "no_progress_steps",
        "sequence_min",
        "sequence_max",
        "polling_tools",
    ]);
    let default = Loops::default();
    let mut count = |name, default| match section.count(name).map(u32::try_from) {
        None => default,
        Some(Ok(count)) => count,
        Some(Err(_)) => {
            section.note(&segment(name), "too large");
            default
        }
    };
    let loops = Loops {
        identical_calls: count("identical_calls", default.identical_calls),
        no_progress_steps: count("no_progress_steps", default.no_progress_steps),
        sequence_min: count("sequence_min", default.sequence_min),
        sequence_max: count("sequence_max", default.sequence_max),
        polling_tools: names(&mut section, "polling_tools"),
    };
    check_loops(&loops, &mut section);
    loops
}

fn check_loops(loops: &Loops, section: &mut Section<'_, '_>) {
    if loops.identical_calls == 1 {
        section.note("/identical_calls", "must be 0 (off) or at least 2");
    }
    if loops.sequence_max > 0 && loops.sequence_max < loops.sequence_min {
        section.note(
            "/sequence_max",
            "must be 0 (off) or at least `sequence_min`",
        );
    }
    if loops.sequence_max > LONGEST_SEQUENCE {
        section.note(
            "/sequence_max",
            format!("must be at most {LONGEST_SEQUENCE}"),
        );
    }
}

fn sandbox(section: Section<'_, '_>) -> Sandbox {
    let mut section = section.only(&["required", "image", "mounts"]);
    Sandbox {
        required: section.flag("required").unwrap_or_default(),
        image: section.text("image").map(str::to_owned),
        mounts: texts(&mut section, "mounts"),
    }
}

fn integrity(section: Section<'_, '_>) -> Integrity {
    let mut section = section.only(&["files", "tree_sha256", "signature"]);
    Integrity {
        files: files(section.section("files")),
        tree_sha256: section.parsed("tree_sha256", str::parse),
        signature: section.text("signature").map(str::to_owned),
    }
}

fn files(mut section: Section<'_, '_>) -> BTreeMap<String, countersign_canon::Hash> {
    let mut files = BTreeMap::new();
    for path in section.names() {
        if let Err(error) = check_path(path) {
            section.note(&segment(path), error);
        }
        if let Some(hash) = section.parsed(path, str::parse) {
            files.insert(path.to_owned(), hash);
        }
    }
    files
}

fn sandbox_problem(manifest: &Manifest) -> Option<Problem> {
    let effect = match manifest.sandbox.required {
        true => None,
        false => effect(&manifest.permissions),
    }?;
    Some(Problem::new(
        "/sandbox/required".to_owned(),
        format!("must be `true`, because {effect}"),
    ))
}

/// What in the permissions lets tools act on the world.
fn effect(permissions: &Permissions) -> Option<String> {
    let is_effectful = |name: &&String| {
        matcher::is_exec_tool(name) || matcher::is_network_tool(name) || is_fs_write(name)
    };
    let written = permissions.fs.write_roots.as_ref();
    match permissions.tools.keys().find(is_effectful) {
        _ if !permissions.exec.allowed_bins.is_empty() => {
            Some("`/permissions/exec/allowed_bins` is not empty".to_owned())
        }
        _ if written.is_some_and(|roots| !roots.is_empty()) => {
            Some("`/permissions/fs/write_roots` is not empty".to_owned())
        }
        _ if !permissions.net.domains.is_empty() => {
            Some("`/permissions/net/domains` is not empty".to_owned())
        }
        Some(tool) => Some(format!("{} is a tool with effects", Quoted(tool))),
        None => None,
    }
}

fn is_fs_write(name: &str) -> bool {
    name.eq_ignore_ascii_case("fs.write")
}

fn texts(section: &mut Section<'_, '_>, name: &str) -> Vec<String> {
    section
        .each(name, |text| Ok::<_, Infallible>(text.to_owned()))
        .unwrap_or_default()
}

fn names(section: &mut Section<'_, '_>, name: &str) -> BTreeSet<String> {
    texts(section, name).into_iter().collect()
}

/// Sequences longer than this are not looked for.
const LONGEST_SEQUENCE: u32 = 16;
