//! What must come back.

use std::fmt;

use countersign_canon::Json;

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Where, as a JSON pointer or a word.
    pub place: String,
    /// What had to be there.
    pub expected: String,
    /// What was.
    pub seen: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            expected,
            seen,
        } = self;
        write!(f, "{place}: expected {expected}, seen {seen}")
    }
}

/// Holds a value against what it must look like.
///
/// Members that are not named may be anything; lists have exactly the items that are named. An object
/// with one member whose name begins with `$` is a rule: `$matches` (a regular expression), `$any` (one
/// of these), `$not`, `$has` (a list with such an item), `$every` (a list of such items only), `$len`,
/// `$over` (a number above), `$present`.
pub(crate) fn check(expected: &Json, seen: Option<&Json>, place: &str) -> Result<(), Mismatch> {
    let wrong = || Mismatch {
        place: match place {
            "" => "the answer".to_owned(),
            place => place.to_owned(),
        },
        expected: short(Some(expected)),
        seen: short(seen),
    };
    if let Some((rule, operand)) = rule(expected) {
        return follow(rule, operand, seen, place).map_err(|inner| inner.unwrap_or_else(wrong));
    }
    let seen = seen.ok_or_else(wrong)?;
    match (expected, seen) {
        (Json::Object(members), Json::Object(_)) => {
            members.iter().try_for_each(|(name, expected)| {
                check(expected, seen.get(name), &format!("{place}/{name}"))
            })
        }
        (Json::Array(expected), Json::Array(items)) if expected.len() == items.len() => {
            let pairs = expected.iter().zip(items).enumerate();
            pairs.into_iter().try_for_each(|(index, (expected, item))| {
                check(expected, Some(item), &format!("{place}/{index}"))
            })
        }
        (expected, seen) if expected == seen => Ok(()),
        _ => Err(wrong()),
    }
}

/// Whether a name is that of a rule.
pub(crate) fn is_rule(name: &str) -> bool {
    RULES.contains(&name)
}

fn rule(expected: &Json) -> Option<(&str, &Json)> {
    let members = expected.as_object()?;
    match (members.len(), members.iter().next()) {
        (1, Some((name, operand))) if name.starts_with('$') => Some((name, operand)),
        _ => None,
    }
}

/// `Err(None)` says that the value as a whole is wrong.
fn follow(
    rule: &str,
    operand: &Json,
    seen: Option<&Json>,
    place: &str,
) -> Result<(), Option<Mismatch>> {
    let items = || seen.and_then(Json::as_array);
    let holds = match rule {
        "$present" => seen.is_some() == (operand.as_bool() == Some(true)),
        "$matches" => {
            let pattern = operand
                .as_str()
                .and_then(|p| regex_lite::Regex::new(p).ok());
            let seen = seen.and_then(Json::as_str);
            matches!((pattern, seen), (Some(pattern), Some(seen)) if pattern.is_match(seen))
        }
        "$any" => {
            let all = operand.as_array().unwrap_or_default();
            all.iter().any(|one| check(one, seen, place).is_ok())
        }
        "$not" => check(operand, seen, place).is_err(),
        "$has" => items().is_some_and(|items| {
            let fits = |item| check(operand, Some(item), place).is_ok();
            items.iter().any(fits)
        }),
        "$every" => {
            let items = items().ok_or(None)?;
            for (index, item) in items.iter().enumerate() {
                check(operand, Some(item), &format!("{place}/{index}")).map_err(Some)?;
            }
            true
        }
        "$len" => {
            let length = items().map(|items| items.len() as u64);
            length.is_some() && length == operand.as_u64()
        }
        "$over" => match (seen.and_then(Json::as_u64), operand.as_u64()) {
            (Some(seen), Some(limit)) => seen > limit,
            _ => false,
        },
        // FAIL-CLOSED: a rule that nobody knows holds for nothing.
        _ => false,
    };
    holds.then_some(()).ok_or(None)
}

/// A value in a line of a report.
pub(crate) fn short(value: Option<&Json>) -> String {
    let Some(value) = value else {
        return "nothing".to_owned();
    };
    let text = String::from_utf8_lossy(&value.to_sorted()).into_owned();
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

const RULES: [&str; 8] = [
    "$present", "$matches", "$any", "$not", "$has", "$every", "$len", "$over",
];
const MOST_SHOWN: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_canon::Limits;

    fn holds(expected: &str, seen: &str) -> bool {
        let read = |text: &str| Json::admit(text.as_bytes(), &Limits::event()).unwrap();
        check(&read(expected), Some(&read(seen)), "").is_ok()
    }

    #[test]
    fn members_that_are_not_named_may_be_anything_and_lists_may_not() {
        assert!(holds(r#"{"a":1}"#, r#"{"a":1,"b":2}"#));
        assert!(!holds(r#"{"a":1}"#, r#"{"b":2}"#));
        assert!(holds("[1,2]", "[1,2]"));
        assert!(!holds("[1,2]", "[1,2,3]"));
        assert!(!holds("1", "1.0"));
    }

    #[test]
    fn rules_hold_and_fail() {
        for (expected, good, bad) in [
            (r#"{"$matches":"^[0-9a-f]{4}$"}"#, r#""00ff""#, r#""00FF""#),
            (r#"{"$any":[1,2]}"#, "2", "3"),
            (r#"{"$not":1}"#, "2", "1"),
            (
                r#"{"$has":{"a":1}}"#,
                r#"[{"a":2},{"a":1}]"#,
                r#"[{"a":2}]"#,
            ),
            (
                r#"{"$every":{"a":1}}"#,
                r#"[{"a":1}]"#,
                r#"[{"a":1},{"a":2}]"#,
            ),
            (r#"{"$len":2}"#, "[1,2]", "[1]"),
            (r#"{"$over":2}"#, "3", "2"),
            (r#"{"a":{"$present":false}}"#, "{}", r#"{"a":1}"#),
            (r#"{"a":{"$present":true}}"#, r#"{"a":null}"#, "{}"),
        ] {
            assert!(holds(expected, good), "{expected} {good}");
            assert!(!holds(expected, bad), "{expected} {bad}");
        }
        assert!(!holds(r#"{"$unheard":1}"#, "1"));
    }
}
