//! Reading what people hand to a command.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign_canon::{BoundedReadError, Json, Limits, read_bounded};
use countersign_engine::BesideFile;

use crate::errors::{Code, Failure};

/// A JSON argument: the text itself, `@FILE`, or `-` for standard input. Never holds more than the
/// limit in memory.
pub(crate) fn json_argument(argument: &str) -> Result<Json, Failure> {
    json_argument_within(argument, &Limits::event())
}

/// As [`json_argument`], with other limits.
pub(crate) fn json_argument_within(argument: &str, limits: &Limits) -> Result<Json, Failure> {
    let bytes = match argument.strip_prefix('@') {
        Some(path) => {
            let file = File::open(path).map_err(|error| unreadable(path, &error))?;
            read_bounded(file, limits.max_bytes).map_err(|error| bounded(path, error))?
        }
        None if argument == "-" => read_bounded(io::stdin().lock(), limits.max_bytes)
            .map_err(|error| bounded("standard input", error))?,
        None => return Ok(Json::admit(argument.as_bytes(), limits)?),
    };
    Ok(Json::admit(&bytes, limits)?)
}

/// A stream of lines: a file, or `-` for standard input.
pub(crate) fn lines(path: &str) -> Result<Box<dyn BufRead + Send>, Failure> {
    if path == "-" {
        return Ok(Box::new(BufReader::with_capacity(BUFFER, io::stdin())));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(Box::new(BufReader::with_capacity(BUFFER, file)))
}

/// The whole of a file, or of standard input for `-`. Never holds more than the limit in memory.
pub(crate) fn file(path: &str, limit: usize) -> Result<Vec<u8>, Failure> {
    if path == "-" {
        return read_bounded(io::stdin().lock(), limit)
            .map_err(|error| bounded("standard input", error));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    whole(file, path, limit)
}

/// The rest of what was opened already.
pub(crate) fn whole(source: impl Read, name: &str, limit: usize) -> Result<Vec<u8>, Failure> {
    read_bounded(source, limit).map_err(|error| bounded(name, error))
}

/// What a path leads to, or `-`, opened once, and how it begins. A pipe cannot be read twice.
pub(crate) fn begun(
    path: &str,
    length: u64,
) -> Result<(Vec<u8>, Box<dyn BufRead + Send>), Failure> {
    let mut source = lines(path)?;
    let mut start = Vec::new();
    let read = source.by_ref().take(length).read_to_end(&mut start);
    read.map_err(|error| unreadable(path, &error))?;
    let source = io::Cursor::new(start.clone()).chain(source);
    Ok((start, Box::new(source)))
}

/// The next line without its end; `None` at the end. Never holds more than the limit in memory.
pub(crate) fn next_line(
    source: &mut dyn BufRead,
    limit: usize,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut line = Vec::new();
    let read = io::Read::take(source, limit as u64 + 2)
        .read_until(b'\n', &mut line)
        .map_err(|error| unreadable("the input", &error))?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > limit {
        return Err(Failure::new(
            Code::TooLarge,
            format!("a line is larger than {limit} bytes"),
        ));
    }
    Ok((read > 0).then_some(line))
}

/// Reads on to the end of the line, and keeps nothing of it.
pub(crate) fn skip_line(source: &mut dyn BufRead) -> Result<(), Failure> {
    source
        .skip_until(b'\n')
        .map(drop)
        .map_err(|error| unreadable("the input", &error))
}

/// An Agent Control manifest that has a say beside the policies.
pub(crate) fn agent_control(path: PathBuf) -> BesideFile {
    BesideFile {
        path,
        load: |path| match countersign_callout::voice(path) {
            Ok(voice) => Ok(Arc::new(voice)),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// `$XDG_DATA_HOME/countersign`, or the usual place for it.
pub(crate) fn default_data_folder() -> Option<PathBuf> {
    user_folder("XDG_DATA_HOME", ".local/share")
}

/// `$XDG_CONFIG_HOME/countersign`, or the usual place for it.
pub(crate) fn default_config_folder() -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config")
}

fn user_folder(variable: &str, usual: &str) -> Option<PathBuf> {
    let folder = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    folder(variable)
        .or_else(|| folder("HOME").map(|home| home.join(usual)))
        .map(|base| base.join("countersign"))
}

pub(crate) fn unreadable(path: &str, error: &io::Error) -> Failure {
    Failure::new(Code::Input, format!("cannot read `{path}`: {error}"))
}

/// Whether `-` stands where a file to write may.
pub(crate) fn to_standard_output(out: &Path) -> bool {
    out == Path::new("-")
}

/// A file that was to be new.
pub(crate) fn uncreated(path: &Path, error: &io::Error) -> Failure {
    let code = match error.kind() {
        io::ErrorKind::AlreadyExists => Code::Exists,
        _ => Code::Output,
    };
    Failure::new(code, format!("cannot create `{}`: {error}", path.display()))
}

fn bounded(path: &str, error: BoundedReadError) -> Failure {
    match error {
        BoundedReadError::Io(error) => unreadable(path, &error),
        error => Failure::new(Code::TooLarge, format!("`{path}` is {error}")),
    }
}

const BUFFER: usize = 1 << 20;

/// Drops what was typed before a question was there: it is no answer to it.
#[cfg(unix)]
pub(crate) fn drop_typed_ahead() -> io::Result<()> {
    let queue = rustix::termios::QueueSelector::IFlush;
    Ok(rustix::termios::tcflush(io::stdin(), queue)?)
}

/// FAIL-CLOSED: where it cannot be dropped, there is no question.
#[cfg(not(unix))]
pub(crate) fn drop_typed_ahead() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
