//! An Agent Control manifest of this machine, ready to have a say.

use std::path::Path;

use countersign_acs::{
    ActivationError, Keeping, Limits, Manifest, ManifestError, Offline, Options, Policies, Runtime,
    Voice, VoiceError, load,
};

use crate::{Disk, Remote};

/// Why a manifest has no say.
#[derive(Debug, thiserror::Error)]
pub enum VoiceFileError {
    /// It is not valid, or something that it extends is not.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Its policies cannot be made ready.
    #[error(transparent)]
    Policies(#[from] ActivationError),
    /// It asks for something that nobody does here.
    #[error(transparent)]
    Voice(#[from] VoiceError),
}

/// Reads a manifest with everything that it extends and names. What was read is kept with it, so that
/// its decisions can be taken again when the files are long gone.
pub fn voice(path: &Path) -> Result<Voice, VoiceFileError> {
    let from = path.to_string_lossy();
    let manifest: Manifest = load(&from, None, &Disk, &Options::default())?;
    let disk = Disk;
    let keeping = Keeping::new(&disk);
    let policies = Policies::activate_within(&manifest, &keeping, &Limits::default())?;
    let policies = policies.with_adapter("http", Remote);
    let runtime = Runtime::new(manifest, policies).with_annotators(Offline::default().or(Remote));
    Ok(Voice::new(runtime, keeping.into_kept())?)
}
