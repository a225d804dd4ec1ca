//! Printing. Standard output carries data, standard error everything else.

use std::io::{self, IsTerminal as _, Write as _};

use countersign_canon::Json;
use countersign_display::shell;

use crate::errors::{Code, Failure};

mod pretty;
mod table;
mod visible;
mod yaml;

pub(crate) use pretty::pretty;
pub(crate) use table::Table;
pub(crate) use visible::{inline, option, visible, words};
pub(crate) use yaml::yaml;

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people. May change between versions.
    Text,
    /// For programs: one JSON value, or one a line where a command prints a stream.
    Json,
}

/// Buffered standard output.
pub(crate) fn stdout() -> io::BufWriter<io::StdoutLock<'static>> {
    io::BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// One JSON value on a line of its own, for whoever reads it.
pub(crate) fn json(value: &Json) -> io::Result<()> {
    unless_gone(surely::json(value))
}

/// Lines of text, for whoever reads them.
pub(crate) fn text(text: &str) -> io::Result<()> {
    unless_gone(surely::text(text))
}

/// A reader who does not read on has seen enough. What a command does, and how it exits, is the same then.
fn unless_gone(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// For what is told once: it is an error if nobody reads it.
pub(crate) mod surely {
    use super::{Json, io, stdout};
    use std::io::Write as _;

    /// One JSON value on a line of its own.
    pub(crate) fn json(value: &Json) -> io::Result<()> {
        let mut text = value.to_jcs().map_err(io::Error::other)?;
        text.push(b'\n');
        let mut out = stdout();
        out.write_all(&text)?;
        out.flush()
    }

    /// Lines of text.
    pub(crate) fn text(text: &str) -> io::Result<()> {
        let mut out = stdout();
        writeln!(out, "{text}")?;
        out.flush()
    }
}

/// What no terminal can show.
pub(crate) fn binary(bytes: &[u8]) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        let text = "this is no text for a terminal: give --out FILE, or send it on";
        return Err(Failure::new(Code::Usage, text));
    }
    let mut out = stdout();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// A message for the person at the terminal. There is nowhere to report its failure.
pub(crate) fn stderr(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// Whether a progress bar has somebody to look at it.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// How this program is called in a command that is printed to be pasted: by its name where a shell finds it, by its
/// path otherwise.
pub(crate) fn program() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_found = std::env::split_paths(&path).any(|folder| folder.join(NAME).is_file());
    let own = std::env::current_exe().ok().filter(|_| !is_found);
    own.map_or_else(|| NAME.to_owned(), |own| shell(&own.display().to_string()))
}

/// The first digits of a hash, enough to tell events apart at a glance.
pub(crate) fn short(hash: &impl ToString) -> String {
    hash.to_string().chars().take(12).collect()
}

const NAME: &str = "countersign";
