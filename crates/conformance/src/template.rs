//! Names in a case that stand for what was seen before.
//!
//! `${name}` in a text is replaced by the saved value; a text that is nothing but `${name}` becomes the
//! value itself, whatever its type. `${repeat N TEXT}` is TEXT, N times.

use std::collections::BTreeMap;

use countersign_canon::{Json, Object};

/// What was saved so far.
pub(crate) type Saved = BTreeMap<String, Json>;

/// The value with every name replaced.
pub(crate) fn fill(value: &Json, saved: &Saved) -> Result<Json, String> {
    Ok(match value {
        Json::String(text) => whole(text, saved)?,
        Json::Array(items) => {
            let items = items.iter().map(|item| fill(item, saved));
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        Json::Object(members) => {
            let mut filled = Object::new();
            for (name, value) in members.iter() {
                filled.insert(text(name, saved)?, fill(value, saved)?);
            }
            Json::Object(filled)
        }
        other => other.clone(),
    })
}

/// The text with every name replaced.
pub(crate) fn text(template: &str, saved: &Saved) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| format!("`{template}` has a `${{` without its end"))?;
        out.push_str(before);
        out.push_str(&one(name, saved)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn whole(template: &str, saved: &Saved) -> Result<Json, String> {
    let name = template
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    match name.and_then(|name| saved.get(name)) {
        Some(value) => Ok(value.clone()),
        None => text(template, saved).map(Json::String),
    }
}

fn one(name: &str, saved: &Saved) -> Result<String, String> {
    if let Some(repeat) = name.strip_prefix("repeat ") {
        let (times, text) = repeat.split_once(' ').unwrap_or((repeat, ""));
        let times: usize = times
            .parse()
            .map_err(|_| format!("`{name}` needs a number"))?;
        let room = text.len().saturating_mul(times) <= MOST_REPEATED;
        return match room {
            true => Ok(text.repeat(times)),
            false => Err(format!("`{name}` is too long")),
        };
    }
    match saved.get(name) {
        Some(Json::String(text)) => Ok(text.clone()),
        Some(value) => Ok(String::from_utf8_lossy(&value.to_sorted()).into_owned()),
        None => Err(format!("nothing is saved as `{name}`")),
    }
}

const MOST_REPEATED: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_unknown_ones_are_errors() {
        let saved = Saved::from([
            ("n".to_owned(), Json::from(7_u64)),
            ("t".to_owned(), Json::from("x y")),
        ]);
        let fill = |text: &str| fill(&Json::from(text), &saved);
        assert_eq!(fill("${n}"), Ok(Json::from(7_u64)));
        assert_eq!(fill("<${n}|${t}>"), Ok(Json::from("<7|x y>")));
        assert_eq!(fill("${repeat 3 [}"), Ok(Json::from("[[[")));
        assert!(fill("${other}").is_err());
        assert!(fill("${n").is_err());
        assert!(fill("${repeat 99999999 [[}").is_err());
    }
}
