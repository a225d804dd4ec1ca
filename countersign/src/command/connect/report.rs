//! What is said about files and their servers.

use std::path::{Path, PathBuf};

use countersign_canon::Json;

use super::client::Client;
use super::file::Target;
use super::plan::Plan;
use crate::output::{inline, option, visible};

/// One line a server.
pub(super) fn servers(planned: &[(Target, Plan)], released: bool) -> String {
    let mut lines = Vec::new();
    for (_, plan) in planned {
        for change in &plan.changes {
            let name = named(&change.server, change.project.as_deref());
            lines.push(match released {
                false => format!("✓ {name}: through countersign"),
                true => format!("✗ {name}: not guarded from now on"),
            });
        }
        for left in &plan.left {
            let name = named(&left.server, left.project.as_deref());
            lines.push(match left.reason.objection() {
                None => format!("✓ {name}: through countersign already"),
                // It may be guarded as well as it would be by us.
                Some(reason) if left.reason.is_otherwise() => {
                    format!(
                        "✗ {name}: through countersign otherwise, {}",
                        inline(&reason)
                    )
                }
                Some(reason) => format!("✗ {name}: not guarded, {}", inline(&reason)),
            });
        }
    }
    match lines.is_empty() {
        true => "there are no servers".to_owned(),
        false => lines.join("\n"),
    }
}

/// What was done, and what comes next.
pub(super) fn ending(
    planned: &[(Target, Plan)],
    written: bool,
    now: Now,
    back: &str,
    data: &str,
) -> String {
    let otherwise = planned.iter().flat_map(|(_, plan)| &plan.left);
    let otherwise = otherwise.filter(|left| left.reason.is_otherwise());
    let otherwise: Vec<_> = otherwise
        .map(|left| option("--server", &left.server))
        .collect();
    let anew = match otherwise.is_empty() {
        true => String::new(),
        false => format!(
            "\n\nnext: take countersign out where it was put in otherwise, then connect again\n  {back} {}",
            otherwise.join(" ")
        ),
    };
    if !written {
        return visible(&format!("\nnothing was written{anew}"));
    }
    let files = planned.iter().filter(|(_, plan)| !plan.changes.is_empty());
    let files = files.map(|(target, _)| {
        let backup = target.backup();
        match backup.exists() {
            true => format!(
                "wrote {}\n  backup {}\n",
                target.path.display(),
                backup.display()
            ),
            false => format!("wrote {}\n", target.path.display()),
        }
    });
    let next = match now {
        Now::Undone => format!("next: restart the client, then\n  {back}"),
        Now::Held => format!(
            "from now on calls wait for a human, unless somebody has said that their tool only reads\n\
             {}  countersign tools review{data}\n  {back}",
            deciding(data)
        ),
        Now::Declared => format!(
            "from now on what the manifest does not declare is denied\n{}  {back}",
            deciding(data)
        ),
    };
    visible(&format!("\n{}\n{next}{anew}", files.collect::<String>()))
}

/// What becomes of calls when the client has started anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Now {
    /// Nobody decides about them.
    Undone,
    /// Somebody is asked, because there is no manifest.
    Held,
    /// A manifest says which may run.
    Declared,
}

/// Who can decide about calls that wait, and where.
fn deciding(data: &str) -> String {
    format!(
        "next:\n  countersign approver init{data}\n  restart the client\n  countersign approval watch{data}\n"
    )
}

/// The same for programs.
pub(super) fn json(client: Client, planned: &[(Target, Plan)], written: bool) -> Json {
    let files = planned.iter().map(|(target, plan)| {
        let changes = plan.changes.iter().map(|change| {
            let args = change.args.iter().map(|word| Json::from(word.as_str()));
            Json::object([
                ("server", Json::from(change.server.as_str())),
                ("project", Json::from(change.project.as_deref())),
                ("command", Json::from(change.command.as_str())),
                ("args", Json::from(args.collect::<Vec<_>>())),
            ])
        });
        let left = plan.left.iter().map(|left| {
            let objection = left.reason.objection();
            let guarded = objection.is_none();
            let reason = objection.unwrap_or_else(|| "it goes through countersign already".into());
            Json::object([
                ("server", Json::from(left.server.as_str())),
                ("project", Json::from(left.project.as_deref())),
                ("guarded", Json::from(guarded)),
                ("reason", Json::from(reason)),
            ])
        });
        let wrote = written && !plan.changes.is_empty();
        Json::object([
            ("file", path(&target.path)),
            ("written", Json::from(wrote)),
            (
                "backup",
                Json::from(
                    Some(target.backup())
                        .filter(|backup| backup.exists())
                        .map(|backup| path(&backup)),
                ),
            ),
            ("changes", Json::from(changes.collect::<Vec<_>>())),
            ("left", Json::from(left.collect::<Vec<_>>())),
        ])
    });
    Json::object([
        ("client", Json::from(client.name())),
        ("files", Json::from(files.collect::<Vec<_>>())),
    ])
}

pub(super) fn not_restored(files: &[&Path]) -> String {
    match files.is_empty() {
        true => "nothing to undo".to_owned(),
        false => "\nnothing was written".to_owned(),
    }
}

/// The files, each with its backup if that was not brought back.
pub(super) fn restored(files: &[(&PathBuf, Option<PathBuf>)]) -> String {
    let lines = files.iter().map(|(file, backup)| match backup {
        None => format!("restored {}\n", file.display()),
        Some(backup) => format!(
            "took countersign out of {}, which was changed since\n  backup {}\n",
            file.display(),
            backup.display()
        ),
    });
    visible(&format!(
        "\n{}\nnext: restart the client",
        lines.collect::<String>()
    ))
}

pub(super) fn restored_json(client: Client, files: &[&Path], written: bool) -> Json {
    let files: Vec<Json> = files.iter().map(|file| path(file)).collect();
    Json::object([
        ("client", Json::from(client.name())),
        ("files", Json::from(files)),
        ("written", Json::from(written)),
    ])
}

fn named(server: &str, project: Option<&str>) -> String {
    match project {
        None => inline(server),
        Some(project) => format!("{} (in {})", inline(server), inline(project)),
    }
}

fn path(path: &Path) -> Json {
    Json::from(path.display().to_string())
}
