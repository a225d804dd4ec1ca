//! Annotators: what others say about what is judged, before the policy is asked.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use countersign_canon::{Json, Object};
use countersign_policy::{Hearing, Unheard};

use crate::limits::depth;
use crate::policies::Dispatch;
use crate::prompts::with_prompt;
use crate::reserved::Failure;
use crate::{AnnotatorKind, Input, Limits, Manifest, Reserved};

/// Who answers for annotators.
pub trait Annotate: Send + Sync {
    /// What the annotator says. It has to end in bounded time by itself.
    fn annotate(&self, call: &AnnotatorCall<'_>) -> Result<Json, AnnotationError>;

    /// Whether the same question always gets the same answer, so that nobody has to keep it.
    fn is_repeatable(&self, _: &AnnotatorCall<'_>) -> bool {
        false
    }
}

/// One question to an annotator.
#[derive(Debug)]
pub struct AnnotatorCall<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is.
    pub kind: AnnotatorKind,
    /// Its declaration with the fields of the point laid over it. A prompt that stands elsewhere is read:
    /// it is `system_prompt`.
    pub fields: &'a Object,
    /// What it looks at.
    pub value: &'a Json,
    /// The policy input so far, without annotations.
    pub input: &'a Input<'a>,
}

/// Why an annotator said nothing. Neither lets anything pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationError {
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// It took too long.
    #[error("it took too long: {0}")]
    TimedOut(String),
}

/// Nobody answers.
#[derive(Debug, Clone, Copy)]
pub struct NoAnnotators;

impl Annotate for NoAnnotators {
    fn annotate(&self, _: &AnnotatorCall<'_>) -> Result<Json, AnnotationError> {
        Err(AnnotationError::Failed(
            "this host has no annotators".to_owned(),
        ))
    }
}

/// Everything that is needed to ask annotators.
pub(crate) struct Annotators<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) ask: &'a dyn Annotate,
    pub(crate) limits: &'a Limits,
    pub(crate) hearing: &'a Hearing,
    pub(crate) policies: &'a dyn Dispatch,
}

impl Annotators<'_> {
    /// Asks every annotator of the point, in the order of their names.
    pub(crate) fn annotations(&self, input: &Input<'_>) -> Result<Object, Failure> {
        let asked = &input.config.annotations;
        let most = self.limits.max_annotators_per_point;
        if asked.len() > most {
            return Err(Failure::new(
                Reserved::ResourceLimitExceeded,
                format!(
                    "{} annotators at one point, and {most} are allowed",
                    asked.len()
                ),
            ));
        }
        let mut said = Vec::with_capacity(asked.len());
        for (name, annotation) in asked {
            let value = input.resolve(&annotation.from);
            let value: Cow<'_, Json> = value.map_err(|lost| {
                crate::runtime::lost(lost, &format!("annotator `{name}`: `{}`", annotation.from))
            })?;
            let kind = self.manifest.annotators().get(name);
            let kind = kind.map(|known| known.kind);
            let prompt = self.policies.prompt(input.point(), name);
            let fields = prompt.map(|prompt| with_prompt(&annotation.fields, prompt));
            let call = AnnotatorCall {
                name,
                kind: kind.ok_or_else(|| Failure::new(Reserved::ManifestInvalid, name.as_str()))?,
                fields: fields.as_ref().unwrap_or(&annotation.fields),
                value: &value,
                input,
            };
            said.push((name.clone(), self.answer(&call)?));
        }
        Ok(said.into_iter().collect())
    }

    fn answer(&self, call: &AnnotatorCall<'_>) -> Result<Json, Failure> {
        let name = call.name;
        let failed = |problem: &str| {
            Failure::new(
                Reserved::AnnotationFailed,
                format!("annotator `{name}`: {problem}"),
            )
        };
        // FAIL-CLOSED: a host's code may panic, and the agent must not go on because of it.
        let answer = catch_unwind(AssertUnwindSafe(|| self.said(call)))
            .map_err(|_| failed("it panicked"))?
            .map_err(|error| match error {
                AnnotationError::Failed(problem) => failed(&problem),
                AnnotationError::TimedOut(problem) => Failure::new(
                    Reserved::AnnotationTimeout,
                    format!("annotator `{name}`: {problem}"),
                ),
            })?;
        if depth(&answer) > self.limits.max_policy_input_depth {
            return Err(failed("it said something nested too deeply"));
        }
        if gives_reserved_reason(&answer) {
            return Err(failed("it gives a reason that is reserved"));
        }
        if answer.to_sorted().len() > self.limits.max_annotator_output_bytes {
            return Err(failed("it said too much"));
        }
        Ok(answer)
    }

    fn said(&self, call: &AnnotatorCall<'_>) -> Result<Json, AnnotationError> {
        if self.ask.is_repeatable(call) {
            return self.ask.annotate(call);
        }
        let ask = || {
            self.ask.annotate(call).map_err(|error| match error {
                AnnotationError::Failed(problem) => Unheard::Failed(problem),
                AnnotationError::TimedOut(problem) => Unheard::TimedOut(problem),
            })
        };
        let heard = self.hearing.hear(&format!("annotator {}", call.name), ask);
        heard.map_err(|unheard| match unheard {
            Unheard::Failed(problem) => AnnotationError::Failed(problem),
            Unheard::TimedOut(problem) => AnnotationError::TimedOut(problem),
        })
    }
}

/// SECURITY: an annotator must not speak in the name of the runtime, at any depth.
fn gives_reserved_reason(value: &Json) -> bool {
    match value {
        Json::Array(elements) => elements.iter().any(gives_reserved_reason),
        Json::Object(members) => {
            let reason = members.get("reason").and_then(Json::as_str);
            reason.is_some_and(|reason| reason.starts_with("runtime_error:"))
                || members
                    .iter()
                    .any(|(_, value)| gives_reserved_reason(value))
        }
        _ => false,
    }
}
