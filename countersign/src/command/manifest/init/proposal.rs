//! The manifest that is proposed.

use std::path::Path;

use countersign_canon::Json;

use super::scan::Scan;
use crate::command::manifest::yaml;
use crate::output::inline;

pub(super) fn manifest(folder: &Path, scan: &Scan) -> Json {
    let read = || Json::object([("side_effect", Json::from("read"))]);
    let mut tools = vec![("list_dir", read()), ("read_file", read())];
    let mut fs = vec![("read_roots", texts(&["/workspace"]))];
    if scan.is_calm() {
        tools.push((
            "write_file",
            Json::object([
                ("approval", Json::from("required")),
                ("side_effect", Json::from("mutate-local")),
            ]),
        ));
        fs.push(("write_roots", texts(&["/workspace/output"])));
    }
    Json::object([
        ("schema", Json::from("countersign/manifest/v1")),
        ("name", Json::from(name(folder))),
        ("version", Json::from("0.0.1")),
        ("publisher", Json::from("unknown")),
        (
            "permissions",
            Json::object([("tools", Json::object(tools)), ("fs", Json::object(fs))]),
        ),
        ("sandbox", Json::object([("required", Json::from(true))])),
    ])
}

/// The manifest with what was found, as comments.
pub(super) fn text(manifest: &Json, scan: &Scan) -> String {
    let mut comments = vec![
        "A proposal by `countersign manifest init`. Read it, and the code, before you rely on it."
            .to_owned(),
        format!(
            "{} finding(s) in {} file(s), {} critical; proposed: {}.",
            scan.findings.len(),
            scan.files,
            scan.critical(),
            scan.grant()
        ),
    ];
    let findings = scan.findings.iter().take(MANY);
    comments.extend(findings.map(|finding| format!("  {finding}")));
    if let Some(more @ 1..) = scan.findings.len().checked_sub(MANY) {
        comments.push(format!("  … and {more} more"));
    }
    let cut = scan.cut.iter();
    comments.extend(cut.map(|file| format!("  {file} is too long and was not read to its end")));
    if !scan.skipped.is_empty() {
        comments.push(format!("Not looked into: {}.", scan.skipped.join(", ")));
    }
    if scan.found("network") || scan.found("bare-address") {
        comments.push(
            "For the network: declare a tool such as mcp.https, and its hosts in \
             permissions.net.domains."
                .to_owned(),
        );
    }
    if scan.found("runs-programs") {
        comments.push(
            "For programs: declare exec, and list them in permissions.exec.allowed_bins."
                .to_owned(),
        );
    }
    commented(&comments, manifest)
}

/// A manifest below these lines.
pub(super) fn commented(comments: &[String], manifest: &Json) -> String {
    // SECURITY: a file name must not end its comment.
    let comments = comments
        .iter()
        .map(|line| format!("# {}\n", one_line(line)));
    format!("{}{}\n", comments.collect::<String>(), yaml(manifest))
}

fn one_line(text: &str) -> String {
    inline(text)
}

/// The folder's own name in plain letters.
fn name(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    plain(&name, "skill")
}

/// A name in plain letters, or another one if it has none.
pub(super) fn plain(name: &str, other: &str) -> String {
    let plain: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    match plain.trim_matches('-') {
        "" => other.to_owned(),
        name => name.to_owned(),
    }
}

fn texts(texts: &[&str]) -> Json {
    Json::Array(texts.iter().copied().map(Json::from).collect())
}

/// More findings than anybody reads.
const MANY: usize = 100;
