//! JSON as YAML: one member or element a line.

use countersign_canon::Json;

/// Block style. Text stands plain only where every reader of YAML takes it for text.
pub(crate) fn yaml(value: &Json) -> String {
    let mut lines = Vec::new();
    match value {
        Json::Object(_) | Json::Array(_) if !is_empty(value) => block(value, 0, &mut lines),
        other => lines.push(scalar(other)),
    }
    lines.join("\n")
}

fn block(value: &Json, depth: usize, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    match value {
        Json::Object(members) => {
            for (name, value) in members {
                entry(&format!("{indent}{}:", text(name)), value, depth, lines);
            }
        }
        Json::Array(elements) => {
            for element in elements {
                entry(&format!("{indent}-"), element, depth, lines);
            }
        }
        _ => {}
    }
}

fn entry(label: &str, value: &Json, depth: usize, lines: &mut Vec<String>) {
    match value {
        Json::Object(_) | Json::Array(_) if !is_empty(value) => {
            lines.push(label.to_owned());
            block(value, depth + 1, lines);
        }
        other => lines.push(format!("{label} {}", scalar(other))),
    }
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Object(members) => members.is_empty(),
        Json::Array(elements) => elements.is_empty(),
        _ => false,
    }
}

fn scalar(value: &Json) -> String {
    match value {
        Json::String(value) => text(value),
        other => json(other),
    }
}

fn text(value: &str) -> String {
    let is_plain = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c))
        && !WORDS.contains(&value.to_ascii_lowercase().as_str());
    match is_plain {
        true => value.to_owned(),
        false => json(&Json::from(value)),
    }
}

fn json(value: &Json) -> String {
    String::from_utf8(value.to_jcs().unwrap_or_default()).unwrap_or_default()
}

/// What some reader takes for something else than text.
const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

#[cfg(test)]
mod tests {
    use countersign_canon::Limits;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let source = r#"{"a":{"b":[],"c":{},"d":[1,"x",["y"],{"z":null}]},"e e":"no","f":"1.0.0",
            "g":"*.x.com","h":"a: b # c","i":true,"j":-0.5,"k":"line\nbreak","l":"","m":"/data/a",
            "true":"~","n":"sha256:00"}"#;
        let json = Json::admit(source.as_bytes(), &Limits::event()).unwrap();
        let text = yaml(&json);
        let read = countersign_policy::manifest::yaml::admit(text.as_bytes(), &Limits::event());
        assert_eq!(read.unwrap(), json, "{text}");
        assert_eq!(yaml(&Json::Array(Vec::new())), "[]");
    }
}
