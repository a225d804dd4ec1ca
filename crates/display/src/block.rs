//! Long and multi-line texts: numbered lines, wrapped so that nothing is out of sight.

use crate::character::is_mark;
use crate::piece::{Piece, Show, pieces};
use crate::quoted::{take, truncated};
use crate::render::View;
use crate::sheet::{Kind, Sheet};

/// A sheet whose lines all begin with the same edge.
pub(crate) struct Canvas {
    pub(crate) sheet: Sheet,
    edge: &'static str,
}

impl Canvas {
    pub(crate) fn new(edge: &'static str) -> Self {
        Self {
            sheet: Sheet::default(),
            edge,
        }
    }

    /// Begins a line so many levels deep. Deep levels are written as a number: indentation must not
    /// push text out of sight.
    pub(crate) fn open(&mut self, depth: usize) {
        self.sheet.begin_line();
        self.sheet.push(Kind::Gutter, self.edge);
        for _ in 0..depth.min(DEEPEST_INDENT) {
            self.sheet.push(Kind::Gutter, INDENT);
        }
        if depth > DEEPEST_INDENT {
            self.sheet.push(Kind::Gutter, &format!("({depth}) "));
        }
    }

    pub(crate) fn push(&mut self, kind: Kind, text: &str) {
        self.sheet.push(kind, text);
    }

    pub(crate) fn close(&mut self) {
        self.sheet.end_line();
    }
}

/// How long a text is, in three ways.
pub(crate) struct Extent {
    pub(crate) lines: usize,
    pub(crate) chars: usize,
    pub(crate) widest: usize,
}

impl Extent {
    pub(crate) fn of(text: &str) -> Self {
        let mut extent = Self {
            lines: 0,
            chars: 0,
            widest: 0,
        };
        for line in text.split('\n') {
            let width = line.chars().count();
            extent.lines += 1;
            extent.chars += width + 1;
            extent.widest = extent.widest.max(width);
        }
        extent.chars -= 1;
        extent
    }

    pub(crate) fn note(&self) -> String {
        let Self {
            lines,
            chars,
            widest,
        } = self;
        format!(
            "text, {}, {}, widest line {widest}",
            plural(*lines, "line"),
            plural(*chars, "char")
        )
    }
}

/// `1 line`, `2 lines`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// Writes the lines of a text; `false` if some of it is left out.
pub(crate) fn write(
    canvas: &mut Canvas,
    text: &str,
    (depth, kind): (usize, Kind),
    view: View,
) -> bool {
    let mut writer = Writer {
        canvas,
        depth,
        kind,
    };
    match view {
        View::Summary if is_long(text) => {
            let (head, tail) = (head(text), tail(text));
            writer.lines(head, 1, false);
            writer.marker(text);
            let tail_start = text.len() - tail.len();
            let before = text.get(..tail_start).unwrap_or_default();
            let number = before.split('\n').count();
            let is_inside = !before.ends_with('\n');
            writer.lines(tail, number, is_inside);
            false
        }
        _ => {
            writer.lines(text, 1, false);
            true
        }
    }
}

struct Writer<'c> {
    canvas: &'c mut Canvas,
    depth: usize,
    kind: Kind,
}

impl Writer<'_> {
    /// Lines from a number on; the first may be the rest of one that began before.
    fn lines(&mut self, text: &str, mut number: usize, mut is_inside: bool) {
        let mut lines = text.split('\n').peekable();
        while let Some(line) = lines.next() {
            let mut empty = usize::from(line.is_empty() && !is_inside);
            while empty > 0 && lines.next_if(|next| next.is_empty()).is_some() {
                empty += 1;
            }
            match empty {
                0 => self.line(line, number, is_inside),
                1..=MOST_EMPTY => (0..empty).for_each(|more| self.line("", number + more, false)),
                _ => self.empty(empty),
            }
            number += empty.max(1);
            is_inside = false;
        }
    }

    fn line(&mut self, line: &str, number: usize, is_inside: bool) {
        self.gutter(match is_inside {
            true => format!("{number:>5}┊"),
            false => format!("{number:>5}┃"),
        });
        let mut room = WIDTH;
        for piece in pieces(line, Show::Text) {
            match piece {
                Piece::Plain(plain) => self.plain(plain, &mut room),
                Piece::Escaped(escape) => {
                    let text = escape.text();
                    let width = text.chars().count();
                    self.make_room(width, &mut room);
                    self.canvas.push(Kind::Escape, &text);
                    room = room.saturating_sub(width);
                }
            }
        }
        self.canvas.close();
    }

    fn plain(&mut self, mut plain: &str, room: &mut usize) {
        while !plain.is_empty() {
            self.make_room(2, room);
            let (fits, rest) = split_at_width(plain, room);
            self.canvas.push(self.kind, fits);
            plain = rest;
        }
    }

    fn make_room(&mut self, width: usize, room: &mut usize) {
        if *room < width {
            self.canvas.close();
            self.gutter(format!("{:>5}┊", ""));
            *room = WIDTH;
        }
    }

    fn empty(&mut self, count: usize) {
        self.gutter(format!("{:>5}⋮", ""));
        self.canvas
            .push(Kind::Note, &format!(" {count} empty lines"));
        self.canvas.close();
    }

    fn marker(&mut self, text: &str) {
        self.gutter(format!("{:>5}✂", ""));
        self.canvas
            .push(Kind::Truncation, &format!(" {}", truncated(text)));
        self.canvas.close();
    }

    fn gutter(&mut self, gutter: String) {
        self.canvas.open(self.depth);
        self.canvas.push(Kind::Gutter, &gutter);
    }
}

/// What fits into the room, and the rest. A mark stays with its letter; what is not ASCII may be two
/// columns wide. INVARIANT: with room for two, something fits.
pub(crate) fn split_at_width<'t>(text: &'t str, room: &mut usize) -> (&'t str, &'t str) {
    let mut end = 0;
    for c in text.chars() {
        let width = match c {
            _ if c.is_ascii() => 1,
            _ if is_mark(c) => 0,
            _ => 2,
        };
        if width > *room {
            break;
        }
        *room -= width;
        end += c.len_utf8();
    }
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Whether a text has room on the line of its key.
pub(crate) fn fits_inline(text: &str, show: Show) -> bool {
    let mut room = WIDTH;
    text.len() <= 4 * WIDTH
        && pieces(text, show).all(|piece| match piece {
            Piece::Plain(plain) => split_at_width(plain, &mut room).1.is_empty(),
            Piece::Escaped(escape) => take(escape.text().chars().count(), &mut room),
        })
}

/// Whether a text takes more room than a summary has, counted as it is shown: a row of empty lines
/// or of equal escapes takes little.
fn is_long(text: &str) -> bool {
    let (mut width, mut lines, mut empty) = (0, 0, 0);
    text.split('\n').any(|line| {
        empty = if line.is_empty() { empty + 1 } else { 0 };
        lines += usize::from(empty <= MOST_EMPTY);
        lines > LONG_LINES
            || pieces(line, Show::Text).any(|piece| {
                width += match piece {
                    Piece::Plain(plain) => plain.chars().count(),
                    Piece::Escaped(escape) => escape.text().chars().count(),
                };
                width > LONG_WIDTH
            })
    })
}

/// The beginning that a summary shows.
fn head(text: &str) -> &str {
    let mut lines = 0;
    let mut is_over = |index: usize, c: char| {
        lines += usize::from(c == '\n');
        index >= HEAD_CHARS || lines >= HEAD_LINES
    };
    let end = text
        .char_indices()
        .enumerate()
        .find(|(index, (_, c))| is_over(*index, *c))
        .map_or(text.len(), |(_, (at, _))| at);
    text.get(..end).unwrap_or_default()
}

/// The end that a summary shows.
fn tail(text: &str) -> &str {
    let mut lines = 0;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev().take(TAIL_CHARS) {
        lines += usize::from(c == '\n');
        if lines >= TAIL_LINES {
            break;
        }
        start = at;
    }
    text.get(start..).unwrap_or_default()
}

const INDENT: &str = "  ";
const DEEPEST_INDENT: usize = 8;
/// Columns of text on one line.
const WIDTH: usize = 72;
/// So many empty lines in a row are shown one by one.
const MOST_EMPTY: usize = 3;
/// A summary cuts what is longer.
const LONG_WIDTH: usize = 1024;
const LONG_LINES: usize = 40;
const HEAD_CHARS: usize = 512;
const HEAD_LINES: usize = 24;
const TAIL_CHARS: usize = 256;
const TAIL_LINES: usize = 8;
