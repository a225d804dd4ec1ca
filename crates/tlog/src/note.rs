//! Signed notes: a text, an empty line, and one line per signature.

use std::fmt;

use crate::base64::{decode, encode};
use crate::key::{Key, KeyHint, is_name};

/// A text with signatures that nobody has checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<NoteSignature>,
}

/// One signature line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteSignature {
    /// The name of the key.
    pub name: String,
    /// The short id of the key.
    pub hint: KeyHint,
    /// What the key made of the text.
    pub signature: Vec<u8>,
}

/// Why bytes are no signed note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoteError {
    /// It is longer than any note.
    #[error("a note has at most {MAX_BYTES} bytes")]
    TooLong,
    /// It is not text, or has control characters.
    #[error("a note is text without control characters")]
    NotText,
    /// No empty line parts text and signatures.
    #[error("a note has a text, an empty line and signatures")]
    NoSignatures,
    /// A signature line is not of its form.
    #[error("signature line {0} of the note is malformed")]
    Line(usize),
    /// There are more signatures than anybody needs.
    #[error("a note has at most {MAX_SIGNATURES} signatures")]
    TooMany,
}

/// Why a note is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// None of the keys has signed it.
    #[error("no trusted key has signed the note")]
    Unsigned,
    /// A signature that names one of the keys is not by it.
    #[error("the signature by `{}` is wrong", .0.escape_debug())]
    Wrong(String),
}

impl Note {
    /// A note that nobody has signed yet. `None` if the text cannot be one: it must end in a line end
    /// and have no other control characters.
    pub fn new(text: String) -> Option<Self> {
        let fits = text.len() > 1 && text.ends_with('\n') && is_text(&text);
        fits.then_some(Self {
            text,
            signatures: Vec::new(),
        })
    }

    /// Reads a note. No signature is checked.
    pub fn read(bytes: &[u8]) -> Result<Self, NoteError> {
        if bytes.len() > MAX_BYTES {
            return Err(NoteError::TooLong);
        }
        let note = std::str::from_utf8(bytes).map_err(|_| NoteError::NotText)?;
        if !is_text(note) {
            return Err(NoteError::NotText);
        }
        let end = note.rfind("\n\n").ok_or(NoteError::NoSignatures)?;
        let (text, lines) = note.split_at_checked(end + 1).unwrap_or_default();
        let lines = lines
            .strip_prefix('\n')
            .and_then(|lines| lines.strip_suffix('\n'))
            .ok_or(NoteError::NoSignatures)?;
        let mut signatures = Vec::new();
        for (index, line) in lines.split('\n').enumerate() {
            if index >= MAX_SIGNATURES {
                return Err(NoteError::TooMany);
            }
            signatures.push(NoteSignature::read(line).ok_or(NoteError::Line(index + 1))?);
        }
        Ok(Self {
            text: text.to_owned(),
            signatures,
        })
    }

    /// The text, with its last line end.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signatures, none of them checked.
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Adds a signature, unless a line of this key is there already.
    pub fn add(&mut self, signature: NoteSignature) {
        let same =
            |known: &NoteSignature| known.hint == signature.hint && known.name == signature.name;
        if !self.signatures.iter().any(same) {
            self.signatures.push(signature);
        }
    }

    /// Holds the note against one key. The time is that of a cosignature.
    pub fn verify(&self, key: &Key) -> Result<Option<u64>, Refused> {
        let hint = key.hint();
        let mut found = None;
        for line in &self.signatures {
            if line.hint != hint || line.name != key.name() {
                continue;
            }
            match key.check(&self.text, &line.signature) {
                Some(time) => found = Some(time),
                // FAIL-CLOSED: a wrong signature beside a right one says that somebody was at work.
                None => return Err(Refused::Wrong(key.name().to_owned())),
            }
        }
        found.ok_or(Refused::Unsigned)
    }
}

impl NoteSignature {
    fn read(line: &str) -> Option<Self> {
        let (name, signature) = line.strip_prefix("— ")?.split_once(' ')?;
        let bytes = decode(signature)?;
        let (hint, signature) = bytes.split_first_chunk::<4>()?;
        (is_name(name) && !signature.is_empty()).then(|| Self {
            name: name.to_owned(),
            hint: KeyHint(*hint),
            signature: signature.to_vec(),
        })
    }
}

impl fmt::Display for NoteSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.hint.0.to_vec();
        bytes.extend_from_slice(&self.signature);
        write!(f, "— {} {}", self.name, encode(&bytes))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures
            .iter()
            .try_for_each(|signature| writeln!(f, "{signature}"))
    }
}

fn is_text(text: &str) -> bool {
    !text.bytes().any(|byte| byte < b' ' && byte != b'\n')
}

/// Far more than a checkpoint with a hundred post-quantum signatures.
const MAX_BYTES: usize = 1 << 20;
const MAX_SIGNATURES: usize = 128;
