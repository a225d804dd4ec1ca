//! Which program a server is: its name, and the digest of the command that starts it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use countersign_canon::Digest;
use countersign_mcp::tools::{Book, Shelf};

use crate::books::{Books, CommandId, Fit};
use crate::errors::Failure;
use crate::output::{self, inline};

/// A command as books know it: the program where it is found, and every argument.
pub(super) fn command(command: &[OsString], folder: Option<&Path>) -> CommandId {
    let mut text = Vec::new();
    let mut add = |word: &OsStr| {
        let word = word.as_encoded_bytes();
        text.extend_from_slice(&(word.len() as u64).to_be_bytes());
        text.extend_from_slice(word);
    };
    let (program, words) = match command.split_first() {
        Some((program, words)) => (found(program, folder), words),
        None => (PathBuf::new(), command),
    };
    add(program.as_os_str());
    for word in words {
        add(word);
    }
    let is_file = |word: &OsString| {
        let path = Path::new(word);
        path.is_relative() && placed(path, folder).exists()
    };
    let (names_file, here) = (words.iter().any(is_file), placed(Path::new("."), folder));
    let words = Digest::of(&text);
    text.push(0);
    text.extend_from_slice(here.as_os_str().as_encoded_bytes());
    CommandId {
        words,
        here: Digest::of(&text),
        names_file,
    }
}

/// The name of a server that was given none. If another command has taken the usual one, it gets one
/// of its own, and says so.
pub(super) fn name(command: &[OsString], id: CommandId, books: &Books) -> Result<String, Failure> {
    let usual = super::wrap::name_of(command);
    if books.is_free(&usual, id)? {
        return Ok(usual);
    }
    let mut own = named_by(&usual, id.words);
    if !books.is_free(&own, id)? {
        own = named_by(&usual, id.here);
    }
    output::stderr(&format!(
        "countersign: another command is called `{}`, so this server is called `{}`; give it a name \
         with --server",
        inline(&usual),
        inline(&own)
    ));
    Ok(own)
}

fn named_by(usual: &str, digest: Digest) -> String {
    let hex = digest.to_string();
    let hex = hex.rsplit(':').next().unwrap_or_default();
    let own: String = hex.chars().take(SHORT).collect();
    format!("{usual}-{own}")
}

/// What was seen of a server, and of others.
pub(super) struct Known {
    pub(super) book: Book,
    others: Vec<Book>,
    kin: Vec<Book>,
}

impl Known {
    /// Of a server that is not started by a command.
    pub(super) fn at_an_address(server: &str, books: &Books) -> Result<Self, Failure> {
        let (book, others) = books.of(server)?;
        Ok(Self {
            book,
            others,
            kin: Vec::new(),
        })
    }

    /// Of the server that a command starts; says when they do not belong together.
    pub(super) fn started(server: &str, id: CommandId, books: &Books) -> Result<Self, Failure> {
        let (book, others, fit) = books.claim(server, id)?;
        // The same server with other arguments offers the same tools, and poses as nobody.
        let is_kin = |other: &Book| usual(other.server()) == usual(server);
        let (kin, others) = others.into_iter().partition(is_kin);
        if fit == Fit::Other {
            let command = id.noted().to_string();
            output::stderr(&format!(
                "countersign: `{}` was started by another command when its tools were accepted, so \
                 none of them counts as one that only reads\ncountersign: if it is the same server: \
                 countersign tools accept-command {}",
                inline(server),
                output::words([server, &command])
            ));
        }
        Ok(Self { book, others, kin })
    }

    pub(super) fn shelf(self) -> Shelf {
        Shelf::new(self.book, self.others).with_kin(self.kin)
    }
}

/// A name without the digits that tell commands apart.
fn usual(server: &str) -> &str {
    let is_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    match server.rsplit_once('-') {
        Some((name, own)) if own.len() == SHORT && own.chars().all(is_hex) => name,
        _ => server,
    }
}

/// Where a program is found, without following links: an update of it keeps its name.
fn found(program: &OsStr, folder: Option<&Path>) -> PathBuf {
    let path = Path::new(program);
    if path.components().count() > 1 || path.is_absolute() {
        return placed(path, folder);
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(path));
    places
        .find(|place| place.is_file())
        .unwrap_or_else(|| path.to_owned())
}

fn placed(path: &Path, folder: Option<&Path>) -> PathBuf {
    let path = match folder {
        Some(folder) => folder.join(path),
        None => path.to_owned(),
    };
    std::path::absolute(&path).unwrap_or(path)
}

const SHORT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str], folder: &Path) -> CommandId {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        command(&words, Some(folder))
    }

    #[test]
    fn the_same_words_in_another_folder_are_another_command() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&one, &other] {
            std::fs::write(folder.path().join("index.js"), "").unwrap();
        }
        let (one, other) = (one.path(), other.path());
        let words = ["sh", "index.js"];
        assert_eq!(of(&words, one), of(&words, one));
        assert_ne!(of(&words, one).noted(), of(&words, other).noted());
        // What is no file is the same everywhere.
        let words = ["sh", "-y", "@scope/server@1.2"];
        assert_eq!(of(&words, one).noted(), of(&words, other).noted());
    }

    #[test]
    fn a_server_that_makes_or_removes_a_file_it_is_given_stays_the_same() {
        let place = tempfile::tempdir().unwrap();
        let (place, words) = (place.path(), ["sh", "notes.db"]);
        let command = words.map(OsString::from);
        for (number, first) in [false, true].into_iter().enumerate() {
            let books = Books::new(&place.join(format!("data-{number}")));
            let file = place.join("notes.db");
            let set = |is_there| match is_there {
                true => std::fs::write(&file, "").unwrap(),
                false => std::fs::remove_file(&file).unwrap_or_default(),
            };
            set(first);
            assert_eq!(books.claim("sh", of(&words, place)).unwrap().2, Fit::Same);
            for is_there in [!first, first] {
                set(is_there);
                let id = of(&words, place);
                assert_eq!(books.claim("sh", id).unwrap().2, Fit::Same);
                assert_eq!(
                    name(&command, id, &books).unwrap(),
                    super::super::wrap::name_of(&command)
                );
            }
        }
    }

    #[test]
    fn a_folder_that_has_a_file_of_that_name_is_not_taken_for_the_others() {
        let (data, one) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (other, evil) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let books = Books::new(data.path());
        let words = ["python3", "-m", "pkg"];
        let fit = |place: &Path| books.claim("pkg", of(&words, place)).unwrap().2;
        assert_eq!(fit(one.path()), Fit::Same);
        assert_eq!(fit(other.path()), Fit::Same);
        std::fs::create_dir(evil.path().join("pkg")).unwrap();
        assert_eq!(fit(evil.path()), Fit::Other);
        // Where it ran before, it may make one.
        std::fs::create_dir(other.path().join("pkg")).unwrap();
        assert_eq!(fit(other.path()), Fit::Same);
    }

    #[test]
    fn every_word_counts_and_where_words_end() {
        let folder = tempfile::tempdir().unwrap();
        let all = [
            &["sh", "a", "b"][..],
            &["sh", "ab"],
            &["sh", "a", "c"],
            &["./sh", "a", "b"],
            &["sh", "a", "b", ""],
        ];
        for (at, one) in all.iter().enumerate() {
            for other in all.iter().skip(at + 1) {
                let (one, other) = (of(one, folder.path()), of(other, folder.path()));
                assert_ne!(one.words, other.words);
                assert_ne!(one.here, other.here);
            }
        }
    }

    #[test]
    fn a_name_belongs_to_the_command_that_came_first() {
        let folder = tempfile::tempdir().unwrap();
        let books = Books::new(folder.path());
        let words = |place: &str| vec![OsString::from("node"), OsString::from(place)];
        let (a, b) = (words("/a/dist/index.js"), words("/b/dist/index.js"));
        let (first, second) = (command(&a, None), command(&b, None));
        assert_eq!(name(&a, first, &books).unwrap(), "index");
        let (_, _, fit) = books.claim("index", first).unwrap();
        assert_eq!(fit, Fit::Same);
        assert_eq!(name(&a, first, &books).unwrap(), "index");
        let own = name(&b, second, &books).unwrap();
        assert!(own.starts_with("index-") && own.len() == 14, "{own}");
        let (_, _, fit) = books.claim("index", second).unwrap();
        assert_eq!(fit, Fit::Other);
        let (mut book, _) = books.of("index").unwrap();
        book.accept_command(second.noted());
        books.write(&book).unwrap();
        assert_eq!(books.claim("index", second).unwrap().2, Fit::Same);
    }

    #[test]
    fn every_folder_with_the_same_words_has_a_name_and_keeps_it() {
        let data = tempfile::tempdir().unwrap();
        let books = Books::new(data.path());
        let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
        let words = ["sh", "index.js"];
        let command = words.map(OsString::from);
        let names = || {
            let names = folders.iter().map(|folder| {
                std::fs::write(folder.path().join("index.js"), "").unwrap();
                let id = of(&words, folder.path());
                let name = name(&command, id, &books).unwrap();
                assert_eq!(books.claim(&name, id).unwrap().2, Fit::Same);
                name
            });
            names.collect::<Vec<_>>()
        };
        let first = names();
        assert_eq!(first, names());
        let different: std::collections::BTreeSet<_> = first.iter().collect();
        assert_eq!(different.len(), 3, "{first:?}");
    }
}
