//! The container: a tar file with one reading.
//!
//! Only what a plain POSIX archive needs: regular files, fixed owner, mode and time, names of lower-case
//! letters, digits and a few marks. A header is compared with the one that its name and size give, so
//! there is no byte in it that could say something else; behind the members come two empty blocks, and
//! nothing after them.

/// How much a pack may ask of its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest file.
    pub max_bytes: usize,
    /// The most members.
    pub max_members: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 1 << 30,
            max_members: 256,
        }
    }
}

/// A member as it stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its content.
    pub content: &'a [u8],
}

/// Why bytes are no pack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The file is larger than the limit.
    #[error("the pack is larger than {0} bytes")]
    TooLarge(usize),
    /// There are more members than the limit.
    #[error("the pack has more than {0} members")]
    TooMany(usize),
    /// A header is not one that a pack has.
    #[error("the header at byte {0} is not that of a plain file in a pack")]
    Header(usize),
    /// A name is not one that a pack has.
    #[error("the name at byte {0} is not that of a member of a pack")]
    Name(usize),
    /// A member comes twice.
    #[error("the member `{0}` comes twice")]
    Twice(String),
    /// The file ends within a member.
    #[error("the pack ends within a member")]
    Cut,
    /// Bytes between members, or after the last one, are not empty.
    #[error("there are bytes at {0} that belong to no member")]
    Foreign(usize),
    /// A member is too large for the container.
    #[error("the member `{0}` is too large")]
    MemberTooLarge(String),
}

/// The file with these members, in this order.
pub fn write(members: &[(String, Vec<u8>)]) -> Result<Vec<u8>, ArchiveError> {
    let total = members.iter().map(|(_, content)| content.len() + 2 * BLOCK);
    let mut file = Vec::with_capacity(total.sum::<usize>() + 2 * BLOCK);
    for (name, content) in members {
        if !is_name(name) {
            return Err(ArchiveError::Name(file.len()));
        }
        let header = header(name, content.len());
        let header = header.ok_or_else(|| ArchiveError::MemberTooLarge(name.clone()))?;
        file.extend_from_slice(&header);
        file.extend_from_slice(content);
        file.resize(file.len().next_multiple_of(BLOCK), 0);
    }
    file.resize(file.len() + 2 * BLOCK, 0);
    Ok(file)
}

/// The members of a file, where they stand.
pub fn read<'a>(file: &'a [u8], limits: &Limits) -> Result<Vec<Member<'a>>, ArchiveError> {
    if file.len() > limits.max_bytes {
        return Err(ArchiveError::TooLarge(limits.max_bytes));
    }
    let mut members: Vec<Member<'a>> = Vec::new();
    let mut at = 0;
    loop {
        let block = file.get(at..at + BLOCK).ok_or(ArchiveError::Cut)?;
        if block.iter().all(|byte| *byte == 0) {
            let rest = file.get(at + BLOCK..).unwrap_or_default();
            return match rest.len() == BLOCK && rest.iter().all(|byte| *byte == 0) {
                true => Ok(members),
                false => Err(ArchiveError::Foreign(at + BLOCK)),
            };
        }
        if members.len() == limits.max_members {
            return Err(ArchiveError::TooMany(limits.max_members));
        }
        let (name, size) = read_header(block).ok_or(ArchiveError::Header(at))?;
        // SECURITY: no parent folders, no absolute paths, nothing that a file system could take for
        // another name.
        if !is_name(name) {
            return Err(ArchiveError::Name(at));
        }
        if members.iter().any(|member| member.name == name) {
            return Err(ArchiveError::Twice(name.to_owned()));
        }
        let start = at + BLOCK;
        let end = start.checked_add(size).ok_or(ArchiveError::Cut)?;
        let content = file.get(start..end).ok_or(ArchiveError::Cut)?;
        at = end.next_multiple_of(BLOCK);
        let padding = file.get(end..at).ok_or(ArchiveError::Cut)?;
        if padding.iter().any(|byte| *byte != 0) {
            return Err(ArchiveError::Foreign(end));
        }
        members.push(Member { name, content });
    }
}

/// Whether the first bytes of a file are those of a pack, which begins with its statement.
pub fn looks_like_pack(start: &[u8]) -> bool {
    let name = crate::member::STATEMENT.as_bytes();
    start.starts_with(name) && start.get(name.len()) == Some(&0)
}

/// Lower-case letters, digits, `-`, `_`, `.`, and `/` between parts that begin with a letter or digit.
fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        let first = part.bytes().next();
        first.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && part.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte)
            })
    };
    name.len() < NAME_LEN && !name.is_empty() && name.split('/').all(part)
}

fn read_header(block: &[u8]) -> Option<(&str, usize)> {
    let name = block.get(..NAME_LEN)?;
    let name = name.get(..name.iter().position(|byte| *byte == 0)?)?;
    let name = std::str::from_utf8(name).ok()?;
    let size = std::str::from_utf8(block.get(124..135)?).ok()?;
    let size = usize::from_str_radix(size, 8).ok()?;
    (header(name, size)?.as_slice() == block).then_some((name, size))
}

/// The one header of a member.
fn header(name: &str, size: usize) -> Option<[u8; BLOCK]> {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| {
        let place = header.get_mut(at..at + bytes.len())?;
        place.copy_from_slice(bytes);
        Some(())
    };
    if name.len() >= NAME_LEN || size > MAX_SIZE {
        return None;
    }
    put(0, name.as_bytes())?;
    put(100, b"0000644\0")?;
    put(108, b"0000000\0")?;
    put(116, b"0000000\0")?;
    put(124, format!("{size:011o}\0").as_bytes())?;
    put(136, b"00000000000\0")?;
    put(148, b"        ")?;
    put(156, b"0")?;
    put(257, b"ustar\x0000")?;
    put(329, b"0000000\0")?;
    put(337, b"0000000\0")?;
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    let place = header.get_mut(148..156)?;
    place.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(header)
}

const BLOCK: usize = 512;
const NAME_LEN: usize = 100;
/// What eleven octal digits hold.
const MAX_SIZE: usize = 0o77_777_777_777;

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]
mod tests {
    use super::*;

    fn members() -> Vec<(String, Vec<u8>)> {
        let sizes = [0, 1, 511, 512, 513, 5000];
        let name = |size| format!("folder/m-{size}.txt");
        sizes.map(|size| (name(size), vec![7; size])).into()
    }

    #[test]
    fn members_read_back() {
        let file = write(&members()).unwrap();
        assert_eq!(file, write(&members()).unwrap());
        let read = read(&file, &Limits::default()).unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|member| (member.name.to_owned(), member.content.to_vec()))
            .collect();
        assert_eq!(read, members());
    }

    /// Outside the contents, which the statement covers, no bit is free.
    #[test]
    fn every_flipped_bit_outside_contents_is_found() {
        let members = vec![
            ("a".to_owned(), vec![]),
            ("b/c.json".to_owned(), vec![1; 700]),
        ];
        let file = write(&members).unwrap();
        let content = 3 * BLOCK - BLOCK..3 * BLOCK - BLOCK + 700;
        for at in (0..file.len()).filter(|at| !content.contains(at)) {
            for bit in 0..8 {
                let mut changed = file.clone();
                changed[at] ^= 1 << bit;
                assert!(read(&changed, &Limits::default()).is_err(), "{at} {bit}");
            }
        }
        for end in 0..file.len() {
            assert!(
                read(&file[..end], &Limits::default()).is_err(),
                "cut at {end}"
            );
        }
        let longer = [file.as_slice(), &[0; BLOCK]].concat();
        assert!(read(&longer, &Limits::default()).is_err());
    }

    #[test]
    fn names_that_play_tricks_are_refused() {
        let long = "a".repeat(100);
        for name in [
            "", "/a", "a/", "../a", "a/../b", "./a", "a//b", ".a", "A", "a b", "a\\b", "é", &long,
        ] {
            let refused = write(&[(name.to_owned(), Vec::new())]);
            assert!(matches!(refused, Err(ArchiveError::Name(_))), "{name}");
            if let Some(mut file) = header(name, 0).map(|header| header.to_vec()) {
                file.resize(3 * BLOCK, 0);
                let refused = read(&file, &Limits::default());
                assert!(
                    matches!(
                        refused,
                        Err(ArchiveError::Name(0) | ArchiveError::Header(0))
                    ),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn limits_hold() {
        let limits = |max_bytes, max_members| Limits {
            max_bytes,
            max_members,
        };
        let file = write(&members()).unwrap();
        assert_eq!(
            read(&file, &limits(100, 10)),
            Err(ArchiveError::TooLarge(100))
        );
        assert_eq!(
            read(&file, &limits(1 << 20, 5)),
            Err(ArchiveError::TooMany(5))
        );
        let twice = write(&[("a".to_owned(), vec![]), ("a".to_owned(), vec![])]).unwrap();
        assert_eq!(
            read(&twice, &Limits::default()),
            Err(ArchiveError::Twice("a".to_owned()))
        );
        let mut bomb = header("a", MAX_SIZE).unwrap().to_vec();
        bomb.resize(3 * BLOCK, 0);
        assert_eq!(read(&bomb, &Limits::default()), Err(ArchiveError::Cut));
    }
}
