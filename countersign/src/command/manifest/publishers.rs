//! The file that lists the publishers whose manifests are accepted.
//!
//! One a line: `ed25519:<public key in hex> <name>`. Blank lines and lines that start with `#` say
//! nothing.

use countersign_policy::manifest::signature::{Publishers, VerifyingKey};

use crate::errors::{Code, Failure};
use crate::input;

pub(super) fn read(path: &str) -> Result<Publishers, Failure> {
    let text = input::file(path, MAX_BYTES)?;
    let text = String::from_utf8_lossy(&text);
    let mut publishers = Publishers::default();
    for (text, number) in text.lines().zip(1..) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (name, key) = parse(text).ok_or_else(|| {
            let message = format!("`{path}` does not list publishers");
            Failure::new(Code::Publishers, message).at_line(number)
        })?;
        publishers.allow(name, key);
    }
    Ok(publishers)
}

/// The line that lists a publisher.
pub(super) fn line(name: &str, key: &VerifyingKey) -> String {
    format!(
        "{PREFIX}{} {name}",
        base16ct::lower::encode_string(key.as_bytes())
    )
}

fn parse(line: &str) -> Option<(&str, VerifyingKey)> {
    let (key, name) = line.strip_prefix(PREFIX)?.split_once(' ')?;
    let mut bytes = [0; 32];
    let written = base16ct::lower::decode(key, &mut bytes).ok()?.len();
    let key = VerifyingKey::from_bytes(&bytes).ok()?;
    let name = name.trim();
    (written == bytes.len() && !name.is_empty() && !key.is_weak()).then_some((name, key))
}

const PREFIX: &str = "ed25519:";
const MAX_BYTES: usize = 1 << 20;
