//! A command as it would be started here: its words, the program that they reach, the files that they
//! name.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use countersign_approval::{Subject, SubjectKind};
use countersign_canon::{Digest, Json};
use countersign_engine::{Precondition, Told};

use crate::errors::{Code, Failure};

/// A command line, in the folder that we are in.
///
/// INVARIANT: the program is looked for once. What is shown, fingerprinted and started is this path.
pub(super) struct Invocation {
    words: Vec<String>,
    /// Absolute, with its links: a program may want to know by which name it was called. `None` if the
    /// system would find none.
    program: Option<String>,
    folder: PathBuf,
}

impl Invocation {
    /// These words, here and now.
    pub(super) fn here(words: &[String]) -> Result<Self, Failure> {
        let folder = env::current_dir()
            .map_err(|error| Failure::new(Code::Input, format!("no working folder: {error}")))?;
        let first = words.first().map(String::as_str).unwrap_or_default();
        let program = program(first, &folder, env::var_os("PATH").as_deref());
        // FAIL-CLOSED: what cannot stand in a plan cannot be bound by it. Words are text, so with their
        // folder they are text too.
        text(folder.clone())?;
        let program = program.map(text).transpose()?;
        Ok(Self {
            words: words.to_vec(),
            program,
            folder,
        })
    }

    /// Nobody is asked about a command that could not be started.
    pub(super) fn check_found(&self) -> Result<(), Failure> {
        let program = self.program.as_ref();
        if program.is_some_and(|program| is_executable(Path::new(program))) {
            return Ok(());
        }
        let word = self.words.first().map(String::as_str).unwrap_or_default();
        let why = match word.contains('/') {
            true => "nothing is there that may be executed",
            false => "no folder of PATH has it",
        };
        let text = format!("`{word}` cannot be run: {why}");
        Err(Failure::new(Code::Server, text))
    }

    /// The folder that it runs in.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the tool is: the words, and the program that they reach.
    pub(super) fn definition(&self) -> Digest {
        let words = self.words.iter().map(|word| Json::from(word.as_str()));
        let definition = Json::object([
            ("command", Json::Array(words.collect())),
            ("program", Json::from(self.program.clone())),
        ]);
        Digest::of(&definition.to_sorted_ascii())
    }

    /// What people see, and what must not change: the words themselves, the program, whether it is there
    /// or not, and every other plain file among the words, each once. Of those, files that are too large to
    /// be scripts are left out.
    pub(super) fn preconditions(&self) -> Vec<Precondition> {
        let mut paths: Vec<String> = self.program.iter().cloned().collect();
        for word in self.words.iter().skip(1) {
            let path = absolute(Path::new(word), &self.folder);
            if let Some(path) = path.filter(|path| is_small_file(path))
                && let Ok(name) = text(path)
                && !paths.contains(&name)
            {
                paths.push(name);
            }
        }
        let command = Precondition::Told(Told {
            name: COMMAND.to_owned(),
            value: quoted(&self.words),
        });
        let files = paths.into_iter().map(file);
        std::iter::once(command).chain(files).collect()
    }

    /// The command, ready to be started in the folder that we are in.
    pub(super) fn command(&self) -> io::Result<Command> {
        let program = self.program.as_deref().ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "no folder of PATH has the program")
        })?;
        let mut command = Command::new(program);
        command.args(self.words.iter().skip(1));
        #[cfg(unix)]
        if let Some(word) = self.words.first() {
            use std::os::unix::process::CommandExt as _;
            command.arg0(word);
        }
        Ok(command)
    }
}

/// The words as a shell would read them, each in quotes: no two command lines look the same.
fn quoted(words: &[String]) -> String {
    let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    let words: Vec<String> = words.iter().map(quote).collect();
    words.join(" ")
}

/// Where the system would find the program.
fn program(word: &str, folder: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    if word.contains('/') {
        return absolute(Path::new(word), folder);
    }
    let mut places = env::split_paths(path?).map(|place| folder.join(place).join(word));
    let place = places.find(|place| is_executable(place))?;
    absolute(&place, folder)
}

/// The same path from the root, without a step that leads nowhere. Links are not followed.
fn absolute(path: &Path, folder: &Path) -> Option<PathBuf> {
    std::path::absolute(folder.join(path)).ok()
}

fn text(path: PathBuf) -> Result<String, Failure> {
    let text = path.into_os_string().into_string();
    text.map_err(|path| {
        let path = path.to_string_lossy().into_owned();
        Failure::new(Code::Input, format!("the path `{path}` is no text"))
    })
}

fn file(name: String) -> Precondition {
    Precondition::Seen(Subject {
        kind: SubjectKind::File,
        name,
    })
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

fn is_small_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES)
}

/// What the command is called among the things that a plan rests on.
const COMMAND: &str = "command";
const MAX_BYTES: u64 = 64 << 20;

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(command: &[&str]) -> Vec<String> {
        let words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let all = Invocation::here(&words).unwrap().preconditions();
        let name = |it| match it {
            Precondition::Seen(subject) => Some(subject.name),
            Precondition::Told(_) => None,
        };
        all.into_iter().filter_map(name).collect()
    }

    #[test]
    fn programs_and_scripts_are_found_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("deploy.sh");
        fs::write(&script, "").unwrap();
        let text = script.to_str().unwrap();
        let names = names(&["sh", text, text, "--force", "/", "prod"]);
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names[0].ends_with("/sh"));
        assert_eq!(names[1], text);
    }

    #[test]
    fn words_can_be_told_apart() {
        let check = |words: &[&str], expect| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(quoted(&words), expect);
        };
        check(&["sh", "-c", "a | b; c ~"], "'sh' '-c' 'a | b; c ~'");
        check(&["a", "b"], "'a' 'b'");
        check(&["a b", ""], "'a b' ''");
        check(&["a' 'b"], r"'a'\'' '\''b'");
    }

    #[test]
    fn a_program_that_is_not_there_must_stay_away() {
        assert_eq!(
            names(&["/nowhere/nothing", "x"]),
            ["/nowhere/nothing".to_owned()]
        );
        assert!(names(&["no-such-program-anywhere"]).is_empty());
    }

    #[test]
    fn a_program_is_the_first_that_may_run() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let place = |name: &str| here.join(name).join("tool");
        for (name, mode) in [("a", 0o644), ("b", 0o755), ("c", 0o755)] {
            fs::create_dir(here.join(name)).unwrap();
            fs::write(place(name), "").unwrap();
            fs::set_permissions(place(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        // A folder of PATH may be named from the working folder.
        let path = env::join_paths(["none", "a", "b", "c"]).unwrap();
        assert_eq!(program("tool", here, Some(&path)), Some(place("b")));
        assert_eq!(program("tool", here, None), None);
        assert_eq!(program("./a/./tool", here, None), Some(place("a")));
        let direct = place("a");
        assert_eq!(program(direct.to_str().unwrap(), here, None), Some(direct));
    }

    #[test]
    fn the_same_words_for_another_program_are_another_tool() {
        let one = Invocation {
            words: vec!["rel".to_owned()],
            program: Some("/a/rel".to_owned()),
            folder: PathBuf::from("/"),
        };
        let other = Invocation {
            words: one.words.clone(),
            program: Some("/b/rel".to_owned()),
            folder: one.folder.clone(),
        };
        assert_ne!(one.definition(), other.definition());
    }
}
