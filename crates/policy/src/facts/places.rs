//! Where the arguments of a tool name what it touches.

use std::sync::LazyLock;

use crate::manifest::{Pointer, SideEffect, Tool};
use crate::matcher::{is_exec_tool, is_network_tool};

/// The places for one tool: those of its manifest entry, or the usual ones of its kind.
pub(super) struct Places {
    pub(super) hosts: Vec<Pointer>,
    pub(super) hosts_declared: bool,
    pub(super) programs: Vec<Pointer>,
    pub(super) programs_declared: bool,
    pub(super) paths: Vec<Pointer>,
    pub(super) access: Access,
}

/// What a tool does with files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    None,
    Read,
    Write,
}

impl Places {
    /// The members in which network tools usually take their destination.
    pub(super) const USUAL_HOSTS: &'static [&'static str] =
        &["domain", "host", "hostname", "url", "uri", "endpoint"];

    pub(super) fn of(name: &str, tool: Option<&Tool>) -> Self {
        let declared = tool.map(|tool| &tool.arguments);
        let hosts = declared
            .map(|places| places.host.clone())
            .unwrap_or_default();
        let programs = declared
            .map(|places| places.binary.clone())
            .unwrap_or_default();
        let paths = declared
            .map(|places| places.path.clone())
            .unwrap_or_default();
        let access = match (paths.is_empty(), tool.map(|tool| tool.side_effect)) {
            (true, _) => usual_access(name),
            (false, Some(SideEffect::Read)) => Access::Read,
            (false, _) => Access::Write,
        };
        Self {
            hosts_declared: !hosts.is_empty(),
            programs_declared: !programs.is_empty(),
            hosts: or_usual(hosts, is_network_tool(name), &USUAL_HOSTS),
            programs: or_usual(programs, is_exec_tool(name), &NOWHERE),
            paths: or_usual(paths, access != Access::None, &USUAL_PATHS),
            access,
        }
    }
}

fn or_usual(declared: Vec<Pointer>, applies: bool, usual: &[Pointer]) -> Vec<Pointer> {
    match declared.is_empty() && applies {
        true => usual.to_vec(),
        false => declared,
    }
}

/// Names that are known to touch files. A name that is not known touches what its manifest says.
fn usual_access(name: &str) -> Access {
    let name = name.to_ascii_lowercase();
    let one_of = |names: &[&str]| {
        names.iter().any(|known| {
            name.strip_prefix(known)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    if one_of(&[
        "read_file",
        "read_text_file",
        "read_media_file",
        "read_multiple_files",
        "get_file_info",
        "search_files",
        "directory_tree",
        "list_dir",
        "list_directory",
        "list_directory_with_sizes",
        "fs.read",
        "fs.list",
        "fs.stat",
    ]) {
        return Access::Read;
    }
    if one_of(&[
        "write_file",
        "append_file",
        "create_file",
        "edit_file",
        "copy_file",
        "move_file",
        "rename_file",
        "delete_file",
        "remove_file",
        "create_directory",
        "delete_directory",
        "fs",
    ]) {
        return Access::Write;
    }
    Access::None
}

fn pointers(texts: &[&str]) -> Vec<Pointer> {
    texts
        .iter()
        .filter_map(|text| Pointer::parse(text).ok())
        .collect()
}

static NOWHERE: [Pointer; 0] = [];
static USUAL_HOSTS: LazyLock<Vec<Pointer>> = LazyLock::new(|| {
    let pointer = |name: &&str| Pointer::parse(&format!("/{name}")).ok();
    Places::USUAL_HOSTS.iter().filter_map(pointer).collect()
});
static USUAL_PATHS: LazyLock<Vec<Pointer>> = LazyLock::new(|| {
    pointers(&[
        "/path",
        "/file",
        "/file_path",
        "/filename",
        "/filepath",
        "/dir",
        "/directory",
        "/source",
        "/destination",
        "/from",
        "/to",
        "/src",
        "/dst",
        "/old_path",
        "/new_path",
        "/target",
        "/paths",
        "/files",
    ])
});
