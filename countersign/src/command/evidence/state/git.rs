//! A folder as git would store it: the ids of its blobs and trees, worked out from their objects.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use countersign_evidence::state::{
    Coverage, GitIdentity, GitSelector, GitTree as Tree, Nothing, StateDigest,
};
use sha1::{Digest as _, Sha1};

use super::{failed, glob};
use crate::errors::Failure;
use crate::input::unreadable;

#[derive(Args)]
#[command(after_help = "\
The digest is `git-sha1:` and the id of the tree of the selected files: what `git add --force` of them and
`git write-tree` give in an empty repository. `.git` is never part of it. tree_sha is the id of the whole
tree, or of the one that you name with --base: before and after an action share one coverage.

Examples:
  countersign evidence state git-tree . --path 'src/**' --exclude 'src/generated/**'")]
pub(crate) struct GitTree {
    /// The folder
    root: PathBuf,
    /// Which part of the tree it is
    #[arg(long, value_name = "PATH", default_value = "/")]
    tree_root: String,
    /// Select these paths [default: all]
    #[arg(long, value_name = "PREDICATE")]
    path: Option<String>,
    /// Leave these paths out
    #[arg(long = "exclude", value_name = "PREDICATE")]
    exclude: Vec<String>,
    /// The tree that an action began with [default: the tree itself]
    #[arg(long, value_name = "TREE_SHA")]
    base: Option<String>,
}

impl GitTree {
    pub(super) fn digest(self) -> Result<StateDigest, Failure> {
        let mut whole = Folder::default();
        read(&self.root, "", &mut whole)?;
        let mut selected = Folder::default();
        for (path, entry) in whole.files("") {
            let by_path = self.path.as_ref();
            let is_in = by_path.is_none_or(|predicate| glob::matches(predicate, &path));
            if is_in && !glob::any(&self.exclude, &path) {
                selected.insert(&path, entry);
            }
        }
        let coverage = Coverage::GitTree(Tree {
            identity: GitIdentity {
                tree_sha: self.base.unwrap_or_else(|| hex(&whole.id())),
                tree_root: self.tree_root,
            },
            selector: GitSelector {
                path_predicate: self.path,
                excludes: (!self.exclude.is_empty()).then_some(self.exclude),
            },
            boundary: Nothing,
            observed: Nothing,
        });
        let digest = format!("git-sha1:{}", hex(&selected.id()));
        Ok(StateDigest::new(digest, coverage))
    }
}

#[derive(Clone)]
struct File {
    mode: &'static str,
    id: [u8; 20],
}

enum Entry {
    File(File),
    Folder(Folder),
}

#[derive(Default)]
struct Folder(BTreeMap<String, Entry>);

impl Folder {
    fn insert(&mut self, path: &str, file: File) {
        match path.split_once('/') {
            None => {
                self.0.insert(path.to_owned(), Entry::File(file));
            }
            Some((first, rest)) => {
                let folder = self.0.entry(first.to_owned());
                let folder = folder.or_insert_with(|| Entry::Folder(Self::default()));
                if let Entry::Folder(folder) = folder {
                    folder.insert(rest, file);
                }
            }
        }
    }

    fn files(&self, prefix: &str) -> Vec<(String, File)> {
        let mut files = Vec::new();
        for (name, entry) in &self.0 {
            let path = format!("{prefix}{name}");
            match entry {
                Entry::File(file) => files.push((path, file.clone())),
                Entry::Folder(folder) => files.extend(folder.files(&format!("{path}/"))),
            }
        }
        files
    }

    /// The id of the tree object. Git sorts a folder as if its name ended with `/`.
    fn id(&self) -> [u8; 20] {
        let mut entries: Vec<(Vec<u8>, &'static str, &str, [u8; 20])> = Vec::new();
        for (name, entry) in &self.0 {
            let mut key = name.clone().into_bytes();
            match entry {
                Entry::File(file) => entries.push((key, file.mode, name, file.id)),
                Entry::Folder(folder) => {
                    key.push(b'/');
                    entries.push((key, "40000", name, folder.id()));
                }
            }
        }
        entries.sort_unstable();
        let mut body = Vec::new();
        for (_, mode, name, id) in entries {
            body.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            body.extend_from_slice(&id);
        }
        object("tree", &body)
    }
}

/// Reads a folder. As for git, an empty folder is not there.
fn read(folder: &Path, prefix: &str, tree: &mut Folder) -> Result<(), Failure> {
    let wrong = |error| unreadable(&folder.display().to_string(), &error);
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let path = entry.path();
        let name = entry.file_name();
        let unnamed = || failed(format!("`{}` has a name that is no text", path.display()));
        let name = name.to_str().ok_or_else(unnamed)?;
        if name == ".git" {
            continue;
        }
        let kind = entry.file_type().map_err(wrong)?;
        let below = format!("{prefix}{name}");
        let wrong = |error| unreadable(&path.display().to_string(), &error);
        if kind.is_dir() {
            read(&path, &format!("{below}/"), tree)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).map_err(wrong)?;
            let id = object("blob", target.as_os_str().as_encoded_bytes());
            tree.insert(&below, File { mode: "120000", id });
        } else if kind.is_file() {
            let id = object("blob", &fs::read(&path).map_err(wrong)?);
            let mode = mode(&entry.metadata().map_err(wrong)?);
            tree.insert(&below, File { mode, id });
        } else {
            return Err(failed(format!("`{below}` is neither a file nor a folder")));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> &'static str {
    use std::os::unix::fs::PermissionsExt as _;
    match metadata.permissions().mode() & 0o100 {
        0 => "100644",
        _ => "100755",
    }
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> &'static str {
    "100644"
}

fn object(kind: &str, body: &[u8]) -> [u8; 20] {
    let mut hasher = Sha1::new();
    hasher.update(format!("{kind} {}\0", body.len()));
    hasher.update(body);
    hasher.finalize().into()
}

fn hex(id: &[u8]) -> String {
    base16ct::lower::encode_string(id)
}
