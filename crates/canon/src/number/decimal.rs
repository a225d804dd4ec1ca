//! Decimal digits of doubles: the shortest ones, and how two languages lay them out.

use super::Literal;

/// The value `0.d₁d₂…dₖ × 10^point` without its sign, where neither end is a zero. Zero has no
/// digits. Two decimals are equal exactly when they denote the same value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    /// The shortest digits that read back as the same double; among those the closest to it, and
    /// between two that are equally close the even one.
    pub(super) fn of_double(value: f64) -> Self {
        let value = value.abs();
        let shortest = Self::of_scientific(&format!("{value:e}"));
        if shortest.digits.len() < FEWEST_TIED_DIGITS {
            return shortest;
        }
        Self::rounded_to_even(value, shortest.digits.len()).unwrap_or(shortest)
    }

    /// The standard library rounds a tie up in its shortest form, but to even at a given length.
    /// Below a power of two the digits found so may belong to the neighbour: then there are none.
    fn rounded_to_even(value: f64, digits: usize) -> Option<Self> {
        let rounded = format!("{value:.*e}", digits - 1);
        (rounded.parse() == Ok(value)).then(|| Self::of_scientific(&rounded))
    }

    /// Takes `d.ddde±n` apart.
    fn of_scientific(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Self { digits, point: 0 };
        }
        Self {
            digits,
            point: exponent.parse::<i64>().unwrap_or(0) + 1,
        }
    }

    /// The digits of the literal, or `None` if there are more than any double needs.
    pub(super) fn of_literal(literal: &Literal<'_>) -> Option<Self> {
        let significant = literal.significant();
        match significant.len {
            0 => Some(Self {
                digits: Vec::new(),
                point: 0,
            }),
            1..=MOST_DIGITS => Some(Self {
                digits: significant.digits().collect(),
                point: significant.point,
            }),
            _ => None,
        }
    }

    /// Appends the text of ECMAScript's `Number::toString`.
    pub(super) fn write_es6(&self, out: &mut Vec<u8>) {
        match self.point {
            _ if self.digits.is_empty() => out.push(b'0'),
            -5..=21 => self.write_positional(out),
            _ => {
                self.write_mantissa(out);
                out.extend_from_slice(format!("{:+}", self.point - 1).as_bytes());
            }
        }
    }

    /// Appends the text of CPython's `float.__repr__`.
    pub(super) fn write_python(&self, out: &mut Vec<u8>) {
        match self.point {
            _ if self.digits.is_empty() => out.extend_from_slice(b"0.0"),
            -3..=16 => {
                self.write_positional(out);
                if self.is_whole() {
                    out.extend_from_slice(b".0");
                }
            }
            _ => {
                self.write_mantissa(out);
                out.extend_from_slice(format!("{:+03}", self.point - 1).as_bytes());
            }
        }
    }

    /// Appends the text that `serde_json` writes: as CPython's, but small numbers are written out a
    /// little longer and exponents are not padded.
    pub(super) fn write_plain(&self, out: &mut Vec<u8>) {
        match self.point {
            _ if self.digits.is_empty() => out.extend_from_slice(b"0.0"),
            -4..=16 => {
                self.write_positional(out);
                if self.is_whole() {
                    out.extend_from_slice(b".0");
                }
            }
            _ => {
                self.write_mantissa(out);
                out.extend_from_slice(format!("{:+}", self.point - 1).as_bytes());
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.point >= self.digits.len() as i64
    }

    fn write_positional(&self, out: &mut Vec<u8>) {
        if self.point <= 0 {
            out.extend_from_slice(b"0.");
            out.extend((self.point..0).map(|_| b'0'));
            out.extend_from_slice(&self.digits);
        } else if self.is_whole() {
            out.extend_from_slice(&self.digits);
            out.extend((self.digits.len() as i64..self.point).map(|_| b'0'));
        } else {
            let (whole, fraction) = self.split(self.point as usize);
            write_pointed(whole, fraction, out);
        }
    }

    /// `d.ddde`, to be followed by the exponent.
    fn write_mantissa(&self, out: &mut Vec<u8>) {
        match self.split(1) {
            (first, []) => out.extend_from_slice(first),
            (first, others) => write_pointed(first, others, out),
        }
        out.push(b'e');
    }

    fn split(&self, at: usize) -> (&[u8], &[u8]) {
        self.digits
            .split_at_checked(at)
            .unwrap_or((&self.digits, &[]))
    }
}

fn write_pointed(whole: &[u8], fraction: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(whole);
    out.push(b'.');
    out.extend_from_slice(fraction);
}

/// Of the decimals with fifteen digits at most one reads back as a given double, so none compete.
/// (That fails near the smallest doubles, but there a value has far too many digits for a tie.)
const FEWEST_TIED_DIGITS: usize = 16;

/// No double needs more digits to be told from its neighbours.
const MOST_DIGITS: usize = 17;
