//! The forms in which exec tools take their command.

use countersign_canon::Json;

use super::line::Word;
use super::{Invocation, Unclear, nested};

/// A command as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::matcher) enum Given<'a> {
    /// A shell line.
    Line(&'a str),
    /// A program and its arguments.
    Words(Vec<String>),
}

impl<'a> Given<'a> {
    pub(in crate::matcher) fn of(args: &'a Json) -> Result<Self, Unclear> {
        check_surroundings(args)?;
        let mut named = NAMES.iter().filter_map(|name| args.get(name));
        let command = named.next().ok_or(Unclear::Missing)?;
        if named.next().is_some() {
            return Err(Unclear::Several);
        }
        let rest = args.get("args").map(words).transpose()?;
        match (command, rest) {
            (Json::String(binary), rest) if args.get("bin").is_some() => {
                with(binary, rest.unwrap_or_default()).map(Self::Words)
            }
            (Json::String(line), None) => Ok(Self::Line(line)),
            (Json::String(binary), Some(rest)) => beside(binary, rest).map(Self::Words),
            (Json::Array(_), None) if args.get("bin").is_none() => words(command).map(Self::Words),
            (Json::Array(_), Some(_)) => Err(Unclear::Several),
            _ => Err(Unclear::NotText),
        }
    }
}

pub(super) fn read(args: &Json) -> Result<Vec<Invocation>, Unclear> {
    match Given::of(args)? {
        Given::Line(line) => nested::line(line),
        Given::Words(words) => {
            nested::words(words.iter().map(|word| Word::literal(word)).collect())
        }
    }
}

/// `command` next to `args`: some tools run the words as they are, some hand them to a shell.
/// FAIL-CLOSED: both have to give the same words.
fn beside(binary: &str, rest: Vec<String>) -> Result<Vec<String>, Unclear> {
    let words = with(binary, rest)?;
    match words.iter().all(|word| is_plain(word)) {
        true => Ok(words),
        false => Err(Unclear::Syntax),
    }
}

/// FAIL-CLOSED: variables such as `PATH` and `LD_PRELOAD` decide what a name runs, and an argument
/// that was not read may hold the command that runs.
fn check_surroundings(args: &Json) -> Result<(), Unclear> {
    let is_set = |name: &&str| match args.get(name) {
        None | Some(Json::Null | Json::Bool(false)) => false,
        Some(Json::Object(members)) => !members.is_empty(),
        Some(Json::Array(elements)) => !elements.is_empty(),
        Some(_) => true,
    };
    let members = args.as_object().into_iter().flatten();
    // `CMD` and `Env` too: some tools do not tell large letters from small ones.
    let changes = |name: &&str| {
        let lower = name.to_ascii_lowercase();
        let is_respelt = NAMES.contains(&lower.as_str()) && lower != **name;
        is_respelt || SURROUNDINGS.contains(&lower.as_str())
    };
    let mut named = members.map(|(name, _)| name).filter(changes);
    match named.any(|name| is_set(&name)) {
        true => Err(Unclear::Surroundings),
        false => Ok(()),
    }
}

fn with(binary: &str, rest: Vec<String>) -> Result<Vec<String>, Unclear> {
    let mut words = vec![word(binary)?];
    words.extend(rest);
    Ok(words)
}

fn words(list: &Json) -> Result<Vec<String>, Unclear> {
    let list = list.as_array().ok_or(Unclear::NotText)?;
    list.iter()
        .map(|element| word(element.as_str().ok_or(Unclear::NotText)?))
        .collect()
}

fn word(text: &str) -> Result<String, Unclear> {
    match text {
        _ if text.len() > nested::LONGEST => Err(Unclear::TooLong),
        _ if text.contains('\0') => Err(Unclear::Character),
        _ => Ok(text.to_owned()),
    }
}

/// Text that a shell leaves alone, wherever it stands.
fn is_plain(text: &str) -> bool {
    let is_active = |c: char| c.is_whitespace() || c.is_control() || ACTIVE.contains(c);
    !text.is_empty() && !text.contains(is_active)
}

pub(super) const NAMES: &[&str] = &["bin", "cmd", "command"];
/// Names under which other tools take a shell, an environment, or one more command or argument.
const SURROUNDINGS: &[&str] = &[
    "env",
    "environment",
    "environ",
    "envs",
    "env_vars",
    "shell",
    "argv",
    "arguments",
    "parameters",
    "params",
    "script",
    "code",
    "run",
    "commands",
    "command_line",
    "commandline",
    "cmdline",
    "interpreter",
    "executable",
    "program",
    "binary",
];
const ACTIVE: &str = ";&|<>()$`\\\"'*?[]{}~#!^%";
