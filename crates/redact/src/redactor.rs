//! Redacting text and JSON.

use std::borrow::Cow;

use countersign_canon::{Json, Limits, Object};

use crate::redacted::Redacted;
use crate::span::{self, REDACTED};
use crate::{detect, key};

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
pub const RULES_VERSION: u64 = 1;

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
        let names_a_secret = NAMES
            .iter()
            .filter_map(|name| members.get(name).and_then(Json::as_str))
            .any(|name| self.is_secret(name));
        let mut out = Object::default();
        for (name, value) in members.iter() {
            let is_value = VALUES.contains(&name);
            let redacted = if self.is_secret(name) || names_a_secret && is_value {
                hidden(name, value)
            } else {
                self.value(value, depth)
            };
            out.insert(free_name(&out, self.replaced(name).into_owned()), redacted);
        }
        out
    }

    fn array(&self, values: &[Json], depth: usize) -> Vec<Json> {
        let mut after_name = false;
        let each = values.iter().map(|value| {
            let secret = std::mem::replace(&mut after_name, self.is_a_secrets_name(value));
            match value {
                Json::String(_) | Json::Number(_) if secret => Json::from(REDACTED),
                _ => self.value(value, depth),
            }
        });
        each.collect()
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
        !span::holds_mark(name) && key::is_secret(name, &self.rules.secret_names)
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

const NAMES: [&str; 6] = ["name", "key", "header", "field", "Name", "Key"];
const VALUES: [&str; 4] = ["value", "values", "Value", "content"];
const DEEPEST: usize = 8;
const SHORTEST_PREFIX: usize = 3;
