//! Servers in TOML.

use std::ops::Range;

use toml_edit::{Document, Item, TableLike, Value};

use super::entry::{Entry, Found, Kind, Program, Room, Unreadable};

/// Finds the tables `mcp_servers.NAME`.
pub(super) fn read(text: &str) -> Result<Found, Unreadable> {
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().map(|span| span.start);
        Unreadable::new(text, at, error.message())
    })?;
    let mut found = Found::default();
    let Some(servers) = document.get(MEMBER) else {
        return Ok(found);
    };
    let servers = servers.as_table_like().ok_or_else(|| {
        let at = servers.span().map(|span| span.start);
        Unreadable::new(text, at, "`mcp_servers` is not a table")
    })?;
    for (name, item) in servers.iter() {
        found.entries.push(Entry {
            name: name.to_owned(),
            project: None,
            kind: server(text, item),
        });
        let tables = item.as_table_like().into_iter();
        let tables = tables.flat_map(|table| SECRET.into_iter().filter_map(|key| table.get(key)));
        let values = tables.filter_map(Item::as_table_like);
        let values = values.flat_map(TableLike::iter);
        found
            .secrets
            .extend(values.filter_map(|(_, value)| value.span()));
    }
    Ok(found)
}

fn server(text: &str, item: &Item) -> Kind {
    let Some(table) = item.as_table_like() else {
        return Kind::Unclear("it is not a table");
    };
    if table.contains_key("url") {
        return Kind::Remote;
    }
    let Some(command) = table.get("command") else {
        return Kind::Unclear("it has no command");
    };
    let (Some(word), Some(command_at)) = (command.as_str(), command.span()) else {
        return Kind::Unclear("its command is not a text");
    };
    let args = match table.get("args") {
        Some(args) => args_of(text, args),
        None => room_behind(text, item, &command_at).map(|room| (Vec::new(), Vec::new(), room)),
    };
    let env = table.get("env").and_then(|env| env.as_table_like());
    let env = env.into_iter().flat_map(|env| env.iter());
    let env = env.map(|(name, _)| name.to_owned()).collect();
    match args {
        Err(reason) => Kind::Unclear(reason),
        Ok((args, args_at, room)) => Kind::Program(Program {
            command: word.to_owned(),
            command_at,
            args,
            args_at,
            room,
            env,
        }),
    }
}

/// Words, where each stands, and the room before them.
type Args = (Vec<String>, Vec<Range<usize>>, Room);

fn args_of(text: &str, args: &Item) -> Result<Args, &'static str> {
    let list = args.as_array().ok_or("its args are not a list")?;
    let words: Option<Vec<String>> = list
        .iter()
        .map(|word| word.as_str().map(str::to_owned))
        .collect();
    let words = words.ok_or("its args are not all texts")?;
    let start = list.span().ok_or(UNPLACED)?.start + 1;
    let words_at: Option<Vec<Range<usize>>> = list.iter().map(Value::span).collect();
    let words_at = words_at.ok_or(UNPLACED)?;
    let first = words_at.first().map(|word| word.start);
    let at = first.unwrap_or(start);
    // A comment may stand before the first word: what sets the word off is what follows the comment.
    let before = text.get(start..at).unwrap_or_default();
    let blank = before.get(before.trim_ascii_end().len()..);
    let blank = blank.unwrap_or_default();
    let room = Room::inside(at, first.is_some(), blank);
    Ok((words, words_at, room))
}

/// A new key behind the command: on a line of its own, or in the same braces.
fn room_behind(text: &str, server: &Item, command: &Range<usize>) -> Result<Room, &'static str> {
    match server {
        Item::Table(table) if !table.is_dotted() => {
            let rest = text.get(command.end..).unwrap_or_default();
            let line = rest.find('\n').unwrap_or(rest.len());
            let (line, ending) = match rest.get(..line) {
                Some(line) if line.ends_with('\r') => (line.len() - 1, "\r\n"),
                _ => (line, "\n"),
            };
            let start = text.get(..command.start).unwrap_or_default();
            let start = start.rsplit('\n').next().unwrap_or_default();
            let indent = start.len() - start.trim_ascii_start().len();
            let indent = start.get(..indent).unwrap_or_default();
            let before = format!("{ending}{indent}args = ");
            Ok(Room::none(command.end + line, before))
        }
        Item::Value(Value::InlineTable(table)) if !table.is_dotted() => {
            Ok(Room::none(command.end, ", args = ".to_owned()))
        }
        _ => Err("it has no args: add `args = []` behind its command"),
    }
}

const MEMBER: &str = "mcp_servers";
const SECRET: [&str; 3] = ["env", "http_headers", "headers"];
const UNPLACED: &str = "its args cannot be found";
