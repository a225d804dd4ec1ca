//! Plain scalars by the core schema of YAML 1.2.

use countersign_canon::{Json, Limits};

use super::YamlFault;

/// What a scalar without quotes stands for.
pub(super) fn plain(text: &str, limits: &Limits) -> Result<Json, YamlFault> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Ok(Json::Null),
        "true" | "True" | "TRUE" => Ok(Json::Bool(true)),
        "false" | "False" | "FALSE" => Ok(Json::Bool(false)),
        _ => number(text, limits),
    }
}

fn number(text: &str, limits: &Limits) -> Result<Json, YamlFault> {
    let refused = || YamlFault::Number(text.to_owned());
    let literal = match Form::of(text) {
        Form::Text => return Ok(Json::from(text)),
        Form::NotJson => return Err(refused()),
        Form::Radix(radix, digits) => {
            return u64::from_str_radix(digits, radix)
                .map(Json::from)
                .map_err(|_| refused());
        }
        Form::Decimal(literal) => literal,
    };
    // Leading zeros are refused here: `010` is ten by this schema and eight to readers of YAML 1.1.
    Json::admit(literal.as_bytes(), limits).map_err(|_| refused())
}

/// What a scalar looks like.
enum Form<'t> {
    Text,
    /// A number, but none that JSON has.
    NotJson,
    Radix(u32, &'t str),
    /// As JSON would write it.
    Decimal(String),
}

impl<'t> Form<'t> {
    fn of(text: &'t str) -> Self {
        if let Some(digits) = text.strip_prefix("0o")
            && is_all(digits, |byte| matches!(byte, b'0'..=b'7'))
        {
            return Self::Radix(8, digits);
        }
        if let Some(digits) = text.strip_prefix("0x")
            && is_all(digits, |byte| byte.is_ascii_hexdigit())
        {
            return Self::Radix(16, digits);
        }
        let (sign, magnitude) = match text.strip_prefix('-') {
            Some(magnitude) => ("-", magnitude),
            None => ("", text.strip_prefix('+').unwrap_or(text)),
        };
        match magnitude {
            ".inf" | ".Inf" | ".INF" => Self::NotJson,
            ".nan" | ".NaN" | ".NAN" if magnitude == text => Self::NotJson,
            _ => Self::decimal(sign, magnitude),
        }
    }

    fn decimal(sign: &str, magnitude: &str) -> Self {
        let (mantissa, exponent) = match magnitude.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (magnitude, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let fraction_is_fine = fraction.is_none_or(is_digits_or_none);
        let exponent_is_fine = exponent.is_none_or(|text| is_digits(unsigned(text)));
        let has_digits = !whole.is_empty() || fraction.is_some_and(|digits| !digits.is_empty());
        if !(is_digits_or_none(whole) && fraction_is_fine && exponent_is_fine && has_digits) {
            return Self::Text;
        }
        Self::Decimal(json_literal(sign, whole, fraction, exponent))
    }
}

fn json_literal(sign: &str, whole: &str, fraction: Option<&str>, exponent: Option<&str>) -> String {
    let zero_if_none = |digits: &str| match digits {
        "" => "0".to_owned(),
        _ => digits.to_owned(),
    };
    let mut literal = format!("{sign}{}", zero_if_none(whole));
    if let Some(fraction) = fraction {
        literal.push('.');
        literal.push_str(&zero_if_none(fraction));
    }
    if let Some(exponent) = exponent {
        literal.push('e');
        literal.push_str(exponent);
    }
    literal
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

fn is_digits(text: &str) -> bool {
    is_all(text, |byte| byte.is_ascii_digit())
}

fn is_digits_or_none(text: &str) -> bool {
    text.is_empty() || is_digits(text)
}

fn is_all(text: &str, is_one: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(is_one)
}
