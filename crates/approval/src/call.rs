//! The calls of a plan: which tool, with which exact arguments, to what effect.

use countersign_canon::{Digest, Error, Json, Limits, Reason};

use crate::form::{Fields, FormError, wrong};
use crate::id::ToolCallId;
use crate::names::names;

/// One call of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Chosen by the agent, unique in the envelope.
    pub id: ToolCallId,
    /// Which tool, exactly.
    pub tool: Tool,
    /// With what.
    pub args: Arguments,
    /// To what effect.
    pub class: Class,
}

/// Which tool, exactly: a name alone does not say what runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The server that offers it, if it is not built in.
    pub server: Option<String>,
    /// Its name there.
    pub name: String,
    /// The digest of its definition, if the door knows one. A changed definition is another tool.
    pub definition: Option<Digest>,
}

/// What a call does to the world, as an operator classified the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// What it changes.
    pub effect: SideEffect,
    /// Whether it cannot be undone. No lease covers such a call.
    pub irreversible: bool,
}

impl Class {
    /// What is assumed of a tool that nobody classified.
    pub const UNKNOWN: Self = Self {
        effect: SideEffect::Unknown,
        irreversible: true,
    };
}

names! {
    /// What a call changes. Ordered from harmless to worst; what is not known counts as worst.
    SideEffect as "class of side effects" {
        /// Nothing.
        Read = "read",
        /// Things on this machine.
        MutateLocal = "mutate-local",
        /// Things elsewhere.
        MutateExternal = "mutate-external",
        /// Data leaves.
        NetworkEgress = "network-egress",
        /// Nobody said.
        Unknown = "unknown",
    }
}

/// The arguments of a call, with the one text that is hashed, shown and executed.
///
/// INVARIANT: `canonical` is the sorted ASCII form of `value`, within the limits of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    value: Json,
    canonical: Vec<u8>,
}

impl Arguments {
    /// Reads arguments strictly. Some agents send them as a text that holds JSON; that text is read
    /// just as strictly, once.
    pub fn admit(text: &[u8]) -> Result<Self, ArgumentsError> {
        let value = match Json::admit(text, &Limits::plan())? {
            Json::String(inner) => Json::admit(inner.as_bytes(), &Limits::plan())?,
            value => value,
        };
        Self::new(value)
    }

    /// Takes a value, after the same checks as if its canonical text had been read.
    pub fn new(value: Json) -> Result<Self, ArgumentsError> {
        if value.as_object().is_none() {
            return Err(ArgumentsError::NotAnObject);
        }
        let canonical = value.to_sorted_ascii();
        // Escaping makes text longer and a value may be built by hand: what is stored must be
        // something that can be read back.
        let value = Json::admit(&canonical, &Limits::plan())?;
        Ok(Self { value, canonical })
    }

    /// The value.
    pub const fn value(&self) -> &Json {
        &self.value
    }

    /// The text that runs: what was hashed and shown, byte for byte.
    pub fn canonical(&self) -> &[u8] {
        &self.canonical
    }

    /// The digest of the text that runs.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.canonical)
    }
}

/// Why arguments were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentsError {
    /// They are not JSON that can be admitted.
    #[error("arguments: {0}")]
    Json(#[from] Error),
    /// They are a list, a number or such.
    #[error("arguments are not an object")]
    NotAnObject,
}

impl ArgumentsError {
    /// The code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAnObject => "invalid_args:not_an_object",
            Self::Json(error) => match error.reason() {
                Reason::DuplicateKey(_) => "invalid_args:duplicate_key",
                Reason::NotANumber | Reason::NumberOutOfRange => "invalid_args:number",
                Reason::LoneSurrogate | Reason::InvalidUtf8 => "invalid_args:text",
                Reason::TooDeep { .. } => "invalid_args:depth",
                Reason::TooLarge { .. } => "invalid_args:size",
                _ => "invalid_args:syntax",
            },
        }
    }
}

impl ToolCall {
    pub(crate) fn to_json(&self) -> Json {
        call_json(&self.id, &self.args, &self.tool, self.class)
    }

    pub(crate) fn read(json: Json) -> Result<Self, FormError> {
        let mut fields = Fields::of("tool_calls", json)?;
        let id = fields.parsed("tool_call_id")?;
        let tool = Tool::take(&mut fields)?;
        let class = Class::take(&mut fields)?;
        let args = Arguments::new(fields.take("args")?);
        let args = args.map_err(|error| FormError::refused("args", error))?;
        fields.end()?;
        Ok(Self {
            id,
            tool,
            args,
            class,
        })
    }
}

/// One call as the plan hash covers it: what was stored, for the tool as it is now.
pub(crate) fn call_json(id: &ToolCallId, args: &Arguments, tool: &Tool, class: Class) -> Json {
    Json::object([
        ("args", args.value.clone()),
        ("definition_digest", digest_json(tool.definition)),
        ("irreversible", Json::from(class.irreversible)),
        ("server", Json::from(tool.server.clone())),
        ("side_effect_class", Json::from(class.effect.as_str())),
        ("tool_call_id", Json::from(id.as_str())),
        ("tool_name", Json::from(tool.name.as_str())),
    ])
}

impl Tool {
    pub(crate) fn take(fields: &mut Fields) -> Result<Self, FormError> {
        let tool = Self {
            server: fields.nullable_text("server")?,
            name: fields.text("tool_name")?,
            definition: fields.nullable("definition_digest")?,
        };
        match tool.is_named() {
            true => Ok(tool),
            false => Err(wrong("tool_name", "the name of a tool")),
        }
    }

    /// Whether the names can be told apart from their absence.
    pub(crate) fn is_named(&self) -> bool {
        let named = crate::id::bounded;
        named(&self.name) && self.server.as_deref().is_none_or(named)
    }
}

impl Class {
    fn take(fields: &mut Fields) -> Result<Self, FormError> {
        Ok(Self {
            effect: fields.parsed("side_effect_class")?,
            irreversible: fields.flag("irreversible")?,
        })
    }
}

pub(crate) fn digest_json(digest: Option<Digest>) -> Json {
    Json::from(digest.map(|digest| digest.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: &str) {
        let refused = Arguments::admit(text.as_bytes()).unwrap_err();
        assert_eq!(refused.code(), code, "{text}: {refused}");
    }

    #[test]
    fn b02_duplicate_keys_are_refused_at_any_depth_and_inside_texts() {
        check(r#"{"a":1,"a":2}"#, "invalid_args:duplicate_key");
        check(
            r#"{"x":[{"a":1,"\u0061":2}]}"#,
            "invalid_args:duplicate_key",
        );
        check(
            r#""{\"x\":{\"a\":1,\"a\":2}}""#,
            "invalid_args:duplicate_key",
        );
        let refused = Arguments::admit(br#"{"x":[0,{"a":1,"a":2}]}"#).unwrap_err();
        assert!(refused.to_string().contains("`/x/1/a`"), "{refused}");
    }

    #[test]
    fn b03_b04_b12_numbers_and_texts_without_meaning_are_refused() {
        for text in [r#"{"x":NaN}"#, r#"{"x":Infinity}"#, r#"{"x":1e400}"#] {
            check(text, "invalid_args:number");
        }
        check(r#"{"x":"\ud800"}"#, "invalid_args:text");
        for text in ["", "{\"a\":1}garbage", "{\"a\":1,}", "{'a':1}", "{}//c"] {
            check(text, "invalid_args:syntax");
        }
        check("\u{feff}{}", "invalid_args:syntax");
    }

    #[test]
    fn b05_b06_numbers_stay_as_they_were_written() {
        let args = |text: &str| Arguments::admit(text.as_bytes()).unwrap();
        let big = r#"{"x":18446744073709551617}"#;
        assert_eq!(args(big).canonical(), big.as_bytes());
        let texts = ["1", "1.0", "-0.0", "0", "9007199254740993"];
        let digests = texts.map(|x| args(&format!("{{\"x\":{x}}}")).digest());
        for (place, digest) in digests.iter().enumerate() {
            assert!(!digests[..place].contains(digest));
        }
        assert_ne!(
            args("{\"x\":\"\u{e9}\"}").digest(),
            args("{\"x\":\"e\u{301}\"}").digest()
        );
    }

    #[test]
    fn b10_depth_and_size_are_bounded_before_hashing() {
        let deep =
            |levels: usize| format!("{{\"x\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(Arguments::admit(deep(127).as_bytes()).is_ok());
        check(&deep(128), "invalid_args:depth");
        check(&deep(100_000), "invalid_args:depth");
        // Short enough to be read, but its ASCII form is not.
        let wide = format!("{{\"x\":\"{}\"}}", "é".repeat(1 << 20));
        check(&wide, "invalid_args:size");
    }

    #[test]
    fn arguments_are_an_object() {
        check("[1]", "invalid_args:not_an_object");
        check(r#""[1]""#, "invalid_args:not_an_object");
        check(r#""\"{}\"""#, "invalid_args:not_an_object");
        assert!(Arguments::admit(br#""{}""#).is_ok());
        assert_eq!(Arguments::new(Json::Null), Err(ArgumentsError::NotAnObject));
    }
}
