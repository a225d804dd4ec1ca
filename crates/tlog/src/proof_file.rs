//! A proof for one entry as a text file: its place, its path, and the checkpoint with the root.

use std::fmt;

use countersign_canon::Hash;

use crate::base64::{decimal, decode, decode_hash, encode};
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::inclusion;
use crate::note::{Note, NoteError};

/// A `tlog-proof` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofFile {
    /// What the application adds; nothing vouches for it.
    pub extra: Option<Vec<u8>>,
    /// The place of the leaf.
    pub index: u64,
    /// Its path, from its neighbour up.
    pub path: Vec<Hash>,
    /// The signed checkpoint, not checked yet.
    pub note: Note,
}

/// Why a text is no proof, or a proof proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofFileError {
    /// A line is not what it must be.
    #[error("line {0} of the proof is malformed")]
    Line(usize),
    /// There is no checkpoint behind the path.
    #[error("the proof holds no signed checkpoint: {0}")]
    Note(#[from] NoteError),
    /// The note is no checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The path does not lead from the leaf to the root.
    #[error("the path does not lead from the entry to the root of the checkpoint")]
    Path,
}

impl ProofFile {
    /// Reads a proof. Nothing is checked but its form.
    pub fn read(text: &[u8]) -> Result<Self, ProofFileError> {
        let text = std::str::from_utf8(text).map_err(|_| ProofFileError::Line(1))?;
        let (head, note) = text.split_once("\n\n").ok_or(ProofFileError::Line(1))?;
        let mut lines = (1..).zip(head.split('\n')).peekable();
        if lines.next().is_none_or(|(_, line)| line != FIRST_LINE) {
            return Err(ProofFileError::Line(1));
        }
        let is_extra = |line: &(usize, &str)| line.1.starts_with("extra ");
        let extra = lines.next_if(is_extra).map(|(number, line)| {
            let bytes = line.strip_prefix("extra ").and_then(decode);
            bytes.ok_or(ProofFileError::Line(number))
        });
        let (number, index) = lines.next().unwrap_or((2, ""));
        let index = index.strip_prefix("index ").and_then(decimal);
        let index = index.ok_or(ProofFileError::Line(number))?;
        let path = lines
            .map(|(number, line)| decode_hash(line).ok_or(ProofFileError::Line(number)))
            .collect::<Result<Vec<_>, _>>()?;
        if path.len() > MAX_PATH {
            return Err(ProofFileError::Path);
        }
        Ok(Self {
            extra: extra.transpose()?,
            index,
            path,
            note: Note::read(note.as_bytes())?,
        })
    }

    /// The checkpoint, if the path leads from the leaf to its root. Who signed it is for the caller to
    /// check.
    pub fn checkpoint_for(&self, leaf: Hash) -> Result<Checkpoint, ProofFileError> {
        let checkpoint = Checkpoint::read(self.note.text())?;
        match inclusion::root(self.index, leaf, checkpoint.size, &self.path) {
            Some(root) if root == checkpoint.root => Ok(checkpoint),
            _ => Err(ProofFileError::Path),
        }
    }
}

impl fmt::Display for ProofFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}")?;
        if let Some(extra) = &self.extra {
            writeln!(f, "extra {}", encode(extra))?;
        }
        writeln!(f, "index {}", self.index)?;
        for hash in &self.path {
            writeln!(f, "{}", encode(hash.as_bytes()))?;
        }
        write!(f, "\n{}", self.note)
    }
}

const FIRST_LINE: &str = "c2sp.org/tlog-proof@v1";
/// No tree is higher.
const MAX_PATH: usize = 64;
