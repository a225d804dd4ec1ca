//! Lines of marked spans, and the same as plain text.

use countersign_canon::Hash;

/// What a span is, for colours and classes. It carries no meaning that the text does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What the system says about the plan.
    Heading,
    /// What the system warns of.
    Warning,
    /// The edge that says whose line it is, and indentation.
    Gutter,
    /// Brackets, colons, quotes.
    Mark,
    /// A member's name.
    Key,
    /// Text of the plan or of the agent.
    Text,
    /// A character that does not show as itself.
    Escape,
    /// A number.
    Number,
    /// `null`, `true`, `false`.
    Literal,
    /// Counts of lines and characters.
    Note,
    /// Something is not shown.
    Truncation,
}

impl Kind {
    /// The name for a class or an API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Heading => "heading",
            Self::Warning => "warning",
            Self::Gutter => "gutter",
            Self::Mark => "mark",
            Self::Key => "key",
            Self::Text => "text",
            Self::Escape => "escape",
            Self::Number => "number",
            Self::Literal => "literal",
            Self::Note => "note",
            Self::Truncation => "truncation",
        }
    }
}

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span<'s> {
    /// What it is.
    pub kind: Kind,
    /// Its text.
    pub text: &'s str,
}

/// Lines of spans. The plain text is the spans one after the other, each line ended by a line feed;
/// it holds no other control character.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    text: String,
    /// Where each span ends in the text.
    spans: Vec<(Kind, usize)>,
    /// Where each line starts: in the text, and in the spans.
    lines: Vec<(usize, usize)>,
}

impl Sheet {
    /// The plain text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.page(0, usize::MAX)
    }

    /// How many pages of so many lines there are.
    pub fn pages(&self, lines_per_page: usize) -> usize {
        self.len().div_ceil(lines_per_page.max(1))
    }

    /// The lines of one page, counted from 0. Costs no more than the page.
    pub fn page(&self, number: usize, lines_per_page: usize) -> impl Iterator<Item = Line<'_>> {
        let first = number.saturating_mul(lines_per_page).min(self.len());
        let last = first.saturating_add(lines_per_page).min(self.len());
        (first..last).filter_map(|number| self.line(number))
    }

    /// One line, counted from 0.
    pub fn line(&self, number: usize) -> Option<Line<'_>> {
        let &(start, first_span) = self.lines.get(number)?;
        let next = self.lines.get(number + 1).copied();
        let (end, end_span) = next.unwrap_or((self.text.len(), self.spans.len()));
        Some(Line {
            text: self.text.get(start..end.checked_sub(1)?)?,
            spans: self.spans.get(first_span..end_span)?,
            start,
        })
    }

    /// SHA-256 over the plain text.
    pub fn sha256(&self) -> Hash {
        Hash::of(self.text.as_bytes())
    }

    pub(crate) fn begin_line(&mut self) {
        self.lines.push((self.text.len(), self.spans.len()));
    }

    pub(crate) fn push(&mut self, kind: Kind, text: &str) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        let line_start = self.lines.last().map_or(0, |(_, span)| *span);
        let is_first = self.spans.len() <= line_start;
        match self.spans.last_mut() {
            Some((last, end)) if *last == kind && !is_first => *end = self.text.len(),
            _ => self.spans.push((kind, self.text.len())),
        }
    }

    pub(crate) fn end_line(&mut self) {
        self.text.push('\n');
    }

    pub(crate) fn push_line(&mut self, kind: Kind, text: &str) {
        self.begin_line();
        self.push(kind, text);
        self.end_line();
    }

    pub(crate) fn append(&mut self, other: &Sheet) {
        let (text, spans) = (self.text.len(), self.spans.len());
        self.text.push_str(&other.text);
        let moved = other.spans.iter().map(|(kind, end)| (*kind, end + text));
        self.spans.extend(moved);
        let moved = other.lines.iter();
        self.lines
            .extend(moved.map(|(at, span)| (at + text, span + spans)));
    }
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'s> {
    text: &'s str,
    spans: &'s [(Kind, usize)],
    start: usize,
}

impl<'s> Line<'s> {
    /// Its plain text, without the line feed.
    pub fn text(&self) -> &'s str {
        self.text
    }

    /// Its spans.
    pub fn spans(&self) -> impl Iterator<Item = Span<'s>> + use<'s> {
        let (text, start) = (self.text, self.start);
        let mut from = 0;
        self.spans.iter().map(move |(kind, end)| {
            let to = end.saturating_sub(start);
            let span = text.get(from..to).unwrap_or_default();
            from = to;
            Span {
                kind: *kind,
                text: span,
            }
        })
    }
}
