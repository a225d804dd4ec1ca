//! Checkpoints: the size and the root of a tree, as the text of a note.

use std::fmt;

use countersign_canon::Hash;

use crate::base64::{decimal, decode_hash, encode};
use crate::note::Note;

/// The state of a log at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which log.
    pub origin: String,
    /// How many leaves its tree has.
    pub size: u64,
    /// The root of the tree.
    pub root: Hash,
    /// What else the log says, one statement a line; none of them empty.
    pub extensions: Vec<String>,
}

/// Why a text is no checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The first line names no log.
    #[error("a checkpoint begins with the name of its log")]
    Origin,
    /// The second line is no size.
    #[error("the second line of a checkpoint is a whole number without leading zeros")]
    Size,
    /// The third line is no root.
    #[error("the third line of a checkpoint is a SHA-256 value in base 64")]
    Root,
    /// A further line is empty.
    #[error("a checkpoint has no empty lines")]
    Extension,
}

impl Checkpoint {
    /// Reads the text of a note, signed or not.
    pub fn read(text: &str) -> Result<Self, CheckpointError> {
        let mut lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
        let origin = lines.next().filter(|line| !line.is_empty());
        let size = lines.next().and_then(decimal);
        let root = lines.next().and_then(decode_hash);
        let extensions: Vec<String> = lines.map(str::to_owned).collect();
        if extensions.iter().any(String::is_empty) || !text.ends_with('\n') {
            return Err(CheckpointError::Extension);
        }
        Ok(Self {
            origin: origin.ok_or(CheckpointError::Origin)?.to_owned(),
            size: size.ok_or(CheckpointError::Size)?,
            root: root.ok_or(CheckpointError::Root)?,
            extensions,
        })
    }

    /// The note that is signed. `None` if the origin or an extension is no line of a note.
    pub fn to_note(&self) -> Option<Note> {
        let text = self.to_string();
        let is_one_reading = Self::read(&text).as_ref() == Ok(self);
        is_one_reading.then(|| Note::new(text)).flatten()
    }

    /// What follows the name in the extension line with this name.
    pub fn extension(&self, name: &str) -> Option<&str> {
        let mut found = self.extensions.iter().filter_map(|line| {
            let (first, rest) = line.split_once(' ')?;
            (first == name).then_some(rest)
        });
        let first = found.next();
        // Two lines of one name have no meaning.
        first.filter(|_| found.next().is_none())
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = encode(self.root.as_bytes());
        writeln!(f, "{}\n{}\n{root}", self.origin, self.size)?;
        self.extensions
            .iter()
            .try_for_each(|line| writeln!(f, "{line}"))
    }
}
