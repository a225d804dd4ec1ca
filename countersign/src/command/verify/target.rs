//! What is to be verified.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use countersign_pack::archive::looks_like_pack;
use countersign_store::Folder;

use crate::errors::{Code, Failure};
use crate::input;

pub(super) enum Target {
    Folder(Folder),
    Database(PathBuf),
    /// An evidence pack, by its name.
    Pack(String, Box<dyn BufRead + Send>),
    /// Exported events, by their name.
    Stream(String, Box<dyn BufRead + Send>),
}

impl Target {
    /// Tells by how it begins what a file, a folder or `-` is.
    pub(super) fn of(file: &str) -> Result<Self, Failure> {
        let path = Path::new(file);
        let is_standard_input = file == "-";
        if !is_standard_input && path.is_dir() {
            return Ok(Self::Folder(Folder::new(path)));
        }
        let (start, source) = input::begun(file, START)?;
        if looks_like_pack(&start) {
            return Ok(Self::Pack(file.to_owned(), source));
        }
        if !start.starts_with(SQLITE_MAGIC) {
            return Ok(Self::Stream(file.to_owned(), source));
        }
        match !is_standard_input && path.is_file() {
            true => Ok(Self::Database(path.to_owned())),
            false => Err(Failure::new(
                Code::Usage,
                "a log database cannot be read from a pipe: give the name of its file",
            )),
        }
    }
}

const START: u64 = 64;
const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";
