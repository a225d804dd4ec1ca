//! Bytes that come piece by piece, up to a limit.

/// What has come. Of more than it may be, the beginning and the end are kept, so that an answer can name its id;
/// the rest is let go as it comes.
#[derive(Debug)]
pub(crate) struct Kept {
    max_bytes: usize,
    held: Vec<u8>,
    /// What came last of something that is over the limit.
    end: Option<Vec<u8>>,
}

/// What is left of something that was too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) beginning: Vec<u8>,
    pub(crate) end: Vec<u8>,
}

impl Kept {
    /// At most this many bytes.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            held: Vec::new(),
            end: None,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match &mut self.end {
            Some(end) => push_last(end, bytes),
            None if self.held.len() + bytes.len() <= self.max_bytes => {
                self.held.extend_from_slice(bytes);
            }
            None => self.cut(bytes),
        }
    }

    /// The same where there is no room for more than the two ends.
    pub(crate) fn cut(&mut self, bytes: &[u8]) {
        let end = self.end.get_or_insert_default();
        push_last(end, &self.held);
        push_last(end, bytes);
        let room = BEGINNING.saturating_sub(self.held.len());
        self.held.extend(bytes.iter().take(room));
        self.held.truncate(BEGINNING);
        self.held.shrink_to_fit();
    }

    /// How many bytes there are; `None` where only the two ends are kept.
    pub(crate) fn len(&self) -> Option<usize> {
        self.end.is_none().then_some(self.held.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// All of it; begins anew.
    pub(crate) fn take(&mut self) -> Result<Vec<u8>, Cut> {
        let held = std::mem::take(&mut self.held);
        match self.end.take() {
            None => Ok(held),
            Some(end) => Err(Cut {
                beginning: held,
                end,
            }),
        }
    }
}

/// Keeps the last bytes: as many as an id needs, or a few more.
fn push_last(end: &mut Vec<u8>, bytes: &[u8]) {
    let last = bytes.len().saturating_sub(END);
    if last > 0 {
        end.clear();
    }
    end.extend_from_slice(bytes.get(last..).unwrap_or_default());
    if end.len() > 2 * END {
        end.drain(..end.len() - END);
    }
}

/// What is kept in any case.
pub(crate) const BEGINNING: usize = 4096;
const END: usize = 1024;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop at once")]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_known_by_its_two_ends_however_it_comes() {
        let all: Vec<u8> = (0..50_000_u32).map(|number| number as u8).collect();
        for size in [1, 7, END, END + 1, BEGINNING, all.len()] {
            for limit in [0, 5, 1000, all.len() - 1] {
                let mut kept = Kept::new(limit);
                for chunk in all.chunks(size) {
                    kept.push(chunk);
                    assert!(kept.held.capacity() <= BEGINNING.max(2 * limit));
                }
                let Cut { beginning, end } = kept.take().unwrap_err();
                assert!(all.starts_with(&beginning) && beginning.len() <= BEGINNING);
                assert!(all.ends_with(&end) && (END..=2 * END).contains(&end.len()));
                kept.push(b"");
                assert!(kept.is_empty());
            }
            let mut kept = Kept::new(all.len());
            all.chunks(size).for_each(|chunk| kept.push(chunk));
            assert_eq!(kept.take().unwrap(), all);
        }
    }
}
