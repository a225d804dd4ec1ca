//! Builtins whose result can be much larger than what they are given.
//!
//! SECURITY: no limit of time or instructions is looked at inside a builtin. With a number or a text that
//! an agent chooses, one call could take all memory or all time. Such calls are allowed only where the
//! policy itself says how much they can grow.

use countersign_canon::Json;

use super::inspect::path;

/// Why a call may not stand in a policy.
pub(super) fn objection(call: &Json) -> Option<(String, &'static str)> {
    let name = path(call.get("fcn")?)?;
    let (_, rule) = RULES.iter().find(|(known, _)| *known == name)?;
    let given = call.get("params").and_then(Json::as_array);
    let why = rule.objection(given.unwrap_or_default())?;
    Some((name, why))
}

/// Whether the builtin is one that can grow: then its name alone, handed on, says too little.
pub(super) fn can_grow(name: &str) -> bool {
    RULES.iter().any(|(known, _)| *known == name)
}

enum Rule {
    Never,
    /// Whole numbers that are written out, and not far apart.
    Range,
    /// The argument at this place is a number that is written out, and small.
    SmallNumber(usize),
    /// The argument at this place is a text that is written out, and short.
    ShortText(usize),
    /// The first argument is a text that is written out, with no wide fields.
    Format,
    /// The argument at this place is written out.
    WrittenOut(usize),
}

const RULES: &[(&str, Rule)] = &[
    ("bits.lsh", Rule::SmallNumber(1)),
    ("concat", Rule::ShortText(0)),
    ("graph.reachable_paths", Rule::Never),
    ("json.marshal_with_options", Rule::WrittenOut(1)),
    ("json.patch", Rule::WrittenOut(1)),
    ("net.cidr_expand", Rule::Never),
    ("numbers.range", Rule::Range),
    ("numbers.range_step", Rule::Range),
    ("product", Rule::WrittenOut(0)),
    ("regex.replace", Rule::ShortText(2)),
    ("replace", Rule::ShortText(2)),
    ("sprintf", Rule::Format),
    ("strings.replace_n", Rule::WrittenOut(0)),
];

impl Rule {
    fn objection(&self, given: &[Json]) -> Option<&'static str> {
        let (holds, why) = match self {
            Self::Never => (false, "it has no bound"),
            Self::Range => (
                is_short_range(given),
                "its ends must be written out, and no more than 100000 apart",
            ),
            Self::SmallNumber(at) => (
                given
                    .get(*at)
                    .and_then(number)
                    .is_some_and(|n| n.unsigned_abs() <= FARTHEST_SHIFT),
                "by how much must be written out, and at most 1024",
            ),
            Self::ShortText(at) => (
                given
                    .get(*at)
                    .and_then(text)
                    .is_some_and(|text| text.len() <= LONGEST_PIECE),
                "what is put in must be a text that is written out, of at most 64 bytes",
            ),
            Self::Format => (
                given.first().and_then(text).is_some_and(has_no_wide_field),
                "its format must be written out, with fields narrower than 1000",
            ),
            Self::WrittenOut(at) => (
                given.get(*at).is_some_and(is_written_out),
                "what it works by must be written out",
            ),
        };
        (!holds).then_some(why)
    }
}

fn is_short_range(given: &[Json]) -> bool {
    let numbers: Option<Vec<i64>> = given.iter().map(number).collect();
    let Some([from, to, step @ ..]) = numbers.as_deref() else {
        return false;
    };
    from.abs_diff(*to) <= LONGEST_RANGE && step.iter().all(|step| *step > 0)
}

fn has_no_wide_field(format: &str) -> bool {
    let digits = |field: &str| {
        field
            .bytes()
            .skip_while(|byte| !byte.is_ascii_digit() && !byte.is_ascii_alphabetic())
            .take_while(u8::is_ascii_digit)
            .count()
    };
    // Other digits than these would be taken for a width too.
    let plain = |c: char| !c.is_numeric() || c.is_ascii_digit();
    format.chars().all(plain) && format.split('%').skip(1).all(|field| digits(field) <= 3)
}

fn is_written_out(node: &Json) -> bool {
    let Some((kind, inner)) = node.as_object().and_then(|members| members.iter().next()) else {
        return false;
    };
    match kind {
        "String" | "RawString" => text(node).is_some_and(|text| text.len() <= LONGEST_PIECE),
        "Number" | "Bool" | "Null" => true,
        "Array" | "Set" => {
            let items = inner.get("items").and_then(Json::as_array);
            items.is_some_and(|items| items.iter().all(is_written_out))
        }
        "Object" => {
            let fields = inner.get("fields").and_then(Json::as_array);
            fields.is_some_and(|fields| fields.iter().all(is_written_field))
        }
        _ => false,
    }
}

/// A place in the text, a name and a value.
fn is_written_field(field: &Json) -> bool {
    let parts = field.as_array().unwrap_or_default();
    match parts {
        [_, name, value] => is_written_out(name) && is_written_out(value),
        _ => false,
    }
}

fn number(node: &Json) -> Option<i64> {
    node.get("Number")?.get("value")?.as_i64()
}

fn text(node: &Json) -> Option<&str> {
    let text = node.get("String").or_else(|| node.get("RawString"))?;
    text.get("value")?.as_str()
}

const LONGEST_RANGE: u64 = 100_000;
const FARTHEST_SHIFT: u64 = 1024;
const LONGEST_PIECE: usize = 64;
