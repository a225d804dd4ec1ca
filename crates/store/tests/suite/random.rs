//! Pseudo-random numbers, the same in every run.

use countersign_canon::{Json, Number, Object};

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number under a limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let index = self.below(items.len() as u64);
        &items[usize::try_from(index).unwrap()]
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let other = self.below(end as u64 + 1);
            items.swap(end, usize::try_from(other).unwrap());
        }
    }

    /// Text with quotes, escapes, control characters and characters of every width.
    pub(crate) fn text(&mut self) -> String {
        let length = self.below(12);
        (0..length).map(|_| *self.pick(CHARACTERS)).collect()
    }

    /// Any JSON value that an event may hold.
    pub(crate) fn json(&mut self, depth: u32) -> Json {
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => Json::Null,
            1 => Json::Bool(self.below(2) == 0),
            2 => self.integer(),
            3 => self.double(),
            4 => Json::String(self.text()),
            5 => Json::Array((0..self.below(4)).map(|_| self.json(depth - 1)).collect()),
            _ => Json::Object(self.object(depth - 1)),
        }
    }

    pub(crate) fn object(&mut self, depth: u32) -> Object {
        (0..self.below(4))
            .map(|_| (self.text(), self.json(depth)))
            .collect()
    }

    /// A whole number that a double holds.
    fn integer(&mut self) -> Json {
        let size = self.below(54);
        let number = i64::try_from(self.below(1 << size)).unwrap();
        Json::from(if self.below(2) == 0 { number } else { -number })
    }

    /// A double that is no whole number, so that it reads back as one.
    fn double(&mut self) -> Json {
        let value = f64::from_bits(self.next());
        let fraction = value.is_finite() && value.fract() != 0.0;
        Json::from(Number::from_f64(if fraction { value } else { 0.5 }).unwrap())
    }
}

const CHARACTERS: &[char] = &[
    'a',
    'Z',
    '0',
    ' ',
    '"',
    '\\',
    '/',
    '\u{0}',
    '\n',
    '\u{1f}',
    '\u{7f}',
    'é',
    'ß',
    '\u{2028}',
    '漢',
    '\u{ffff}',
    '😀',
    '\u{10ffff}',
    '*',
    '~',
    '%',
];
