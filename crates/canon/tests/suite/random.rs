//! Random JSON texts, the same in every run.

use std::collections::BTreeSet;

use countersign_canon::{Json, Limits, Reason};

/// A source of texts. One seed always gives the same texts.
pub(crate) struct Random {
    state: u64,
    number: fn(&mut Random) -> String,
}

impl Random {
    /// Texts whose integers have any size and whose other numbers fit a finite double.
    pub(crate) fn exact(seed: u64) -> Self {
        Self {
            state: seed,
            number: Random::exact_number,
        }
    }

    /// Texts whose numbers survive a round trip through a double, except where the standard library
    /// prints the other one of two texts that are equally close to it.
    pub(crate) fn doubles(seed: u64) -> Self {
        Self {
            state: seed,
            number: Random::double_number,
        }
    }

    /// One value on one line.
    pub(crate) fn text(&mut self) -> String {
        let mut out = String::new();
        self.value(4, &mut out);
        out
    }

    /// The next text that is admitted as an event, and its value.
    pub(crate) fn event(&mut self) -> (String, Json) {
        loop {
            let text = self.text();
            match Json::admit(text.as_bytes(), &Limits::event()) {
                Ok(value) => return (text, value),
                Err(error) => assert_eq!(error.reason(), &Reason::InexactNumber, "{text}"),
            }
        }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn value(&mut self, depth: usize, out: &mut String) {
        self.space(out);
        match self.below(if depth == 0 { 5 } else { 9 }) {
            0 => out.push_str(self.pick(&["null", "true", "false"])),
            1 | 2 => out.push_str(&(self.number)(self)),
            3 | 4 => drop(self.string(out)),
            5 | 6 => self.array(depth, out),
            _ => self.object(depth, out),
        }
        self.space(out);
    }

    fn array(&mut self, depth: usize, out: &mut String) {
        out.push('[');
        for index in 0..self.below(5) {
            out.push_str(if index > 0 { "," } else { "" });
            self.value(depth - 1, out);
        }
        out.push(']');
    }

    fn object(&mut self, depth: usize, out: &mut String) {
        let mut keys = BTreeSet::new();
        out.push('{');
        for _ in 0..self.below(6) {
            let mut key = String::new();
            if keys.insert(self.string(&mut key)) {
                out.push_str(if keys.len() > 1 { "," } else { "" });
                out.push_str(&key);
                out.push(':');
                self.value(depth - 1, out);
            }
        }
        out.push('}');
    }

    fn space(&mut self, out: &mut String) {
        if self.below(8) == 0 {
            out.push_str(self.pick(&[" ", "\t", "  "]));
        }
    }

    /// Appends a string literal and returns the characters it denotes.
    fn string(&mut self, out: &mut String) -> String {
        let mut text = String::new();
        out.push('"');
        for _ in 0..self.below(12) {
            let c = self.char();
            text.push(c);
            self.write_char(c, out);
        }
        out.push('"');
        text
    }

    fn char(&mut self) -> char {
        let (first, last) = self.pick(&[
            (0x61, 0x7a),
            (0x61, 0x63),
            (0x20, 0x7e),
            (0x00, 0x1f),
            (0x22, 0x22),
            (0x5c, 0x5c),
            (0x7e, 0x81),
            (0x80, 0x7ff),
            (0x2026, 0x202e),
            (0xd7f0, 0xd7ff),
            (0xe000, 0xe010),
            (0xfff0, 0xffff),
            (0x1_0000, 0x1_0010),
            (0x1_f600, 0x1_f640),
            (0x10_fff0, 0x10_ffff),
        ]);
        char::from_u32(first + self.below((last - first + 1) as usize) as u32).unwrap()
    }

    fn write_char(&mut self, c: char, out: &mut String) {
        let must_escape = c < ' ' || c == '"' || c == '\\';
        if !must_escape && self.below(4) > 0 {
            out.push(c);
        } else if let Some(short) = short_escape(c).filter(|_| self.below(2) == 0) {
            out.push_str(short);
        } else {
            self.write_unicode_escape(c, out);
        }
    }

    fn write_unicode_escape(&mut self, c: char, out: &mut String) {
        for unit in c.encode_utf16(&mut [0; 2]) {
            match self.below(2) {
                0 => *out += &format!("\\u{unit:04x}"),
                _ => *out += &format!("\\u{unit:04X}"),
            }
        }
    }

    fn exact_number(&mut self) -> String {
        let text = match self.below(7) {
            0 => self.integer(60),
            1 => self.integer(600),
            2 => format!("{}.{}", self.integer(25), self.digits(25)),
            3 => format!(
                "{}{}{}",
                self.integer(25),
                self.pick(&["e", "E-", "e+"]),
                self.below(330)
            ),
            4 => format!(
                "{}.{}e-{}",
                self.integer(4),
                self.digits(20),
                self.below(330)
            ),
            _ => self.double_number(),
        };
        let overflows =
            text.contains(['.', 'e', 'E']) && text.parse::<f64>().unwrap().is_infinite();
        if overflows { "-0".to_owned() } else { text }
    }

    fn double_number(&mut self) -> String {
        let sign = self.pick(&["", "-"]);
        match self.below(9) {
            0 => format!("{sign}{}", self.below(1000)),
            1 => format!("{sign}{}", self.next() >> (11 + self.below(53))),
            2 => format!("{sign}{}e{}", self.below(10), self.below(300)),
            3 => format!("{sign}{}.{}", self.below(1_000_000), self.digits(9)),
            4 => format!("{}", 2f64.powi(self.below(2098) as i32 - 1074)),
            5 => format!("{:e}", self.double()),
            6 => format!("{:E}", self.double() * 0.1),
            // Halfway between two shortest texts, often.
            7 => format!(
                "{:?}",
                (self.next() >> 11) as f64 / self.pick(&[2.0, 4.0, 8.0])
            ),
            _ => format!("{:?}", self.double()),
        }
    }

    fn double(&mut self) -> f64 {
        let any = f64::from_bits(self.next());
        if any.is_finite() {
            any
        } else {
            self.next() as f64
        }
    }

    fn integer(&mut self, most_digits: usize) -> String {
        let sign = self.pick(&["", "-"]);
        let digits = self.digits(most_digits);
        let digits = digits.trim_start_matches('0');
        format!("{sign}{}", if digits.is_empty() { "0" } else { digits })
    }

    fn digits(&mut self, most: usize) -> String {
        let count = 1 + self.below(most);
        (0..count)
            .map(|_| char::from(b'0' + self.below(10) as u8))
            .collect()
    }
}

fn short_escape(c: char) -> Option<&'static str> {
    match c {
        '"' => Some("\\\""),
        '\\' => Some("\\\\"),
        '/' => Some("\\/"),
        '\u{8}' => Some("\\b"),
        '\u{c}' => Some("\\f"),
        '\n' => Some("\\n"),
        '\r' => Some("\\r"),
        '\t' => Some("\\t"),
        _ => None,
    }
}
