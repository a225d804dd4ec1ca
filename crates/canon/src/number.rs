//! Numbers: exact integers of any size, or finite doubles.

mod decimal;
mod literal;

use std::fmt;

pub(crate) use literal::Literal;

use decimal::Decimal;

use crate::error::Reason;
use crate::read::Numbers;

/// A JSON number: an exact integer of any size if its literal had neither point nor exponent
/// (`-0` is the integer 0), a finite double otherwise.
///
/// Equality tells `1` from `1.0` and `0.0` from `-0.0`.
#[derive(Clone)]
pub struct Number(Form);

#[derive(Clone)]
enum Form {
    Int(i64),
    /// Decimal digits of an integer beyond `i64`, with its sign, without leading zeros.
    Big(Box<str>),
    /// INVARIANT: finite.
    Double(f64),
}

impl Number {
    /// The double, or `None` if it is infinite or not a number.
    pub fn from_f64(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(Form::Double(value)))
    }

    pub(crate) fn admit(literal: &Literal<'_>, numbers: Numbers) -> Result<Self, Reason> {
        match numbers {
            Numbers::Exact if literal.is_integer() => Ok(Self::integer(literal)),
            Numbers::Exact => finite(literal).map(|value| Self(Form::Double(value))),
            Numbers::Double => Self::admit_double(literal),
        }
    }

    fn admit_double(literal: &Literal<'_>) -> Result<Self, Reason> {
        if literal.is_integer() && literal.text.len() <= ALWAYS_EXACT_DIGITS {
            return Ok(Self::integer(literal));
        }
        let value = exact_double(literal)?;
        match literal.is_integer() {
            true => Ok(Self::integer(literal)),
            false => Ok(Self(Form::Double(value))),
        }
    }

    fn integer(literal: &Literal<'_>) -> Self {
        match literal.text.parse() {
            Ok(value) => Self(Form::Int(value)),
            Err(_) => Self(Form::Big(literal.text.into())),
        }
    }

    /// Whether the number is kept as an exact integer.
    pub fn is_integer(&self) -> bool {
        !matches!(self.0, Form::Double(_))
    }

    /// The value, if it is a whole number in range. `1.0` counts, because RFC 8785 gives it the
    /// same text as `1`; doubles beyond ±2⁵³ do not, because their neighbours are not whole steps.
    pub fn as_i64(&self) -> Option<i64> {
        match self.0 {
            Form::Int(value) => Some(value),
            Form::Big(_) => None,
            Form::Double(value) => whole(value),
        }
    }

    /// As [`Number::as_i64`], for unsigned integers.
    pub fn as_u64(&self) -> Option<u64> {
        match &self.0 {
            Form::Big(text) => text.parse().ok(),
            _ => self.as_i64()?.try_into().ok(),
        }
    }

    /// The nearest double, or `None` for an integer beyond the largest one.
    pub fn as_f64(&self) -> Option<f64> {
        let value = match &self.0 {
            Form::Int(value) => *value as f64,
            Form::Big(text) => text.parse().ok()?,
            Form::Double(value) => *value,
        };
        value.is_finite().then_some(value)
    }

    /// Appends the text of RFC 8785.
    pub(crate) fn write_es6(&self, out: &mut Vec<u8>) -> Result<(), Reason> {
        match &self.0 {
            Form::Int(value) if value.unsigned_abs() <= SAFE_INTEGER => push(out, value),
            Form::Int(value) => write_es6_integer(&value.to_string(), out)?,
            Form::Big(text) => write_es6_integer(text, out)?,
            Form::Double(value) => write_es6_double(*value, out),
        }
        Ok(())
    }

    /// Appends the text that CPython prints.
    pub(crate) fn write_python(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Int(value) => push(out, value),
            Form::Big(text) => out.extend_from_slice(text.as_bytes()),
            Form::Double(value) => {
                if value.is_sign_negative() {
                    out.push(b'-');
                }
                Decimal::of_double(*value).write_python(out);
            }
        }
    }
}

impl Number {
    /// Appends the number as it was understood: integers in full, doubles always with a point or an
    /// exponent.
    pub(crate) fn write_plain(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Int(value) => push(out, value),
            Form::Big(text) => out.extend_from_slice(text.as_bytes()),
            Form::Double(value) => {
                if value.is_sign_negative() {
                    out.push(b'-');
                }
                Decimal::of_double(*value).write_plain(out);
            }
        }
    }
}

/// Appends the text of RFC 8785 for a finite double.
pub(crate) fn write_es6_double(value: f64, out: &mut Vec<u8>) {
    if value < 0.0 {
        out.push(b'-');
    }
    Decimal::of_double(value).write_es6(out);
}

fn write_es6_integer(digits: &str, out: &mut Vec<u8>) -> Result<(), Reason> {
    let literal = Literal::scan(digits).ok_or(Reason::InvalidNumber)?;
    // The integer itself is in range; it is the double that falls short.
    let value = exact_double(&literal).map_err(|_| Reason::InexactNumber)?;
    write_es6_double(value, out);
    Ok(())
}

/// The double nearest to the literal, unless that is infinite.
pub(crate) fn finite(literal: &Literal<'_>) -> Result<f64, Reason> {
    let value = literal.to_double();
    value
        .is_finite()
        .then_some(value)
        .ok_or(Reason::NumberOutOfRange)
}

/// The double whose shortest text denotes the same decimal as the literal.
fn exact_double(literal: &Literal<'_>) -> Result<f64, Reason> {
    let value = finite(literal)?;
    let exact = is_plainly_exact(literal, value)
        || Decimal::of_literal(literal) == Some(Decimal::of_double(value));
    exact.then_some(value).ok_or(Reason::InexactNumber)
}

/// Any 15 digits survive a double of normal magnitude; this spares the search for shortest digits.
fn is_plainly_exact(literal: &Literal<'_>, value: f64) -> bool {
    literal.text.len() <= ALWAYS_EXACT_DIGITS && (1e-290..1e290).contains(&value.abs())
}

fn whole(value: f64) -> Option<i64> {
    let safe = value.fract() == 0.0 && value.abs() <= SAFE_INTEGER as f64;
    safe.then_some(value as i64)
}

fn push(out: &mut Vec<u8>, value: &i64) {
    out.extend_from_slice(value.to_string().as_bytes());
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(Form::Int(value))
    }
}

impl From<u32> for Number {
    fn from(value: u32) -> Self {
        Self(Form::Int(value.into()))
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        match value.try_into() {
            Ok(small) => Self(Form::Int(small)),
            Err(_) => Self(Form::Big(value.to_string().into())),
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Form::Int(a), Form::Int(b)) => a == b,
            (Form::Big(a), Form::Big(b)) => a == b,
            (Form::Double(a), Form::Double(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

impl Eq for Number {}

/// Integers in full, doubles as CPython prints them.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write_python(&mut text);
        f.pad(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A sign or any 15 digits, whatever the exponent and the point.
const ALWAYS_EXACT_DIGITS: usize = 15;

/// 2⁵³: up to here every integer is a double and its own shortest text.
const SAFE_INTEGER: u64 = 1 << 53;

#[cfg(test)]
mod tests;
