//! Accepted tools, one file a server, beside the log.

use std::fs;
use std::path::{Path, PathBuf};

use countersign_canon::{Digest, Json, Limits, Numbers};
use countersign_mcp::tools::Book;

use crate::errors::{Code, Failure};
use crate::folder;
use crate::input;

/// Where a server's book is kept.
pub(super) struct Books {
    file: PathBuf,
}

impl Books {
    /// Reads the book of a server, and those of all others.
    pub(super) fn open(data: &Path, server: &str) -> Result<(Self, Book, Vec<Book>), Failure> {
        let folder = data.join("tools");
        let failed = |error| Failure::new(Code::Folder, format!("{}: {error}", folder.display()));
        fs::create_dir_all(&folder).map_err(failed)?;
        let file = folder.join(file_name(server));
        let mut book = Book::new(server);
        let mut others = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let found = read(&path)?;
            match found.server() == server {
                true => book = found,
                false => others.push(found),
            }
        }
        Ok((Self { file }, book, others))
    }

    /// Writes the book.
    pub(super) fn keep(&self, book: &Book) -> Result<(), Failure> {
        let mut text = book.to_json().to_sorted_ascii();
        text.push(b'\n');
        folder::replace(&self.file, &text).map_err(|error| {
            Failure::new(Code::Folder, format!("{}: {error}", self.file.display()))
        })
    }
}

/// FAIL-CLOSED: a book that cannot be read is not an empty book.
fn read(path: &Path) -> Result<Book, Failure> {
    let shown = path.display().to_string();
    let text = input::file(&shown, LIMITS.max_bytes)?;
    let refused =
        |error: &dyn ToString| Failure::new(Code::Book, format!("{shown}: {}", error.to_string()));
    let json = Json::admit(&text, &LIMITS).map_err(|error| refused(&error))?;
    Book::from_json(&json).map_err(|error| refused(&error))
}

/// The server's name where it is a plain one, its digest otherwise.
fn file_name(server: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match !server.is_empty() && server.len() <= 100 && server.chars().all(plain) {
        true => format!("{server}.json"),
        false => format!(
            "{}.json",
            Digest::of(server.as_bytes()).to_string().replace(':', "-")
        ),
    }
}

const LIMITS: Limits = Limits {
    max_bytes: 64 << 20,
    max_depth: 128,
    numbers: Numbers::Exact,
};
