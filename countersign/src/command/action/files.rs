//! The files that a command line names: what it does depends on them.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use countersign_approval::{Subject, SubjectKind};

/// The program and every other plain file among these words, each once. Files that are too large to
/// be scripts are left out.
pub(super) fn files(command: &[String]) -> Vec<Subject> {
    let mut paths = Vec::new();
    for (place, word) in command.iter().enumerate() {
        let path = match place {
            0 => program(word, env::var_os("PATH").as_deref()),
            _ => std::path::absolute(word).ok(),
        };
        let Some(path) = path.filter(|path| is_small_file(path)) else {
            continue;
        };
        // A name that is no text cannot stand in a plan; the word itself is text, so its folder is odd.
        if let Some(name) = path.to_str().map(str::to_owned)
            && !paths.contains(&name)
        {
            paths.push(name);
        }
    }
    let subject = |name| Subject {
        kind: SubjectKind::File,
        name,
    };
    paths.into_iter().map(subject).collect()
}

/// Where the system would find the program.
fn program(word: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    if word.contains('/') {
        return std::path::absolute(word).ok();
    }
    let folders = env::split_paths(path?);
    let mut places = folders.map(|folder| folder.join(word));
    let place = places.find(|place| is_executable(place))?;
    std::path::absolute(place).ok()
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

const MAX_BYTES: u64 = 64 << 20;

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn programs_and_scripts_are_found_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("deploy.sh");
        fs::write(&script, "").unwrap();
        let text = script.to_str().unwrap();
        let command = ["sh", text, text, "--force", "/", "prod"].map(str::to_owned);
        let names: Vec<String> = files(&command).into_iter().map(|it| it.name).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names[0].ends_with("/sh"));
        assert_eq!(names[1], text);
    }

    #[test]
    fn a_program_is_the_first_that_may_run() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name).join("tool");
        for (name, mode) in [("a", 0o644), ("b", 0o755), ("c", 0o755)] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(place(name), "").unwrap();
            fs::set_permissions(place(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = env::join_paths(["none", "a", "b", "c"].map(|name| folder.path().join(name)));
        assert_eq!(program("tool", Some(&path.unwrap())), Some(place("b")));
        assert_eq!(program("tool", None), None);
        let direct = place("a");
        assert_eq!(program(direct.to_str().unwrap(), None), Some(direct));
    }
}
