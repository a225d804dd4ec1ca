//! JSON for people.

use countersign_canon::Json;

/// Objects over several lines, everything else on one.
pub(crate) fn pretty(value: &Json) -> String {
    indented(value, 0)
}

fn indented(value: &Json, depth: usize) -> String {
    let inner = "  ".repeat(depth + 1);
    let outer = "  ".repeat(depth);
    match value {
        Json::Object(members) if !members.is_empty() => {
            let lines: Vec<String> = members
                .iter()
                .map(|(name, value)| {
                    format!(
                        "{inner}{}: {}",
                        compact(&Json::from(name)),
                        indented(value, depth + 1)
                    )
                })
                .collect();
            format!("{{\n{}\n{outer}}}", lines.join(",\n"))
        }
        other => compact(other),
    }
}

fn compact(value: &Json) -> String {
    String::from_utf8(value.to_jcs().unwrap_or_default()).unwrap_or_default()
}
