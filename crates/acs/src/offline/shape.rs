//! What arguments are made of: hosts, paths and command lines, taken apart as the capability rules
//! do it. Whatever cannot be told is named as such, so that a policy can refuse it.

use std::collections::BTreeSet;

use countersign_canon::Json;
use countersign_policy::matcher::{Command, Effect, Host, NormalPath};

use super::texts::{self, Text};

/// `{hosts, urls, paths, commands, unclear, complete}`: hosts and programs as sorted lists, the others
/// with their places, `unclear` how many could not be told, `complete` whether all are listed.
pub(super) fn look(value: &Json) -> Json {
    let mut found = Found::default();
    let mut texts = 0;
    texts::each(value, &mut |text| {
        texts += 1;
        if !text.is_key {
            found.take(&text);
        }
    });
    found.take_words(value, "");
    let list = |names: BTreeSet<String>| Json::Array(names.into_iter().map(Json::from).collect());
    Json::object([
        ("hosts", list(found.hosts)),
        ("programs", list(found.programs)),
        ("urls", Json::Array(found.urls)),
        ("paths", Json::Array(found.paths)),
        ("commands", Json::Array(found.commands)),
        ("unclear", found.unclear.into()),
        ("complete", (!found.is_cut).into()),
    ])
}

#[derive(Default)]
struct Found {
    hosts: BTreeSet<String>,
    programs: BTreeSet<String>,
    urls: Vec<Json>,
    paths: Vec<Json>,
    commands: Vec<Json>,
    unclear: u64,
    is_cut: bool,
}

impl Found {
    fn take(&mut self, text: &Text<'_>) {
        let name = text.name.to_ascii_lowercase();
        if is_url(text.text) || HOST_NAMES.contains(&name.as_str()) {
            self.url(text);
        } else if is_path(text.text) || PATH_NAMES.contains(&name.as_str()) {
            self.path(text);
        }
        if COMMAND_NAMES.contains(&name.as_str()) {
            let command = Command::from_line(text.text);
            self.command(&text.at, &command, &Effect::of_line(text.text));
        }
    }

    /// `bin` with `args`, or a command as a list of words.
    fn take_words(&mut self, value: &Json, at: &str) {
        match value {
            Json::Object(members) => {
                let in_words = members.contains_key("bin")
                    || COMMAND_NAMES
                        .iter()
                        .any(|name| matches!(members.get(name), Some(Json::Array(_))));
                if in_words {
                    self.command(at, &Command::from_args(value), &Effect::of_args(value));
                }
                for (name, value) in members {
                    let at = format!("{at}{}", countersign_policy::manifest::segment(name));
                    self.take_words(value, &at);
                }
            }
            Json::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.take_words(element, &format!("{at}/{index}"));
                }
            }
            _ => {}
        }
    }

    fn url(&mut self, text: &Text<'_>) {
        let host = Host::from_argument(text.text);
        let fact = match &host {
            Ok(host) => ("host", Json::from(host.to_string())),
            Err(error) => ("unclear", Json::from(error.to_string())),
        };
        self.unclear += u64::from(host.is_err());
        self.hosts.extend(host.map(|host| host.to_string()));
        let fact = Json::object([("at", text.at.as_str().into()), fact]);
        push(&mut self.urls, fact, &mut self.is_cut);
    }

    fn path(&mut self, text: &Text<'_>) {
        let path = NormalPath::from_argument(text.text);
        let fact = match &path {
            Ok(path) => ("path", Json::from(path.as_str())),
            Err(error) => ("unclear", Json::from(error.to_string())),
        };
        self.unclear += u64::from(path.is_err());
        let fact = Json::object([("at", text.at.as_str().into()), fact]);
        push(&mut self.paths, fact, &mut self.is_cut);
    }

    fn command(&mut self, at: &str, command: &Command, effect: &Effect) {
        let programs: Vec<Json> = command.binaries().map(Json::from).collect();
        self.programs.extend(command.binaries().map(str::to_owned));
        let is_unclear = matches!(command, Command::Unclear(_));
        self.unclear += u64::from(is_unclear);
        let effect = match effect {
            Effect::ReadOnly => "read_only",
            Effect::SideEffecting { .. } => "side_effecting",
            Effect::Unknown { .. } => "unknown",
        };
        let fact = Json::object([
            ("at", at.into()),
            ("programs", Json::Array(programs)),
            ("clear", (!is_unclear).into()),
            ("effect", effect.into()),
        ]);
        push(&mut self.commands, fact, &mut self.is_cut);
    }
}

fn push(list: &mut Vec<Json>, fact: Json, is_cut: &mut bool) {
    match list.len() < MOST_FACTS {
        true => list.push(fact),
        false => *is_cut = true,
    }
}

/// Any text with a scheme, or that some readers complete with one.
fn is_url(text: &str) -> bool {
    text.contains("://") || text.starts_with("//") || text.starts_with("\\\\")
}

fn is_path(text: &str) -> bool {
    text.starts_with(['/', '~', '\\'])
        || text == ".."
        || text.starts_with("./")
        || text.starts_with("../")
        || text.contains("/../")
        || text.ends_with("/..")
}

const HOST_NAMES: &[&str] = &[
    "url", "uri", "href", "link", "host", "hostname", "domain", "endpoint", "webhook", "callback",
    "server", "origin", "address", "remote",
];
const PATH_NAMES: &[&str] = &[
    "path",
    "file",
    "filename",
    "filepath",
    "file_path",
    "dir",
    "directory",
    "folder",
    "source",
    "destination",
    "src",
    "dst",
    "cwd",
];
const COMMAND_NAMES: &[&str] = &["cmd", "command", "command_line", "script", "shell"];
const MOST_FACTS: usize = 256;
