//! Which program a server is: its name, and the digest of the command that starts it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use countersign_canon::Digest;
use countersign_mcp::tools::Book;

use crate::books::{Books, Fit};
use crate::errors::Failure;
use crate::output::{self, inline};

/// The digest of a command: the program where it is found, and every argument; an argument that is a
/// file of the working folder counts with its whole path.
pub(super) fn digest(command: &[OsString], folder: Option<&Path>) -> Digest {
    let mut text = Vec::new();
    let mut add = |word: &OsStr| {
        let word = word.as_encoded_bytes();
        text.extend_from_slice(&(word.len() as u64).to_be_bytes());
        text.extend_from_slice(word);
    };
    let mut words = command.iter();
    if let Some(program) = words.next() {
        add(found(program, folder).as_os_str());
    }
    for word in words {
        let place = placed(Path::new(word), folder);
        match place.exists() {
            true => add(place.as_os_str()),
            false => add(word),
        }
    }
    Digest::of(&text)
}

/// The name of a server that was given none. If another command has taken the usual one, it gets one
/// of its own, and says so.
pub(super) fn name(command: &[OsString], digest: Digest, books: &Books) -> Result<String, Failure> {
    let usual = super::wrap::name_of(command);
    if books.is_free(&usual, digest)? {
        return Ok(usual);
    }
    let hex = digest.to_string();
    let hex = hex.rsplit(':').next().unwrap_or_default();
    let own: String = hex.chars().take(SHORT).collect();
    let own = format!("{usual}-{own}");
    output::stderr(&format!(
        "countersign: another command is called `{}`, so this server is called `{}`; give it a name \
         with --server",
        inline(&usual),
        inline(&own)
    ));
    Ok(own)
}

/// The book of a server, for the command that starts it; says when they do not belong together.
pub(super) fn book(
    server: &str,
    command: Digest,
    books: &Books,
) -> Result<(Book, Vec<Book>), Failure> {
    let (book, mut others, fit) = books.claim(server, command)?;
    // The same server with other arguments offers the same tools, and poses as nobody.
    others.retain(|other| usual(other.server()) != usual(server));
    if fit == Fit::Other {
        let server = inline(server);
        output::stderr(&format!(
            "countersign: `{server}` was started by another command when its tools were accepted, so \
             none of them counts as one that only reads\ncountersign: if it is the same server: \
             countersign tools accept-command {server} {command}"
        ));
    }
    Ok((book, others))
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

    fn of(words: &[&str], folder: &Path) -> Digest {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        digest(&words, Some(folder))
    }

    #[test]
    fn the_same_words_in_another_folder_are_another_command() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&one, &other] {
            std::fs::write(folder.path().join("index.js"), "").unwrap();
        }
        let (one, other) = (one.path(), other.path());
        let command = ["sh", "index.js"];
        assert_eq!(of(&command, one), of(&command, one));
        assert_ne!(of(&command, one), of(&command, other));
        // What is no file is the same everywhere.
        let command = ["sh", "-y", "server@1.2"];
        assert_eq!(of(&command, one), of(&command, other));
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
                assert_ne!(one, other);
            }
        }
    }

    #[test]
    fn a_name_belongs_to_the_command_that_came_first() {
        let folder = tempfile::tempdir().unwrap();
        let books = Books::new(folder.path());
        let words = |place: &str| vec![OsString::from("node"), OsString::from(place)];
        let (a, b) = (words("/a/dist/index.js"), words("/b/dist/index.js"));
        let (first, second) = (digest(&a, None), digest(&b, None));
        assert_eq!(name(&a, first, &books).unwrap(), "index");
        let (_, _, fit) = books.claim("index", first).unwrap();
        assert_eq!(fit, Fit::Same);
        assert_eq!(name(&a, first, &books).unwrap(), "index");
        let own = name(&b, second, &books).unwrap();
        assert!(own.starts_with("index-") && own.len() == 14, "{own}");
        let (_, _, fit) = books.claim("index", second).unwrap();
        assert_eq!(fit, Fit::Other);
        let (mut book, _) = books.of("index").unwrap();
        book.accept_command(second);
        books.write(&book).unwrap();
        assert_eq!(books.claim("index", second).unwrap().2, Fit::Same);
    }
}
