//! Values whose shape says which parts of them are secret: keys as JSON, tables, text that is cut into pieces.

use countersign_canon::{Json, Object};

use crate::detect;

/// The members of an object that are secret because of what the object is.
pub(crate) fn secret_parts(members: &Object) -> &'static [&'static str] {
    let text = |name| members.get(name).and_then(Json::as_str);
    if text("kty").is_some() {
        return &["d", "p", "q", "dp", "dq", "qi", "k", "oth"];
    }
    match text("kind") {
        Some("Secret") => &["data", "stringData"],
        _ => &[],
    }
}

/// Which columns of a table are secret, if an object is one and any is.
pub(crate) fn columns(members: &Object, is_secret: &dyn Fn(&str) -> bool) -> Option<Vec<bool>> {
    let named = ["columns", "fields", "header", "headers"].iter();
    let names = named
        .filter_map(|name| members.get(name)?.as_array())
        .next()?;
    secret_columns(names, is_secret)
}

/// The same of a row that names the columns of those below it. Two cells, the first of which is a secret's
/// name, are a name and its value.
pub(crate) fn head(row: &Json, is_secret: &dyn Fn(&str) -> bool) -> Option<Vec<bool>> {
    let names = row.as_array()?;
    let secret = secret_columns(names, is_secret)?;
    let is_pair = names.len() == 2 && secret.first() == Some(&true);
    (!is_pair).then_some(secret)
}

fn secret_columns(names: &[Json], is_secret: &dyn Fn(&str) -> bool) -> Option<Vec<bool>> {
    let name = |column: &Json| {
        let named = column.get("name").and_then(Json::as_str);
        named.or(column.as_str()).map(str::to_owned)
    };
    let names: Option<Vec<String>> = names.iter().map(name).collect();
    let secret: Vec<bool> = names?.iter().map(|name| is_secret(name)).collect();
    secret.contains(&true).then_some(secret)
}

/// Which elements of an array hold a piece of a secret that is whole only in all of them together.
pub(crate) fn split(values: &[Json]) -> Vec<bool> {
    let whole: String = values.iter().filter_map(Json::as_str).collect();
    let found = match values.len() {
        0 | 1 => Vec::new(),
        _ => detect::find_tokens(&whole),
    };
    let mut at = 0;
    let pieces = values.iter().map(|value| {
        let start = at;
        at += value.as_str().map_or(0, str::len);
        let holds = |span: &&crate::span::Span| span.start < at && span.end > start;
        // What is whole in one of them is found there.
        found
            .iter()
            .filter(holds)
            .any(|span| span.start < start || span.end > at)
    });
    pieces.collect()
}
