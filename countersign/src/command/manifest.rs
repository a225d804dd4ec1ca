//! `countersign manifest`

use clap::Subcommand;
use countersign_canon::Json;
use countersign_policy::manifest::Manifest as Document;

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format, inline};

mod init;
mod show;
mod sign;
mod signing_key;
mod trust;
mod validate;
mod verify;

pub(crate) use trust::Trust;

/// Manifests.
#[derive(Subcommand)]
pub(crate) enum Manifest {
    /// List every problem of manifests
    Validate(validate::Validate),
    /// Show a manifest in full, with every default filled in
    Show(show::Show),
    /// Check the files that belong to a manifest, and who signed it
    Verify(verify::Verify),
    /// Sign a manifest, or make a key for it
    Sign(sign::Sign),
    /// Propose a manifest for a folder of skills
    Init(init::Init),
}

impl Manifest {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        match self {
            Self::Validate(validate) => validate.run(format),
            Self::Show(show) => show.run(format),
            Self::Verify(verify) => verify.run(format),
            Self::Sign(sign) => sign.run(format),
            Self::Init(init) => init.run(format),
        }
    }
}

/// What somebody should know whose manifest counts for less than it seems to say.
pub(super) fn doubts(manifest: &Document) -> Option<String> {
    let tools: Vec<String> = manifest
        .unpinned_readers()
        .map(|tool| format!("`{}`", inline(tool)))
        .collect();
    (!tools.is_empty()).then(|| {
        format!(
            "declared as reading: {}; a tool of an MCP server counts as such only with `server` and `definition`, \
             which `countersign tools list` shows, and without them its calls are held",
            tools.join(", ")
        )
    })
}

/// Reads a manifest that must be valid.
pub(super) fn read(path: &str) -> Result<Document, Failure> {
    Document::read(&text(path)?).map_err(|error| {
        let problems = error.to_string().replace('\n', "\n  ");
        let message = format!("`{path}` is not a valid manifest:\n  {problems}");
        Failure::new(Code::Manifest, message)
    })
}

fn text(path: &str) -> Result<Vec<u8>, Failure> {
    input::file(path, MAX_BYTES)
}

/// A manifest as YAML, with what names it at the top.
fn yaml(manifest: &Json) -> String {
    let members = manifest.as_object().into_iter().flatten();
    let (mut head, body): (Vec<_>, Vec<_>) = members.partition(|(name, _)| place(name).is_some());
    head.sort_by_key(|(name, _)| place(name));
    let parts = head.into_iter().chain(body);
    let parts = parts.map(|(name, value)| output::yaml(&Json::object([(name, value.clone())])));
    parts.collect::<Vec<_>>().join("\n")
}

fn place(name: &str) -> Option<usize> {
    ["schema", "name", "version", "publisher"]
        .iter()
        .position(|known| *known == name)
}

/// One byte more than a manifest may have, so that it is the reader who refuses it.
const MAX_BYTES: usize = (1 << 20) + 1;
