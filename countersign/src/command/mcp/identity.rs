//! Which program a server is: its name, and the digest of the command that starts it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign_canon::Digest;
use countersign_mcp::tools::{Book, Definition, Shelf};

use crate::books::{Books, CommandId, Fit, Turn, Unread};
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

/// A server as its sessions know it.
#[derive(Clone)]
pub(super) struct Identity {
    server: String,
    /// Whether it is started by a command, and whether that is the one of its book.
    fit: Option<Fit>,
}

/// What was seen of a server, and of others.
pub(super) struct Known {
    /// Its book as it is kept.
    kept: Book,
    /// Its book as it counts here.
    pub(super) book: Book,
    others: Vec<Book>,
    kin: Vec<Book>,
    /// Servers of which nobody can tell what was seen.
    pub(super) unread: Vec<Unread>,
}

impl Identity {
    /// A server that is not started by a command.
    pub(super) fn at_an_address(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            fit: None,
        }
    }

    /// The server that a command starts; says when they do not belong together, with `data` in what is to be typed.
    pub(super) fn started(
        server: &str,
        id: CommandId,
        books: &Books,
        data: &str,
    ) -> Result<Self, Failure> {
        let fit = books.claim(server, id)?;
        if fit == Fit::Other {
            let command = id.noted().to_string();
            output::stderr(&format!(
                "countersign: `{}` was started by another command when its tools were accepted, so \
                 none of them counts as one that only reads\ncountersign: if it is the same server: \
                 countersign tools accept-command{data} {}",
                inline(server),
                output::words([server, &command])
            ));
        }
        Ok(Self {
            server: server.to_owned(),
            fit: Some(fit),
        })
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// What is known now, and stays so as long as it is our turn.
    pub(super) fn known(&self, turn: &Turn<'_>) -> Result<Known, Failure> {
        let kept = turn.of(&self.server)?;
        let (others, unread) = turn.others(&self.server)?;
        // The same server with other arguments, or under another name, offers the same tools, and poses as nobody.
        let is_kin = |other: &Book| {
            let is_same = || !other.commands().is_disjoint(kept.commands());
            match self.fit {
                None => false,
                Some(_) if usual(other.server()) == usual(&self.server) => true,
                Some(Fit::Same) => is_same(),
                Some(Fit::Other) => false,
            }
        };
        let (kin, others) = others.into_iter().partition(is_kin);
        let mut book = kept.clone();
        // SECURITY: what was accepted is about another program.
        if self.fit == Some(Fit::Other) {
            book.forget_reads();
        }
        Ok(Known {
            kept,
            book,
            others,
            kin,
            unread,
        })
    }
}

impl Known {
    /// An empty shelf beside it.
    pub(super) fn shelf(self) -> Shelf {
        let unread = self.unread.into_iter().map(|unread| unread.server);
        Shelf::new(self.book, self.others)
            .with_kin(self.kin)
            .with_unread(unread.collect())
    }

    /// Holds a list against it, and keeps what is new.
    ///
    /// INVARIANT: what is on the disk goes before what this list shows for the first time, whoever wrote it. What
    /// a person has accepted stays there as it is, also where this session goes by something else.
    pub(super) fn judge(
        self,
        tools: &[Arc<Definition>],
        turn: &Turn<'_>,
    ) -> Result<Shelf, Failure> {
        let kept = self.kept.clone();
        let mut shelf = self.shelf();
        shelf.fill(tools.iter().map(AsRef::as_ref));
        if let Some(book) = shelf.take_changed_book() {
            let mut book = book.clone();
            book.adopt(&kept);
            turn.write(&book)?;
        }
        Ok(shelf)
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
    use countersign_mcp::tools::{Origin, Standing};

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
            assert_eq!(books.claim("sh", of(&words, place)).unwrap(), Fit::Same);
            for is_there in [!first, first] {
                set(is_there);
                let id = of(&words, place);
                assert_eq!(books.claim("sh", id).unwrap(), Fit::Same);
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
        let fit = |place: &Path| books.claim("pkg", of(&words, place)).unwrap();
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
        let fit = books.claim("index", first).unwrap();
        assert_eq!(fit, Fit::Same);
        assert_eq!(name(&a, first, &books).unwrap(), "index");
        let own = name(&b, second, &books).unwrap();
        assert!(own.starts_with("index-") && own.len() == 14, "{own}");
        let fit = books.claim("index", second).unwrap();
        assert_eq!(fit, Fit::Other);
        let mut book = books.of("index").unwrap();
        let waiting: Vec<_> = book.waiting_commands().iter().copied().collect();
        assert_eq!(waiting, [second.noted()]);
        book.accept_command(second.noted());
        assert!(book.waiting_commands().is_empty());
        books.turn().unwrap().write(&book).unwrap();
        assert_eq!(books.claim("index", second).unwrap(), Fit::Same);
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
                assert_eq!(books.claim(&name, id).unwrap(), Fit::Same);
                name
            });
            names.collect::<Vec<_>>()
        };
        let first = names();
        assert_eq!(first, names());
        let different: std::collections::BTreeSet<_> = first.iter().collect();
        assert_eq!(different.len(), 3, "{first:?}");
    }

    fn tool(name: &str, about: &str) -> Definition {
        let text = format!(r#"{{"name":"{name}","description":"{about}"}}"#);
        Definition::read(text.as_bytes()).unwrap()
    }

    fn judge(server: &str, tools: &[Definition], books: &Books) -> Shelf {
        let tools: Vec<_> = tools.iter().cloned().map(Arc::new).collect();
        let turn = books.turn().unwrap();
        let known = Identity::at_an_address(server).known(&turn).unwrap();
        known.judge(&tools, &turn).unwrap()
    }

    /// Everybody begins at the same time.
    fn at_once<T: Send>(count: usize, act: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let (barrier, act) = (std::sync::Barrier::new(count), &act);
        let barrier = &barrier;
        std::thread::scope(|scope| {
            let run = |number| {
                scope.spawn(move || {
                    barrier.wait();
                    act(number)
                })
            };
            let all: Vec<_> = (0..count).map(run).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    #[test]
    fn the_same_command_under_another_name_poses_as_nobody() {
        let data = tempfile::tempdir().unwrap();
        let books = Books::new(data.path());
        let see = |server: &str, words: &[&str], definition: &Definition| {
            let identity = Identity::started(server, of(words, data.path()), &books, "").unwrap();
            let turn = books.turn().unwrap();
            let known = identity.known(&turn).unwrap();
            let tools = [Arc::new(definition.clone())];
            known.judge(&tools, &turn).unwrap().standing("look")
        };
        let (look, other) = (tool("look", "one"), tool("look", "another"));
        assert_eq!(see("server-files", &["sh", "a"], &look), Standing::Accepted);
        assert_eq!(see("files", &["sh", "a"], &look), Standing::Accepted);
        // What it shows under the one name it cannot change under the other.
        assert!(matches!(
            see("more-files", &["sh", "a"], &other),
            Standing::Shadowed { .. }
        ));
        // Another command is another server, whatever it is called.
        assert!(matches!(
            see("mail", &["sh", "b"], &look),
            Standing::Shadowed { .. }
        ));
        assert!(matches!(
            see("files", &["sh", "b"], &other),
            Standing::Changed { .. }
        ));
    }

    #[test]
    fn sessions_of_one_server_lose_nothing_of_each_other() {
        let data = tempfile::tempdir().unwrap();
        let books = Books::new(data.path());
        at_once(8, |session| {
            for number in 0..10 {
                let name = format!("tool_{session}_{number}");
                judge("mail", &[tool(&name, "one")], &books);
            }
        });
        assert_eq!(books.of("mail").unwrap().pins().len(), 80);
    }

    #[test]
    fn one_definition_of_a_tool_is_pinned_whoever_sees_it_at_the_same_time() {
        let data = tempfile::tempdir().unwrap();
        let books = Books::new(data.path());
        let shelves = at_once(8, |session| {
            judge("mail", &[tool("send", &format!("{session}"))], &books)
        });
        let standings = shelves.iter().map(|shelf| shelf.standing("send"));
        let (accepted, others): (Vec<_>, Vec<_>) =
            standings.partition(|standing| *standing == Standing::Accepted);
        assert_eq!(accepted.len(), 1);
        assert!(
            others
                .iter()
                .all(|other| matches!(other, Standing::Changed { .. }))
        );
        let kept = books.of("mail").unwrap();
        let winner = shelves
            .iter()
            .find(|shelf| shelf.standing("send") == Standing::Accepted);
        let winner = winner.unwrap().definition("send").unwrap();
        assert_eq!(kept.pins()["send"].digest, winner.digest());
    }

    #[test]
    fn a_name_has_one_owner_also_among_servers_that_start_together() {
        let data = tempfile::tempdir().unwrap();
        let books = Books::new(data.path());
        let names = ["send_mail", "s\u{435}nd_mail"];
        let shelves = at_once(8, |number| {
            let name = names[number % 2];
            (
                judge(&format!("server-{number}"), &[tool(name, "")], &books),
                name,
            )
        });
        let owners = shelves
            .iter()
            .filter(|(shelf, name)| shelf.standing(name) == Standing::Accepted);
        assert_eq!(owners.count(), 1);
        let (pinned, _) = books.all().unwrap();
        let pinned = pinned.iter().filter(|book| !book.pins().is_empty());
        assert_eq!(pinned.count(), 1);
    }

    #[test]
    fn what_a_person_accepted_goes_before_what_an_open_session_sees_first() {
        let data = tempfile::tempdir().unwrap();
        let books = Books::new(data.path());
        let (good, evil) = (tool("send", "good"), tool("send", "evil"));
        let shelf = judge("mail", std::slice::from_ref(&good), &books);
        assert_eq!(shelf.standing("send"), Standing::Accepted);
        let turn = books.turn().unwrap();
        let mut book = turn.of("mail").unwrap();
        assert!(book.accept_seen("send", good.digest(), true));
        turn.write(&book).unwrap();
        drop(turn);
        let shelf = judge("mail", &[evil.clone(), tool("other", "")], &books);
        let changed = Standing::Changed {
            accepted: good.digest(),
            now: evil.digest(),
            by: Origin::Accepted,
        };
        assert_eq!(shelf.standing("send"), changed);
        let book = books.of("mail").unwrap();
        assert!(book.reads(&good));
        assert_eq!(book.proposed().get("send"), Some(&evil));
        assert!(book.pins().contains_key("other"));
    }

    #[test]
    fn a_book_that_cannot_be_read_stops_its_own_server_and_newcomers_of_others() {
        let data = tempfile::tempdir().unwrap();
        let books = Books::new(data.path());
        judge("mail", &[tool("send", "")], &books);
        judge("files", &[tool("look", "")], &books);
        let file = |server: &str| data.path().join(format!("tools/{server}.json"));
        for damage in ["", "{}", "copied"] {
            match damage {
                "copied" => drop(std::fs::copy(file("mail"), file("files")).unwrap()),
                text => std::fs::write(file("files"), text).unwrap(),
            }
            assert!(books.of("files").is_err(), "{damage}");
            let shelf = judge("mail", &[tool("send", ""), tool("new", "")], &books);
            assert_eq!(shelf.standing("send"), Standing::Accepted);
            let server = "files".to_owned();
            assert_eq!(shelf.standing("new"), Standing::Shadowed { server });
        }
        std::fs::remove_file(file("files")).unwrap();
        let shelf = judge("mail", &[tool("send", ""), tool("new", "")], &books);
        assert_eq!(shelf.standing("new"), Standing::Accepted);
    }

    #[test]
    fn however_much_a_server_lists_its_book_can_be_read_again() {
        let data = tempfile::tempdir().unwrap();
        let books = Books::new(data.path());
        // Text that takes six times as much in a book.
        let long = "\\u001f".repeat(100_000);
        for round in 0..2 {
            let tools: Vec<_> = (0..20)
                .map(|number| tool(&format!("tool_{round}_{number}"), &long))
                .collect();
            let shelf = judge("bloat", &tools, &books);
            assert!(shelf.left_out() > 0);
            let book = books.of("bloat").unwrap();
            assert_eq!(book.pins().len(), 13);
            assert_eq!(shelf.standing("tool_0_0").objection().is_none(), round == 0);
            assert_eq!(shelf.standing("tool_1_0"), Standing::Unlisted);
        }
    }
}
