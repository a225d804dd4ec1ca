//! Bundles of policies from an address: a tar archive, compressed with gzip.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;

/// Whether bytes claim to be such a bundle.
pub(super) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// The files of a bundle, in its order.
///
/// SECURITY: nothing is written anywhere, so a name can do no harm; names that lead out of the bundle,
/// links and everything else that two readers could understand differently are refused all the same.
pub(super) fn files(bytes: &[u8]) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let mut archive = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(MOST_BYTES as u64 + 1);
    reader
        .read_to_end(&mut archive)
        .map_err(|error| format!("the bundle cannot be unpacked: {error}"))?;
    if archive.len() > MOST_BYTES {
        return Err(format!(
            "the bundle unpacks to more than {MOST_BYTES} bytes"
        ));
    }
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let mut rest = archive.as_slice();
    loop {
        let Some((header, behind)) = rest.split_first_chunk::<BLOCK>() else {
            return Err("the bundle ends in the middle".to_owned());
        };
        if header.iter().all(|byte| *byte == 0) {
            return Ok(files);
        }
        let entry = Entry::read(header)?;
        let padded = entry.size.div_ceil(BLOCK).saturating_mul(BLOCK);
        let content = behind.get(..entry.size);
        let content = content.ok_or("the bundle ends in the middle of a file")?;
        rest = behind
            .get(padded..)
            .ok_or("the bundle ends in the middle")?;
        if entry.is_folder {
            continue;
        }
        if files.iter().any(|(name, _)| *name == entry.name) {
            return Err(format!("`{}` is there twice", entry.name.display()));
        }
        if files.len() >= MOST_FILES {
            return Err(format!("the bundle has more than {MOST_FILES} files"));
        }
        files.push((entry.name, content.to_vec()));
    }
}

struct Entry {
    name: PathBuf,
    size: usize,
    is_folder: bool,
}

impl Entry {
    fn read(header: &[u8; BLOCK]) -> Result<Self, String> {
        let part = |from: usize, to: usize| header.get(from..to).unwrap_or_default();
        let sum = |at: usize, byte: u8| match (148..156).contains(&at) {
            true => u64::from(b' '),
            false => u64::from(byte),
        };
        let computed: u64 = header
            .iter()
            .enumerate()
            .map(|(at, byte)| sum(at, *byte))
            .sum();
        if octal(part(148, 156)) != Some(computed) {
            return Err("the bundle has a damaged header".to_owned());
        }
        let prefix = match part(257, 262) == b"ustar" {
            true => text(part(345, 500))?,
            false => "",
        };
        let name = Path::new(prefix).join(text(part(0, 100))?.trim_start_matches('/'));
        let parts = name.components().filter(|part| *part != Component::CurDir);
        let name = parts
            .map(|part| match part {
                Component::Normal(part) => Ok(part),
                _ => Err(format!("`{}` leads out of the bundle", name.display())),
            })
            .collect::<Result<PathBuf, String>>()?;
        let is_folder = match part(156, 157) {
            [b'0' | 0] => false,
            [b'5'] => true,
            _ => {
                return Err(format!(
                    "`{}` is neither a file nor a folder",
                    name.display()
                ));
            }
        };
        let size = octal(part(124, 136)).and_then(|size| usize::try_from(size).ok());
        let size = size.filter(|size| *size <= MOST_BYTES);
        Ok(Self {
            size: size.ok_or_else(|| format!("`{}` has no size", name.display()))?,
            name,
            is_folder,
        })
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let field = field.trim_ascii_start();
    let end = field.iter().position(|byte| matches!(byte, 0 | b' '));
    let digits = field.get(..end.unwrap_or(field.len()))?;
    let digits = std::str::from_utf8(digits).ok()?;
    match digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        true => None,
        false => u64::from_str_radix(digits, 8).ok(),
    }
}

fn text(field: &[u8]) -> Result<&str, String> {
    let end = field.iter().position(|byte| *byte == 0);
    let bytes = field.get(..end.unwrap_or(field.len())).unwrap_or_default();
    std::str::from_utf8(bytes).map_err(|_| "a name in the bundle is not UTF-8".to_owned())
}

const BLOCK: usize = 512;
const MOST_FILES: usize = 256;
const MOST_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn header(name: &str, size: usize, kind: u8) -> Vec<u8> {
        let mut header = vec![0; BLOCK];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        header[156] = kind;
        header[148..156].fill(b' ');
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        header
    }

    fn packed(entries: &[(&str, &str, u8)]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (name, content, kind) in entries {
            archive.extend(header(name, content.len(), *kind));
            archive.extend(content.as_bytes());
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        archive.resize(archive.len() + 2 * BLOCK, 0);
        gzip(&archive)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::default();
        let mut out = flate2::write::GzEncoder::new(Vec::new(), level);
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn files_come_out_and_folders_do_not() {
        let bundle = packed(&[
            ("./rules/", "", b'5'),
            ("/rules/a.rego", "package a", b'0'),
            ("./data.json", "{}", 0),
        ]);
        assert!(is_archive(&bundle));
        let found = files(&bundle).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(names, ["rules/a.rego", "data.json"]);
        assert_eq!(found[0].1, b"package a");
    }

    #[test]
    fn what_could_mislead_is_refused() {
        for (entries, problem) in [
            (vec![("../a.rego", "", b'0')], "leads out"),
            (vec![("a.rego", "", b'2')], "neither"),
            (vec![("a.rego", "", b'x')], "neither"),
            (vec![("a.rego", "", b'0'), ("./a.rego", "", b'0')], "twice"),
        ] {
            let error = files(&packed(&entries)).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
        let whole = packed(&[("a.rego", "package a", b'0')]);
        assert!(files(&whole[..whole.len() - 9]).is_err());
        let mut damaged = vec![0; BLOCK];
        damaged[0] = b'a';
        assert!(files(&gzip(&damaged)).unwrap_err().contains("damaged"));
        assert!(
            files(&gzip(&vec![0; MOST_BYTES + 1]))
                .unwrap_err()
                .contains("more than")
        );
    }
}
