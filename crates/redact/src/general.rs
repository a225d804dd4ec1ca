//! Making paths and command lines general: enough to recognise, too little to identify.

use countersign_canon::Json;

use crate::span::GENERAL;
use crate::{Redactor, key};

/// A path by its last part: `/Users/name/file` is `~/**/file`.
pub(crate) fn path(path: &str, redactor: &Redactor) -> String {
    let parts: Vec<&str> = path
        .split(['/', '\\'])
        .filter(|part| !part.is_empty())
        .collect();
    let is_absolute = path.starts_with(['/', '\\']);
    let (root, below) = match parts.as_slice() {
        ["Users" | "home", _, below @ ..] if is_absolute => ("~", below),
        [drive, "Users", _, below @ ..] if drive.ends_with(':') => ("~", below),
        ["root", below @ ..] if is_absolute => ("~", below),
        ["~", below @ ..] => ("~", below),
        [drive, below @ ..] if drive.ends_with(':') => (*drive, below),
        below if is_absolute => ("", below),
        [name] => return redactor.text(name).into_inner(),
        below => ("**", below),
    };
    match below {
        [] if root.is_empty() => "/".to_owned(),
        [] => root.to_owned(),
        [name] if root.is_empty() => format!("/{}", redactor.text(name)),
        [.., name] if root == "**" => format!("**/{}", redactor.text(name)),
        [.., name] => format!("{root}/**/{}", redactor.text(name)),
    }
}

/// A command line with the values of secret flags and variables as `***`, and general paths.
pub(crate) fn command_line(line: &str, redactor: &Redactor) -> String {
    let mut after_secret_flag = false;
    let words = line.split_whitespace().map(|word| {
        let secret = std::mem::replace(&mut after_secret_flag, false);
        match word.split_once('=') {
            Some((name, _)) if is_secret(name) => format!("{name}={GENERAL}"),
            None if secret && !word.starts_with('-') => GENERAL.to_owned(),
            None if word.starts_with('-') && is_secret(word) => {
                after_secret_flag = true;
                word.to_owned()
            }
            _ if is_path(word) => path(word, redactor),
            _ => word.to_owned(),
        }
    });
    let line = words.collect::<Vec<_>>().join(" ");
    redactor.text(&line).into_inner()
}

/// A value with its paths and command lines made general.
pub(crate) fn value(value: &Json, redactor: &Redactor) -> Json {
    match value {
        Json::String(text) if is_path(text) && !text.contains(char::is_whitespace) => {
            Json::from(path(text, redactor))
        }
        Json::Array(items) => Json::Array(
            items
                .iter()
                .map(|item| self::value(item, redactor))
                .collect(),
        ),
        Json::Object(members) => Json::object(members.iter().map(|(name, value)| {
            let value = match value {
                Json::String(line) if is_command(name) => Json::from(command_line(line, redactor)),
                value => self::value(value, redactor),
            };
            (name, value)
        })),
        value => value.clone(),
    }
}

fn is_command(name: &str) -> bool {
    ["command", "cmd", "commandline", "script", "shell"].contains(&key::joined(name).as_str())
}

fn is_secret(name: &str) -> bool {
    key::is_secret(name.trim_start_matches('-'), &[])
}

fn is_path(word: &str) -> bool {
    word.starts_with('/') || word.starts_with("~/") || word.get(1..3) == Some(":\\")
}
