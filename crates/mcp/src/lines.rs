//! Newline framing: cuts a stream of bytes into frames, with bounded memory.

use crate::kept::{Cut, Kept};

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
pub struct Lines(Kept);

impl Lines {
    /// Lines of at most this many bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self(Kept::new(max_bytes))
    }

    /// Takes the next bytes of the stream and gives each line that ends in them.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            self.0.push(line);
            each(self.take());
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.0.push(bytes);
    }

    /// What is left when the stream ends: a last line without an end.
    pub fn finish(mut self) -> Option<Line> {
        (!self.0.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> Line {
        match self.0.take() {
            Ok(whole) => Line::Whole(whole),
            Err(Cut { beginning, end }) => Line::TooLong { beginning, end },
        }
    }
}

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
            assert!(end.ends_with(b"xyz"), "{size}");
            assert!(beginning.iter().all(|byte| *byte == b'x'));
            assert_eq!(*next, whole("next"));
        }
    }

    #[test]
    fn the_limit_itself_passes() {
        assert_eq!(cut(3, &[b"abc\nde\n"]), [whole("abc"), whole("de")]);
        assert!(matches!(cut(3, &[b"abcd"])[..], [Line::TooLong { .. }]));
    }
}
