//! JSON pointers (RFC 6901) to a byte of a text, worked out only once something went wrong.

use crate::string::{self, Span};

/// One reference token of a pointer, with its slash.
pub(crate) fn segment(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The pointer to the innermost value that holds byte `offset` of `text`.
///
/// Everything before `offset` must have been read without complaint, so only strings and brackets
/// need a look. Readers therefore carry no path while all is well.
#[cold]
pub(crate) fn locate(text: &str, offset: usize) -> String {
    let mut steps = Vec::new();
    let mut at = 0;
    while at < offset {
        at = walk(text, at, offset, &mut steps);
    }
    steps.iter().map(|step| step.to_segment(text)).collect()
}

/// The way from one open container to the value being read inside it.
enum Step {
    Member(Option<Span>),
    Element(usize),
}

impl Step {
    fn to_segment(&self, text: &str) -> String {
        match self {
            Step::Member(Some(key)) => segment(&key.characters(text).unwrap_or_default()),
            Step::Member(None) => String::new(),
            Step::Element(index) => format!("/{index}"),
        }
    }

    fn advance(&mut self) {
        match self {
            Step::Member(key) => *key = None,
            Step::Element(index) => *index += 1,
        }
    }
}

/// Takes the token at `at` into account and returns where the next one starts.
fn walk(text: &str, at: usize, offset: usize, steps: &mut Vec<Step>) -> usize {
    match text.as_bytes().get(at) {
        Some(b'"') => return walk_string(text, at, offset, steps),
        Some(b'{') => steps.push(Step::Member(None)),
        Some(b'[') => steps.push(Step::Element(0)),
        Some(b'}' | b']') => drop(steps.pop()),
        Some(b',') => steps.last_mut().map_or((), Step::advance),
        Some(_) => {}
        None => return offset,
    }
    at + 1
}

fn walk_string(text: &str, at: usize, offset: usize, steps: &mut [Step]) -> usize {
    let Ok(span) = string::span(text, at) else {
        return offset;
    };
    let end = span.end + 1;
    if let Some(Step::Member(key @ None)) = steps.last_mut()
        && end <= offset
    {
        *key = Some(span);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pointer to the `^` in `text`, which is removed first.
    fn check(text: &str, expect: &str) {
        let offset = text.find('^').unwrap();
        assert_eq!(locate(&text.replace('^', ""), offset), expect, "{text}");
    }

    #[test]
    fn pointers() {
        check("^1", "");
        check(r#"{"a":^1}"#, "/a");
        check(r#"{"a":1,"b":[1,2,^3]}"#, "/b/2");
        check(r#"{"a":{"x":[]},^"b":1}"#, "");
        check(r#"{"a":{"x^y":1}}"#, "/a");
        check(r#"{"a":["x^y"]}"#, "/a/0");
        check(r#"{"\u00e9/~\"":[[], ^]}"#, "/é~1~0\"/1");
        check(r#"{"":{"": ^}}"#, "//");
        check(r#"["{[,", {"k" : ^}]"#, "/1/k");
    }
}
