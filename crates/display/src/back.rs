//! From the lines back to the canonical bytes: the proof that no two plans look the same.

use std::iter::Peekable;
use std::str::Lines;

use countersign_canon::{Json, Limits};

use crate::piece::unescape;
use crate::render::{BODY, HEAD, Rendering, View, WARN};

/// The text is not the full rendering of a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseBackError {
    /// Something was left out.
    #[error("the rendering is truncated")]
    Truncated,
    /// A line is not one that a rendering has.
    #[error("line {0} does not belong to a rendering")]
    Line(usize),
    /// Rendering the plan that was read gives another text.
    #[error("the text is not what its plan renders to")]
    Different,
}

/// The canonical bytes of the plan that renders to exactly this text.
///
/// Succeeds on every complete [`Rendering`] and on no other text: what was read is rendered again and
/// compared.
pub fn parse_back(text: &str) -> Result<Vec<u8>, ParseBackError> {
    let mut reader = Reader {
        lines: text.lines().peekable(),
        number: 0,
    };
    let is_head = |line: &&str| line.starts_with(HEAD) || line.starts_with(WARN);
    while reader.lines.next_if(is_head).is_some() {
        reader.number += 1;
    }
    let first = reader.line()?;
    let plan = reader.value(first, DEEPEST)?;
    if reader.lines.next().is_some() {
        return Err(ParseBackError::Line(reader.number + 1));
    }
    let canonical = plan.to_sorted_ascii();
    match Rendering::of(&canonical, View::Full) {
        Ok(again) if again.text() == text => Ok(canonical),
        _ => Err(ParseBackError::Different),
    }
}

struct Reader<'t> {
    lines: Peekable<Lines<'t>>,
    number: usize,
}

impl<'t> Reader<'t> {
    /// The next line of the plan without edge, indentation and level.
    fn line(&mut self) -> Result<&'t str, ParseBackError> {
        self.number += 1;
        let line = self.lines.next().and_then(content);
        line.ok_or_else(|| self.wrong())
    }

    fn value(&mut self, text: &'t str, depth: usize) -> Result<Json, ParseBackError> {
        let deeper = depth.checked_sub(1).ok_or_else(|| self.wrong())?;
        match text {
            "{" => self.object(deeper),
            "[" => self.array(deeper),
            _ if text.starts_with("text, ") => self.block().map(Json::String),
            _ if text.starts_with("number, ") => {
                let literal = self.block()?;
                self.literal(&literal)
            }
            _ => match text.strip_prefix('«') {
                Some(quoted) => {
                    let inside = quoted.strip_suffix('»').ok_or_else(|| self.wrong())?;
                    self.unescaped(inside).map(Json::String)
                }
                None => self.literal(text),
            },
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json, ParseBackError> {
        let mut elements = Vec::new();
        loop {
            match self.line()? {
                "]" => return Ok(Json::Array(elements)),
                line => {
                    let element = line.strip_prefix("- ").ok_or_else(|| self.wrong())?;
                    elements.push(self.value(element, depth)?);
                }
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, ParseBackError> {
        let mut members = Vec::new();
        loop {
            let line = self.line()?;
            if line == "}" {
                return Ok(Json::object(members));
            }
            let (key, value) = self.member(line)?;
            members.push((key, self.value(value, depth)?));
        }
    }

    fn member(&mut self, line: &'t str) -> Result<(String, &'t str), ParseBackError> {
        if line.starts_with("? ") {
            let key = self.block()?;
            let value = self.line()?.strip_prefix(": ");
            return Ok((key, value.ok_or_else(|| self.wrong())?));
        }
        let (key, value) = match line.strip_prefix('«') {
            Some(rest) => rest.split_once("»: ").ok_or_else(|| self.wrong())?,
            None => line.split_once(": ").ok_or_else(|| self.wrong())?,
        };
        Ok((self.unescaped(key)?, value))
    }

    /// The numbered lines of a text.
    fn block(&mut self) -> Result<String, ParseBackError> {
        let mut text: Option<String> = None;
        while let Some((mark, rest)) = self.lines.peek().and_then(|line| block_line(line)) {
            self.number += 1;
            self.lines.next();
            let separator = match (mark, &text) {
                ('┃' | '⋮', Some(_)) => "\n",
                _ => "",
            };
            let text = text.get_or_insert_default();
            text.push_str(separator);
            match mark {
                '✂' => return Err(ParseBackError::Truncated),
                '⋮' => text.push_str(&self.empty_lines(rest)?),
                _ => text.push_str(&self.unescaped(rest)?),
            }
        }
        text.ok_or_else(|| self.wrong())
    }

    fn empty_lines(&self, note: &str) -> Result<String, ParseBackError> {
        let count: Option<usize> = note
            .trim_start()
            .strip_suffix(" empty lines")
            .and_then(|count| count.parse().ok())
            .filter(|count| (1..=Limits::plan().max_bytes).contains(count));
        let count = count.ok_or_else(|| self.wrong())?;
        Ok("\n".repeat(count - 1))
    }

    fn literal(&self, literal: &str) -> Result<Json, ParseBackError> {
        Json::admit(literal.as_bytes(), &Limits::plan()).map_err(|_| self.wrong())
    }

    fn unescaped(&self, shown: &str) -> Result<String, ParseBackError> {
        unescape(shown).ok_or_else(|| self.wrong())
    }

    fn wrong(&self) -> ParseBackError {
        ParseBackError::Line(self.number)
    }
}

fn content(line: &str) -> Option<&str> {
    let line = line.strip_prefix(BODY)?.trim_start_matches(' ');
    match line.strip_prefix('(') {
        Some(level) => level.split_once(") ").map(|(_, rest)| rest),
        None => Some(line),
    }
}

/// The mark of a block's line and what follows it.
fn block_line(line: &str) -> Option<(char, &str)> {
    let line =
        content(line)?.trim_start_matches([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    let mark = line.chars().next().filter(|c| MARKS.contains(c))?;
    line.strip_prefix(mark).map(|rest| (mark, rest))
}

const MARKS: [char; 4] = ['┃', '┊', '⋮', '✂'];
/// No plan is deeper.
const DEEPEST: usize = 512;
