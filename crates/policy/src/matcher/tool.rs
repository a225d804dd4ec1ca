//! Tool names: which ones are special, and which declaration covers which call.
//!
//! What *restricts* (is this a network tool, a sink?) ignores ASCII case, so that `EXEC` gains
//! nothing over `exec`. What *grants* (is this tool declared?) is exact.

use crate::manifest::{Manifest, Tool};

/// Whether calls of this tool leave for the network: `mcp.http`, `mcp.https`, `net`, and whatever
/// follows one of them after a dot.
pub fn is_network_tool(name: &str) -> bool {
    NETWORK.iter().any(|prefix| is_dotted(name, prefix))
}

/// Whether calls of this tool run programs: `exec`, and whatever follows it after a dot.
pub fn is_exec_tool(name: &str) -> bool {
    is_dotted(name, EXEC)
}

/// Whether the name alone marks the tool as a high-risk sink: it begins like one.
///
/// FAIL-CLOSED: no end of a word is asked for. `execute_command` runs programs, and that
/// `executive_summary` does not is for the manifest to say (`sink: false`).
pub fn is_sink(name: &str) -> bool {
    SINKS
        .iter()
        .any(|prefix| strip_prefix(name, prefix).is_some())
}

/// Whether a declaration of `entry` covers a call of `called`: the same name, or, for network and
/// exec tools, a name that goes on after a dot.
pub fn covers(entry: &str, called: &str) -> bool {
    match called.strip_prefix(entry) {
        Some("") => true,
        Some(rest) => rest.starts_with('.') && (is_network_tool(entry) || is_exec_tool(entry)),
        None => false,
    }
}

/// The most specific declaration that covers a call, with the name it stands under.
pub fn declared<'m>(called: &str, manifest: &'m Manifest) -> Option<(&'m str, &'m Tool)> {
    let tools = &manifest.permissions().tools;
    dotted_prefixes(called)
        .filter_map(|prefix| tools.get_key_value(prefix))
        .find(|(entry, _)| covers(entry, called))
        .map(|(entry, tool)| (entry.as_str(), tool))
}

/// The name itself, then what is left when its last dotted part goes, and so on.
fn dotted_prefixes(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |longer| {
        longer.rsplit_once('.').map(|(prefix, _)| prefix)
    })
}

fn is_dotted(name: &str, prefix: &str) -> bool {
    strip_prefix(name, prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn strip_prefix<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    let (head, rest) = name.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

const NETWORK: &[&str] = &["mcp.http", "mcp.https", "net"];
const EXEC: &str = "exec";

const SINKS: &[&str] = &[
    "exec",
    "write_file",
    "fs.write",
    "db.write",
    "database.write",
    "net.post",
    "net.put",
    "net.patch",
    "net.delete",
    "mcp.http.post",
    "mcp.http.put",
    "mcp.http.patch",
    "mcp.http.delete",
    "mcp.https.post",
    "mcp.https.put",
    "mcp.https.patch",
    "mcp.https.delete",
];

#[cfg(test)]
mod tests;
