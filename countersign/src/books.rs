//! Accepted tools, one file a server, beside the log.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use countersign_canon::{Digest, Json, Limits, Numbers};
use countersign_mcp::tools::Book;

use crate::errors::{Code, Failure};
use crate::folder;
use crate::input;

/// The folder of the books.
#[derive(Clone)]
pub(crate) struct Books {
    folder: PathBuf,
}

/// The folder while nobody else may write there. Whoever looks at a book and writes it then holds one from
/// before it looks: otherwise what others have written meanwhile would be lost.
pub(crate) struct Turn<'a> {
    books: &'a Books,
    _lock: File,
}

/// A book that cannot be read.
pub(crate) struct Unread {
    /// The server, as the file is called.
    pub(crate) server: String,
    pub(crate) failure: Failure,
}

/// Whether a book is that of the program which is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Fit {
    /// It is, as far as anybody has noted.
    Same,
    /// It is that of another.
    Other,
}

/// A command that starts a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandId {
    /// Its program and its words.
    pub(crate) words: Digest,
    /// The same, in the folder in which it runs.
    pub(crate) here: Digest,
    /// Whether one of its words is a file of that folder now.
    pub(crate) names_file: bool,
}

impl CommandId {
    /// What tells it from others.
    pub(crate) fn noted(self) -> Digest {
        match self.names_file {
            true => self.here,
            false => self.words,
        }
    }

    /// Whether a book has noted it. Words that name no file mean the same in every folder.
    fn starts(self, book: &Book) -> bool {
        let known = book.commands();
        known.contains(&self.here) || (!self.names_file && known.contains(&self.words))
    }

    /// Notes it; tells whether that is news.
    ///
    /// SECURITY: also where it runs, so that a server which makes a file that its words name is still the
    /// same one. Otherwise it would leave behind what was seen of it.
    fn note(self, book: &mut Book) -> bool {
        let before = book.commands().len();
        book.accept_command(self.here);
        book.accept_command(self.noted());
        book.commands().len() > before
    }
}

impl Books {
    pub(crate) fn new(data: &Path) -> Self {
        Self {
            folder: data.join("tools"),
        }
    }

    /// The book of a server.
    pub(crate) fn of(&self, server: &str) -> Result<Book, Failure> {
        let file = self.file(server);
        match file.exists() {
            true => self.read(&file),
            false => Ok(Book::new(server)),
        }
    }

    /// How the book of a server stands: when it was written last, and its length.
    pub(crate) fn stamp(&self, server: &str) -> Option<(SystemTime, u64)> {
        let metadata = fs::metadata(self.file(server)).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }

    /// Whether the book of a server is that of this command. A book that knows no command takes this one.
    pub(crate) fn claim(&self, server: &str, command: CommandId) -> Result<Fit, Failure> {
        let turn = self.turn()?;
        let mut book = self.of(server)?;
        if !command.starts(&book) && !book.commands().is_empty() {
            if book.propose_command(command.noted()) {
                turn.write(&book)?;
            }
            return Ok(Fit::Other);
        }
        if command.note(&mut book) {
            turn.write(&book)?;
        }
        Ok(Fit::Same)
    }

    /// Whether a server of this name is started by this command, as far as anybody has noted.
    pub(crate) fn is_free(&self, server: &str, command: CommandId) -> Result<bool, Failure> {
        let book = self.of(server)?;
        Ok(book.commands().is_empty() || command.starts(&book))
    }

    /// Waits until nobody else writes here.
    pub(crate) fn turn(&self) -> Result<Turn<'_>, Failure> {
        let open = || {
            fs::create_dir_all(&self.folder)?;
            let mut options = File::options();
            options.write(true).create(true).truncate(false);
            let file = options.open(self.folder.join("lock"))?;
            file.lock()?;
            Ok(Turn {
                books: self,
                _lock: file,
            })
        };
        open().map_err(|error| self.failed(&error))
    }

    /// Every book, by the name of its server, and those that cannot be read.
    pub(crate) fn all(&self) -> Result<(Vec<Book>, Vec<Unread>), Failure> {
        self.but(None)
    }

    fn but(&self, left_out: Option<&Path>) -> Result<(Vec<Book>, Vec<Unread>), Failure> {
        let (mut books, mut unread) = (Vec::new(), Vec::new());
        if !self.folder.exists() {
            return Ok((books, unread));
        }
        let failed = |error| self.failed(&error);
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_book = path.extension().is_some_and(|it| it == "json");
            if !is_book || left_out == Some(&path) {
                continue;
            }
            match self.read(&path) {
                Ok(book) => books.push(book),
                Err(failure) => unread.push(Unread {
                    server: path.file_stem().unwrap_or_default().display().to_string(),
                    failure,
                }),
            }
        }
        books.sort_by(|a, b| a.server().cmp(b.server()));
        unread.sort_by(|a, b| a.server.cmp(&b.server));
        Ok((books, unread))
    }

    /// FAIL-CLOSED: a book that cannot be read, or is in the place of another one, is not an empty book.
    fn read(&self, path: &Path) -> Result<Book, Failure> {
        let shown = path.display().to_string();
        let text = input::file(&shown, LIMITS.max_bytes)?;
        let refused = |error: &dyn ToString| {
            Failure::new(Code::Book, format!("{shown}: {}", error.to_string()))
        };
        let json = Json::admit(&text, &LIMITS).map_err(|error| refused(&error))?;
        let book = Book::from_json(&json).map_err(|error| refused(&error))?;
        match self.file(book.server()) == path {
            true => Ok(book),
            false => Err(refused(&"it is the book of another server")),
        }
    }

    /// A server's name where it is a plain one, its digest otherwise.
    fn file(&self, server: &str) -> PathBuf {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_plain = !server.is_empty() && server.len() <= 100 && server.chars().all(plain);
        let name = match is_plain {
            true => server.to_owned(),
            false => Digest::of(server.as_bytes()).to_string().replace(':', "-"),
        };
        self.folder.join(format!("{name}.json"))
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        Failure::new(Code::Folder, format!("{}: {error}", self.folder.display()))
    }
}

impl Turn<'_> {
    /// The book of a server.
    pub(crate) fn of(&self, server: &str) -> Result<Book, Failure> {
        self.books.of(server)
    }

    /// The books of all others, and those of them that cannot be read.
    pub(crate) fn others(&self, server: &str) -> Result<(Vec<Book>, Vec<Unread>), Failure> {
        self.books.but(Some(&self.books.file(server)))
    }

    /// Writes a book as it is.
    pub(crate) fn write(&self, book: &Book) -> Result<(), Failure> {
        let mut text = book.to_json().to_sorted_ascii();
        text.push(b'\n');
        folder::replace(&self.books.file(book.server()), &text)
            .map_err(|error| self.books.failed(&error))
    }
}

const LIMITS: Limits = Limits {
    max_bytes: 64 << 20,
    max_depth: 128,
    numbers: Numbers::Exact,
};
