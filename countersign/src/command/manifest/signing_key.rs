//! The file that holds the key of a publisher: `{"algorithm":"ed25519","secret":"<hex>"}`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use countersign_canon::{Json, Limits};
use countersign_policy::manifest::signature::SigningKey;
use zeroize::Zeroizing;

use crate::errors::{Code, Failure};

pub(super) fn read(path: &str) -> Result<SigningKey, Failure> {
    let failed = |error: io::Error| refused(format!("cannot read `{path}`: {error}"));
    refuse_exposed(path).map_err(failed)?;
    let text = Zeroizing::new(fs::read(path).map_err(failed)?);
    parse(&text).ok_or_else(|| refused(format!("`{path}` is not a signing key")))
}

/// Makes a key and its file, which must not be there yet.
pub(super) fn create(path: &str) -> Result<SigningKey, Failure> {
    let mut secret = Zeroizing::new([0; 32]);
    getrandom::fill(secret.as_mut_slice())
        .map_err(|error| refused(format!("the system gives no randomness: {error}")))?;
    let hex = Zeroizing::new(base16ct::lower::encode_string(secret.as_slice()));
    let mut text = Zeroizing::new(Vec::with_capacity(128));
    text.extend_from_slice(b"{\"algorithm\":\"ed25519\",\"secret\":\"");
    text.extend_from_slice(hex.as_bytes());
    text.extend_from_slice(b"\"}\n");
    let mut file = private(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::new(Code::Exists, format!("`{path}` is there already"))
        }
        _ => refused(format!("cannot make `{path}`: {error}")),
    })?;
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    match written {
        Ok(()) => Ok(SigningKey::from_bytes(&secret)),
        Err(error) => {
            // Half a key is no key.
            let _ = fs::remove_file(path);
            Err(refused(format!("cannot write `{path}`: {error}")))
        }
    }
}

fn parse(text: &[u8]) -> Option<SigningKey> {
    let file = Json::admit(text, &Limits::event()).ok()?;
    if file.get("algorithm")?.as_str()? != "ed25519" {
        return None;
    }
    let mut secret = Zeroizing::new([0; 32]);
    let hex = file.get("secret")?.as_str()?;
    let written = base16ct::lower::decode(hex, secret.as_mut_slice())
        .ok()?
        .len();
    (written == secret.len()).then(|| SigningKey::from_bytes(&secret))
}

#[cfg(unix)]
fn refuse_exposed(path: &str) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path)?.permissions().mode() & 0o777;
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(io::Error::other(format!(
            "other users can read it (mode {mode:03o})"
        ))),
    }
}

#[cfg(not(unix))]
fn refuse_exposed(_: &str) -> io::Result<()> {
    Ok(())
}

fn private(path: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(Path::new(path))
}

fn refused(message: String) -> Failure {
    Failure::new(Code::SigningKey, message)
}
