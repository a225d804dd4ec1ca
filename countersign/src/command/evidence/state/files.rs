//! Files of a sandbox.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use countersign_canon::Digest;
use countersign_evidence::state::{
    Coverage, Files, FilesBoundary, FilesIdentity, FilesObserved, FilesSelector, StateDigest,
    SymlinkPolicy,
};
use sha2::{Digest as _, Sha256};

use super::{failed, glob};
use crate::errors::Failure;
use crate::input::unreadable;

#[derive(Args)]
#[command(after_help = "\
The digest is SHA-256 over one line for each selected file, sorted by path: `file` or `link`, a NUL, the
SHA-256 of the content (of the target, for a link) in hex, a NUL, the path from the root, a line feed.
Predicates: `?` and `*` stop at `/`, `**` does not.

Examples:
  countersign evidence state sandbox-fs /work --base-image sha256:… --exclude 'tmp/**'")]
pub(crate) struct SandboxFs {
    /// The root of the sandbox
    root: PathBuf,
    /// The digest of the image that the sandbox began with
    #[arg(long, value_name = "DIGEST")]
    base_image: String,
    /// Select these paths [default: all]
    #[arg(long = "include", value_name = "PREDICATE")]
    include: Vec<String>,
    /// Leave these paths out
    #[arg(long = "exclude", value_name = "PREDICATE")]
    exclude: Vec<String>,
    /// Paths that tools generate; they are left out unless --with-generated is given
    #[arg(long = "generated", value_name = "PREDICATE")]
    generated: Vec<String>,
    /// Digest generated paths too
    #[arg(long)]
    with_generated: bool,
    /// What becomes of symbolic links
    #[arg(long, value_enum, default_value = "no-follow")]
    symlinks: Links,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Links {
    /// Digest what they lead to
    Follow,
    /// Digest them as links
    NoFollow,
    /// Refuse to digest
    Reject,
}

impl SandboxFs {
    pub(super) fn digest(self) -> Result<StateDigest, Failure> {
        let mut walk = Walk {
            asked: &self,
            lines: Vec::new(),
        };
        walk.folder(&self.root, "", 0)?;
        let mut lines = walk.lines;
        lines.sort_unstable_by(|(a, _), (b, _)| a.as_bytes().cmp(b.as_bytes()));
        let mut text = Vec::new();
        for (path, (kind, hash)) in &lines {
            text.extend_from_slice(format!("{kind}\0{hash}\0{path}\n").as_bytes());
        }
        let include = match self.include.is_empty() {
            true => vec!["**".to_owned()],
            false => self.include.clone(),
        };
        let coverage = Coverage::SandboxFs(Files {
            identity: FilesIdentity {
                base_image_digest: self.base_image,
                sandbox_root: self.root.display().to_string(),
            },
            selector: FilesSelector {
                include_predicates: include,
                exclude_predicates: self.exclude,
            },
            boundary: FilesBoundary {
                symlink_policy: match self.symlinks {
                    Links::Follow => SymlinkPolicy::Follow,
                    Links::NoFollow => SymlinkPolicy::NoFollow,
                    Links::Reject => SymlinkPolicy::Reject,
                },
                generated_paths_included: self.with_generated,
            },
            observed: FilesObserved {
                file_count: Some(lines.len() as u64),
            },
        });
        Ok(StateDigest::new(Digest::of(&text).to_string(), coverage))
    }

    fn selects(&self, path: &str) -> bool {
        (self.include.is_empty() || glob::any(&self.include, path))
            && !glob::any(&self.exclude, path)
            && (self.with_generated || !glob::any(&self.generated, path))
    }
}

struct Walk<'a> {
    asked: &'a SandboxFs,
    lines: Vec<(String, (&'static str, String))>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), Failure> {
        // Links that are followed may lead in a circle.
        if depth > MAX_DEPTH {
            return Err(failed(format!(
                "`{prefix}` is too deep, or a circle of links"
            )));
        }
        let wrong = |error| unreadable(&folder.display().to_string(), &error);
        for entry in fs::read_dir(folder).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let name = entry.file_name();
            let name = name.to_str().ok_or_else(|| {
                failed(format!(
                    "`{}` has a name that is no text",
                    entry.path().display()
                ))
            })?;
            self.entry(&entry.path(), &format!("{prefix}{name}"), depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, name: &str, depth: usize) -> Result<(), Failure> {
        let wrong = |error| unreadable(&path.display().to_string(), &error);
        let own = fs::symlink_metadata(path).map_err(wrong)?.file_type();
        if own.is_symlink() && self.asked.symlinks != Links::Follow {
            if !self.asked.selects(name) {
                return Ok(());
            }
            if self.asked.symlinks == Links::Reject {
                return Err(failed(format!("`{name}` is a link")));
            }
            let target = fs::read_link(path).map_err(wrong)?;
            let hash = Sha256::digest(target.as_os_str().as_encoded_bytes());
            self.push(name, "link", &hash);
            return Ok(());
        }
        let kind = fs::metadata(path).map_err(wrong)?.file_type();
        if kind.is_dir() {
            return self.folder(path, &format!("{name}/"), depth + 1);
        }
        if !self.asked.selects(name) {
            return Ok(());
        }
        if !kind.is_file() {
            return Err(failed(format!("`{name}` is neither a file nor a folder")));
        }
        self.push(name, "file", &content(path)?);
        Ok(())
    }

    fn push(&mut self, name: &str, kind: &'static str, hash: &[u8]) {
        let hash = base16ct::lower::encode_string(hash);
        self.lines.push((name.to_owned(), (kind, hash)));
    }
}

/// The SHA-256 of a file, in pieces.
fn content(path: &Path) -> Result<Vec<u8>, Failure> {
    let wrong = |error| unreadable(&path.display().to_string(), &error);
    let mut file = File::open(path).map_err(wrong)?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut piece).map_err(wrong)?;
        if read == 0 {
            return Ok(hasher.finalize().to_vec());
        }
        hasher.update(piece.get(..read).unwrap_or_default());
    }
}

const MAX_DEPTH: usize = 256;
