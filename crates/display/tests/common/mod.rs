//! Random plans full of tricks.
#![allow(dead_code, reason = "each test crate uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

use countersign_canon::{Json, Limits};

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    pub(crate) fn json(&mut self, depth: usize) -> Json {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => [Json::Null, Json::Bool(true), Json::Bool(false)][self.below(3)].clone(),
            1 | 2 => self.number(),
            3 | 4 => Json::String(self.string()),
            5 => Json::Array((0..self.below(5)).map(|_| self.json(depth - 1)).collect()),
            _ => Json::object(
                (0..self.below(5))
                    .map(|_| (self.string(), self.json(depth - 1)))
                    .collect::<Vec<_>>(),
            ),
        }
    }

    fn number(&mut self) -> Json {
        let literal = match self.below(6) {
            0 => self
                .pick(&["1", "1.0", "0", "-0.0", "10", "1e16", "9007199254740993"])
                .to_owned(),
            1 => format!("{}", self.next()),
            2 => format!("-{}.{}", self.below(100), self.below(1000)),
            3 => format!("{}e{}", self.below(100), self.below(300)),
            4 => "9".repeat(1 + self.below(300)),
            _ => self.below(10).to_string(),
        };
        Json::admit(literal.as_bytes(), &Limits::plan()).unwrap()
    }

    pub(crate) fn string(&mut self) -> String {
        let length = match self.below(40) {
            0 => 0,
            1..=36 => self.below(12),
            37 | 38 => self.below(100),
            _ => self.below(1500),
        };
        let mut text = String::new();
        while text.len() < length {
            match self.below(4) {
                0 => text.push_str(self.pick(TRICKS)),
                1 => text.push(self.character()),
                _ => text.push(char::from(b'a' + self.below(26) as u8)),
            }
        }
        text
    }

    pub(crate) fn character(&mut self) -> char {
        let code = match self.below(5) {
            0 => self.below(0x80),
            1 => self.below(0x400),
            2 => 0x2000 + self.below(0x70),
            3 => self.below(0x1_0000),
            _ => self.below(0x11_0000),
        };
        char::from_u32(code as u32).unwrap_or('\u{fffd}')
    }
}

/// The lines of the plan itself.
pub(crate) fn body(text: &str) -> &str {
    text.find("│ ").map_or(text, |at| &text[at..])
}

/// Written down here once more, apart from the code under test: ranges of what must never reach a
/// screen as it is.
pub(crate) fn is_dangerous(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{a0}' | '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{600}'..='\u{605}'
        | '\u{378}' | '\u{379}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{20d0}'..='\u{20ff}' | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}'
        | '\u{fdd0}'..='\u{fdef}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

const TRICKS: &[&str] = &[
    "\n",
    "\n\n\n\n\n",
    "\r\n",
    " ",
    "            ",
    "\t",
    "⟨U+0041⟩",
    "⟨",
    "⟩",
    "«",
    "»",
    "»: «",
    "\"",
    "\\",
    "│ ",
    "┃",
    "┊",
    "⋮",
    "✂",
    "- ",
    "? ",
    ": ",
    "{",
    "}",
    "[]",
    "# plan",
    "! ",
    "text, 1 lines, 1 chars, widest line 1",
    "number, 3 chars",
    "[truncated, 3 chars, sha256 00]",
    " 4 empty lines",
    "(9) ",
    "×",
    "e\u{301}",
    "é",
    "\u{202e}",
    "\u{200b}",
    "\u{feff}",
    "שלום",
    "ا",
    "हि",
    "漢",
    "👨\u{200d}👩",
    "\u{1b}[31m",
    "null",
    "1",
    "1.0",
];
