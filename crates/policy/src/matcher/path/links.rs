//! Paths as the system would walk them, with somebody else looking at the disk.

use super::{LONGEST, NormalPath, PathError, components, start};

/// What a path turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Something else than a symbolic link, or nothing at all.
    No,
    /// A symbolic link with this target.
    To(String),
    /// It could not be examined.
    Unknown,
}

impl NormalPath {
    /// Reads a path and follows symbolic links, asking `examine` about every component on the way,
    /// so that `link/..` is the folder the link leads into and not the one it stands in.
    ///
    /// `base` has to be free of links already. What `examine` sees may change before the path is used; the caller has to open what was
    /// examined, or to run the tool where nobody else writes.
    pub fn resolve(
        text: &str,
        base: Option<&NormalPath>,
        mut examine: impl FnMut(&NormalPath) -> Link,
    ) -> Result<Self, PathError> {
        let mut path = start(text, base)?;
        let mut todo: Vec<String> = reversed(text);
        let mut links = 0;
        while let Some(component) = todo.pop() {
            let parent = path.clone();
            path.step(&component)?;
            if path.as_str().len() <= parent.as_str().len() {
                continue;
            }
            match examine(&path) {
                Link::No => {}
                Link::Unknown => return Err(PathError::Unexamined),
                Link::To(target) => {
                    links += 1;
                    check_target(&target, links)?;
                    path = match target.starts_with('/') {
                        true => NormalPath::root(),
                        false => parent,
                    };
                    todo.extend(reversed(&target));
                }
            }
        }
        Ok(path)
    }
}

fn reversed(text: &str) -> Vec<String> {
    components(text).rev().map(str::to_owned).collect()
}

/// A target comes from the disk and is walked by its letters; only what no path can hold is refused.
fn check_target(target: &str, links: usize) -> Result<(), PathError> {
    if links > MOST_LINKS {
        return Err(PathError::TooManyLinks);
    }
    match target {
        "" => Err(PathError::Empty),
        _ if target.len() > LONGEST => Err(PathError::TooLong),
        _ if target.contains(char::is_control) => Err(PathError::Character),
        _ => Ok(()),
    }
}

/// As many as Linux follows.
const MOST_LINKS: usize = 40;
