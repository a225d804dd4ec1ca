//! Redacting text and JSON.

use std::borrow::Cow;

use countersign_canon::{Json, Limits, Object};

use crate::redacted::Redacted;
use crate::span::{self, REDACTED};
use crate::{detect, key, shape};

/// What to look for beside what is always looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Further names whose values are secret, in any case and spelling.
    pub secret_names: Vec<String>,
    /// Further beginnings of tokens.
    pub secret_prefixes: Vec<String>,
    /// Whether e-mail addresses may be shown.
    pub keep_email: bool,
    /// Whether numbers of telephones, cards and social security may be shown.
    pub keep_numbers: bool,
}

/// A rule that says nothing, or too much.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A name without a letter or digit.
    #[error("the secret name `{0}` has no letter and no digit")]
    Name(String),
    /// A prefix that would match ordinary words.
    #[error("the secret prefix `{0}` is shorter than {SHORTEST_PREFIX} characters")]
    Prefix(String),
}

/// Which rules are always applied. INVARIANT: whoever changes what becomes of any text raises it, because
/// evidence is recomputed by those who read it.
pub const RULES_VERSION: u64 = 2;

/// Replaces secrets and personal data.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    rules: Rules,
}

impl Redactor {
    /// A redactor that also looks for these.
    pub fn new(mut rules: Rules) -> Result<Self, RuleError> {
        for name in &mut rules.secret_names {
            let joined = key::joined(name);
            if joined.is_empty() {
                return Err(RuleError::Name(name.clone()));
            }
            *name = joined;
        }
        if let Some(short) = rules
            .secret_prefixes
            .iter()
            .find(|prefix| prefix.len() < SHORTEST_PREFIX)
        {
            return Err(RuleError::Prefix(short.clone()));
        }
        Ok(Self { rules })
    }

    /// The text without secrets.
    pub fn text(&self, text: &str) -> Redacted<String> {
        Redacted::new(self.string(text, 0))
    }

    /// The value without secrets: not in values, not in names of members, not in text that is JSON
    /// itself.
    pub fn json(&self, value: &Json) -> Redacted<Json> {
        Redacted::new(self.value(value, 0))
    }

    fn value(&self, value: &Json, depth: usize) -> Json {
        match value {
            Json::Null | Json::Bool(_) => value.clone(),
            Json::Number(_) => self.number(value),
            Json::String(text) => Json::String(self.string(text, depth)),
            Json::Array(values) => Json::Array(self.array(values, depth)),
            Json::Object(members) => Json::Object(self.object(members, depth)),
        }
    }

    /// A number of a card is one in JSON too.
    fn number(&self, value: &Json) -> Json {
        let text = String::from_utf8(value.to_sorted_ascii()).unwrap_or_default();
        match self.replaced(&text) {
            Cow::Borrowed(_) => value.clone(),
            Cow::Owned(replaced) => Json::String(replaced),
        }
    }

    fn object(&self, members: &Object, depth: usize) -> Object {
        let names_a_secret = members.iter().any(|(name, value)| {
            is_any(name, NAMES) && value.as_str().is_some_and(|name| self.is_secret(name))
        });
        let parts = shape::secret_parts(members);
        let columns = shape::columns(members, &|name| self.is_secret(name));
        let mut out = Object::default();
        for (name, value) in members.iter() {
            let is_told = names_a_secret && is_any(name, VALUES) || parts.contains(&name);
            let redacted = if self.is_secret(name) || is_told {
                hidden(name, value)
            } else if is_any(name, ROWS)
                && let Some(columns) = &columns
                && let Some(rows) = value.as_array()
            {
                Json::Array(self.rows(rows, columns, depth))
            } else {
                self.value(value, depth)
            };
            out.insert(free_name(&out, self.replaced(name).into_owned()), redacted);
        }
        out
    }

    fn array(&self, values: &[Json], depth: usize) -> Vec<Json> {
        if let Some((head, rows)) = values.split_first()
            && let Some(columns) = shape::head(head, &|name| self.is_secret(name))
        {
            let mut table = vec![self.value(head, depth)];
            table.extend(self.rows(rows, &columns, depth));
            return table;
        }
        let split = shape::split(values);
        let mut before = None;
        let each = values.iter().zip(split).map(|(value, split)| {
            let secret = self.is_a_secrets_name(before.unwrap_or(&Json::Null));
            let before = before.replace(value);
            match value {
                Json::String(_) | Json::Number(_) if secret || split => Json::from(REDACTED),
                Json::String(text) => Json::String(self.after(before, text, depth)),
                _ => self.value(value, depth),
            }
        });
        each.collect()
    }

    /// A word of an array, as it stands in the command line that the array may be.
    fn after(&self, before: Option<&Json>, text: &str, depth: usize) -> String {
        let flag = before
            .and_then(Json::as_str)
            .filter(|word| word.starts_with('-'));
        let line = flag.map(|flag| format!("{flag} {text}"));
        let redacted = line.and_then(|line| match self.replaced(&line) {
            Cow::Borrowed(_) => None,
            Cow::Owned(line) => Some(line.split_once(' ')?.1.to_owned()),
        });
        redacted.unwrap_or_else(|| self.string(text, depth))
    }

    /// The rows of a table some of whose columns are secret.
    fn rows(&self, rows: &[Json], columns: &[bool], depth: usize) -> Vec<Json> {
        let rows = rows.iter().map(|row| match row {
            Json::Array(cells) => {
                let columns = columns.iter().copied().chain(std::iter::repeat(false));
                let cells = cells
                    .iter()
                    .zip(columns)
                    .map(|(cell, secret)| match secret {
                        true => hidden("", cell),
                        false => self.value(cell, depth),
                    });
                Json::Array(cells.collect())
            }
            row => self.value(row, depth),
        });
        rows.collect()
    }

    /// Whether the next element of an array is a secret: `["--token", …]`, `["Authorization", …]`.
    fn is_a_secrets_name(&self, value: &Json) -> bool {
        let Some(name) = value.as_str() else {
            return false;
        };
        let is_name = !name.contains(['=', ':']) && name.split_whitespace().count() <= 3;
        is_name && self.is_secret(name)
    }

    fn string(&self, text: &str, depth: usize) -> String {
        let inner = text.trim_start();
        if inner.starts_with(['{', '[', '"'])
            && let Ok(value @ (Json::Object(_) | Json::Array(_) | Json::String(_))) =
                Json::admit(text.as_bytes(), &Limits::event())
        {
            if depth >= DEEPEST {
                return REDACTED.to_owned();
            }
            let redacted = self.value(&value, depth + 1);
            if redacted == value {
                return text.to_owned();
            }
            return String::from_utf8(redacted.to_sorted_ascii())
                .unwrap_or_else(|_| REDACTED.to_owned());
        }
        self.replaced(text).into_owned()
    }

    fn replaced<'t>(&self, text: &'t str) -> Cow<'t, str> {
        span::replace(text, detect::find(text, &self.rules))
    }

    fn is_secret(&self, name: &str) -> bool {
        key::is_secret(name, &self.rules.secret_names)
    }
}

/// What stands in the place of a secret value. That there is none may be seen.
fn hidden(name: &str, value: &Json) -> Json {
    match value {
        Json::Null | Json::Bool(_) => value.clone(),
        Json::Number(_) if key::counts(name) => value.clone(),
        _ => Json::from(REDACTED),
    }
}

/// Two names may look alike once they are redacted; both stay.
fn free_name(members: &Object, name: String) -> String {
    if !members.contains_key(&name) {
        return name;
    }
    let numbered = (2_usize..).map(|number| format!("{name}#{number}"));
    let mut free = numbered.filter(|name| !members.contains_key(name));
    free.next().unwrap_or(name)
}

fn is_any(name: &str, words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(name))
}

const NAMES: &[&str] = &[
    "name",
    "key",
    "header",
    "field",
    "k",
    "param",
    "parameter",
    "variable",
];
const VALUES: &[&str] = &["value", "values", "content", "v", "val", "default"];
const ROWS: &[&str] = &["rows", "values", "data", "records"];
const DEEPEST: usize = 8;
const SHORTEST_PREFIX: usize = 3;
