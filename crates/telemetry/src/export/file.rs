//! The file: one line of OTLP JSON for each span.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

use crate::otlp::to_json;
use crate::span::Span;
use crate::{File, StartError};

pub(super) struct Lines {
    settings: File,
    file: fs::File,
    bytes: u64,
}

impl Lines {
    pub(super) fn open(settings: File) -> Result<Self, StartError> {
        let opened = open(&settings).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((bytes, file)) => Ok(Self {
                settings,
                file,
                bytes,
            }),
            Err(error) => Err(StartError::File {
                path: settings.path,
                error,
            }),
        }
    }

    pub(super) fn write(&mut self, spans: &[Span]) -> io::Result<()> {
        let mut text = Vec::new();
        for span in spans {
            text.extend_from_slice(&to_json(std::slice::from_ref(span)).to_sorted_ascii());
            text.push(b'\n');
        }
        if self.bytes > 0 && self.bytes + text.len() as u64 > self.settings.max_bytes {
            fs::rename(&self.settings.path, old(&self.settings))?;
            self.file = open(&self.settings)?;
            self.bytes = 0;
        }
        self.file.write_all(&text)?;
        self.bytes += text.len() as u64;
        Ok(())
    }
}

/// Nobody else may read it.
fn open(settings: &File) -> io::Result<fs::File> {
    if let Some(folder) = settings.path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&settings.path)
}

fn old(settings: &File) -> PathBuf {
    let mut name = settings.path.clone().into_os_string();
    name.push(".1");
    name.into()
}
