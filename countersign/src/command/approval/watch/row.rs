//! Lines of a card, cut to the width of the window.

use countersign_display::{Kind, Sheet};
use ratatui::text::Span;

/// One line of marked text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row(pub(super) Vec<(Kind, String)>);

impl Row {
    /// A line that the system says.
    pub(super) fn says(text: &str) -> Self {
        Self(vec![(Kind::Heading, text.to_owned())])
    }

    #[cfg(test)]
    pub(super) fn text(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }
}

pub(super) fn rows(sheet: &Sheet) -> Vec<Row> {
    let row = |line: countersign_display::Line<'_>| {
        let spans = line.spans();
        Row(spans
            .map(|span| (span.kind, span.text.to_owned()))
            .collect())
    };
    sheet.lines().map(row).collect()
}

/// The same lines, none wider than this. What does not fit goes on in a line that begins with
/// [`GOES_ON`], as no line of a card does.
pub(super) fn wrapped(rows: &[Row], width: usize) -> Vec<Row> {
    let mut out = Vec::with_capacity(rows.len());
    for row in rows {
        let mut line = Vec::new();
        let mut used = 0;
        for (kind, text) in &row.0 {
            let mut part = String::new();
            for character in text.chars() {
                let wide = columns(character);
                if used + wide > width.max(NARROWEST) {
                    line.push((*kind, std::mem::take(&mut part)));
                    out.push(Row(std::mem::take(&mut line)));
                    line.push((Kind::Gutter, GOES_ON.to_owned()));
                    used = GOES_ON.chars().count();
                }
                part.push(character);
                used += wide;
            }
            line.push((*kind, part));
        }
        out.push(Row(line));
    }
    out
}

fn columns(character: char) -> usize {
    match character {
        ' '..='~' => 1,
        other => Span::raw(other.encode_utf8(&mut [0; 4]) as &str).width(),
    }
}

pub(super) const GOES_ON: &str = "↪ ";
/// One wide character after the mark.
const NARROWEST: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_at_the_edge_and_no_line_is_faked() {
        let text = "│ path: «# plan 00000000, complete 宽宽宽»";
        let lines = wrapped(&[Row::says(text)], 12);
        let shown: Vec<String> = lines.iter().map(Row::text).collect();
        assert!(shown.len() > 3);
        assert!(
            shown
                .iter()
                .all(|line| Span::raw(line.as_str()).width() <= 12)
        );
        assert!(shown.iter().skip(1).all(|line| line.starts_with(GOES_ON)));
        let joined: String = shown
            .iter()
            .map(|line| line.strip_prefix(GOES_ON).unwrap_or(line))
            .collect();
        assert_eq!(joined, text);
    }
}
