//! Newline framing: cuts a stream of bytes into frames, with bounded memory.

/// Something that was cut out of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// One line, without its end.
    Whole(Vec<u8>),
    /// A line over the limit. Its beginning and its end are kept, so that an answer can name its id; the
    /// rest was let go as it came.
    TooLong {
        /// The first bytes.
        beginning: Vec<u8>,
        /// The last ones.
        end: Vec<u8>,
    },
}

impl Line {
    /// The bytes that are held.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::TooLong { beginning, end } => beginning.len() + end.len(),
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a reader that ends lines at carriage returns sees one line too, as many do: the one that
    /// may stand before the line feed counts for nothing.
    pub(crate) fn is_one(bytes: &[u8]) -> bool {
        let before = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        memchr::memchr(b'\r', before).is_none()
    }

    /// Whether there is nothing but white space in it.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.iter().all(u8::is_ascii_whitespace),
            Self::TooLong { .. } => false,
        }
    }
}

/// Cuts lines.
#[derive(Debug)]
pub struct Lines {
    max_bytes: usize,
    held: Vec<u8>,
    /// The line is over the limit, and its end has not come.
    skipping: bool,
    /// What came last of such a line.
    end: Vec<u8>,
}

impl Lines {
    /// Lines of at most this many bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            held: Vec::new(),
            skipping: false,
            end: Vec::new(),
        }
    }

    /// Takes the next bytes of the stream and gives each line that ends in them.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            self.hold(line);
            each(self.take());
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.hold(bytes);
    }

    /// What is left when the stream ends: a last line without an end.
    pub fn finish(mut self) -> Option<Line> {
        (!self.held.is_empty()).then(|| self.take())
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.skipping {
            return self.hold_end(bytes);
        }
        if self.held.len() + bytes.len() <= self.max_bytes {
            self.held.extend_from_slice(bytes);
            return;
        }
        let last = self.held.len().saturating_sub(END);
        self.end = self.held.get(last..).unwrap_or_default().to_vec();
        self.hold_end(bytes);
        let room = BEGINNING.saturating_sub(self.held.len());
        self.held.extend(bytes.iter().take(room));
        self.held.truncate(BEGINNING);
        self.held.shrink_to_fit();
        self.skipping = true;
    }

    fn hold_end(&mut self, bytes: &[u8]) {
        let last = bytes.len().saturating_sub(END);
        if last > 0 {
            self.end.clear();
        }
        self.end
            .extend_from_slice(bytes.get(last..).unwrap_or_default());
        if self.end.len() > 2 * END {
            self.end.drain(..self.end.len() - END);
        }
    }

    fn take(&mut self) -> Line {
        let held = std::mem::take(&mut self.held);
        let end = std::mem::take(&mut self.end);
        match std::mem::take(&mut self.skipping) {
            false => Line::Whole(held),
            true => Line::TooLong {
                beginning: held,
                end,
            },
        }
    }
}

const BEGINNING: usize = 4096;
const END: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(max_bytes: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let mut lines = Lines::new(max_bytes);
        let mut found = Vec::new();
        for chunk in chunks {
            lines.feed(chunk, |line| found.push(line));
        }
        found.extend(lines.finish());
        found
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_are_cut_wherever_the_chunks_end() {
        let stream = b"one\n\ntwo\r\nthree";
        let expect = [whole("one"), whole(""), whole("two\r"), whole("three")];
        for size in 1..=stream.len() {
            let chunks: Vec<&[u8]> = stream.chunks(size).collect();
            assert_eq!(cut(100, &chunks), expect, "{size}");
        }
    }

    #[test]
    fn a_long_line_is_let_go_and_the_next_one_is_read() {
        let long = vec![b'x'; 100_000];
        let stream = [&long[..], b"yz\nnext\n"].concat();
        for size in [1, 7, 4096, stream.len()] {
            let chunks: Vec<&[u8]> = stream.chunks(size).collect();
            let lines = cut(1000, &chunks);
            let [Line::TooLong { beginning, end }, next] = lines.as_slice() else {
                panic!("{lines:?}");
            };
            assert!(end.len() <= 2 * END && end.ends_with(b"xyz"), "{size}");
            assert!(beginning.len() <= BEGINNING && beginning.iter().all(|byte| *byte == b'x'));
            assert_eq!(*next, whole("next"));
        }
    }

    #[test]
    fn the_limit_itself_passes() {
        assert_eq!(cut(3, &[b"abc\nde\n"]), [whole("abc"), whole("de")]);
        assert!(matches!(cut(3, &[b"abcd"])[..], [Line::TooLong { .. }]));
    }

    #[test]
    fn memory_stays_bounded_while_a_line_goes_on() {
        let mut lines = Lines::new(10_000);
        for _ in 0..10_000 {
            lines.feed(&[b'x'; 1000], |_| panic!("no line has ended"));
            assert!(lines.held.capacity() <= 20_000);
        }
    }
}
