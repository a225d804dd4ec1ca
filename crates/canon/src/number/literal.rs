//! Number literals of JSON, split at their joints.

/// A number as the text has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Literal<'a> {
    pub(crate) text: &'a str,
    integer: &'a str,
    fraction: &'a str,
    exponent: &'a str,
    is_integer: bool,
}

impl<'a> Literal<'a> {
    /// The longest number at the start of `text`, or `None` if its grammar is broken.
    pub(crate) fn scan(text: &'a str) -> Option<Self> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (integer, rest) = split_digits(unsigned)?;
        if integer.len() > 1 && integer.starts_with('0') {
            return None;
        }
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(after_point) => split_digits(after_point)?,
            None => ("", rest),
        };
        let (exponent, rest) = match rest.strip_prefix(['e', 'E']) {
            Some(after_e) => split_exponent(after_e)?,
            None => ("", rest),
        };
        let is_integer = fraction.is_empty() && exponent.is_empty();
        let text = text.get(..text.len() - rest.len())?;
        Some(Self {
            text,
            integer,
            fraction,
            exponent,
            is_integer,
        })
    }

    /// Whether the literal has neither point nor exponent.
    pub(crate) fn is_integer(&self) -> bool {
        self.is_integer
    }

    /// The nearest double; infinite when out of range, zero when too small.
    pub(crate) fn to_double(self) -> f64 {
        if self.text.len() <= SHORT {
            return parse(self.text);
        }
        // The standard parser stops counting at large exponents, which a long row of zeros may
        // outweigh; in the form `0.d…e±n` nothing is left to outweigh.
        let significant = self.significant();
        let digits: String = significant.digits().map(char::from).collect();
        let sign = if self.text.starts_with('-') { "-" } else { "" };
        parse(&format!(
            "{sign}0.{digits}0e{}",
            significant.point.clamp(-1000, 1000)
        ))
    }

    /// The digits that count, with zeros at both ends left out.
    pub(crate) fn significant(&self) -> Significant<'a> {
        let digits = || self.integer.bytes().chain(self.fraction.bytes());
        let total = self.integer.len() + self.fraction.len();
        let leading = digits().take_while(|&digit| digit == b'0').count();
        let trailing = digits().rev().take_while(|&digit| digit == b'0').count();
        let before_point = self.integer.len() as i64 - leading as i64;
        Significant {
            literal: *self,
            skip: leading,
            len: total.saturating_sub(leading + trailing),
            point: before_point.saturating_add(saturating_exponent(self.exponent)),
        }
    }
}

/// The value `0.d₁d₂…dₖ × 10^point`, where neither end is a zero.
pub(crate) struct Significant<'a> {
    literal: Literal<'a>,
    skip: usize,
    pub(crate) len: usize,
    pub(crate) point: i64,
}

impl Significant<'_> {
    pub(crate) fn digits(&self) -> impl Iterator<Item = u8> {
        let all = self
            .literal
            .integer
            .bytes()
            .chain(self.literal.fraction.bytes());
        all.skip(self.skip).take(self.len)
    }
}

/// At least one digit, and what follows them.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    (count > 0).then(|| text.split_at_checked(count)).flatten()
}

/// An exponent with its sign, and what follows it.
fn split_exponent(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = split_digits(text.strip_prefix(['+', '-']).unwrap_or(text))?;
    text.split_at_checked(text.len() - rest.len())
}

fn saturating_exponent(text: &str) -> i64 {
    let digits = text.trim_start_matches(['+', '-']).bytes();
    let magnitude = digits.fold(0i64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(i64::from(digit.wrapping_sub(b'0')))
    });
    if text.starts_with('-') {
        -magnitude
    } else {
        magnitude
    }
}

/// Any literal parses; infinity stands for the impossible, and is refused by every caller.
fn parse(literal: &str) -> f64 {
    literal.parse().unwrap_or(f64::INFINITY)
}

/// No row of zeros this short can outweigh an exponent that the standard parser cuts off.
const SHORT: usize = 1000;
