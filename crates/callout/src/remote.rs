//! Annotators and policies of other machines.

use countersign_acs::{
    Adapter, AdapterCall, Annotate, AnnotationError, AnnotatorCall, AnnotatorKind, DispatchError,
};
use countersign_canon::{Json, Object};

use crate::client::{CallError, Target};

/// Asks annotators, and policies of the type `custom`, over HTTP.
///
/// * `endpoint` and `classifier`: `POST {"annotator", "value"}`; the JSON that comes back is the
///   annotation.
/// * `llm`: a chat completion in the form of OpenAI's API (`model`, `system_prompt`, and `labels` that
///   the answer must be one of); the annotation is `{"label", "raw"}`.
/// * `custom` policies: `POST {"input"}`; the JSON that comes back is the policy's answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Remote;

impl Annotate for Remote {
    fn annotate(&self, call: &AnnotatorCall<'_>) -> Result<Json, AnnotationError> {
        let target = Target::read(call.fields, &environment).map_err(AnnotationError::Failed)?;
        let ask = |question: &Json| target.ask(question).map_err(annotation_error);
        match call.kind {
            AnnotatorKind::Endpoint | AnnotatorKind::Classifier => ask(&Json::object([
                ("annotator", call.name.into()),
                ("value", call.value.clone()),
            ])),
            AnnotatorKind::Llm => {
                let question = completion(call.fields, call.value)
                    .map_err(|problem| AnnotationError::Failed(problem.to_owned()))?;
                label(&ask(&question)?, call.fields).map_err(AnnotationError::Failed)
            }
        }
    }
}

impl Adapter for Remote {
    fn answer(&self, call: &AdapterCall<'_>) -> Result<Json, DispatchError> {
        let target = Target::read(call.fields, &environment).map_err(DispatchError::Failed)?;
        let question = Json::object([("input", call.input.to_json()), ("policy", call.id.into())]);
        target.ask(&question).map_err(|error| {
            DispatchError::Failed(match error {
                CallError::TimedOut(limit) => format!("no answer in {limit:?}"),
                CallError::Failed(problem) => problem,
            })
        })
    }
}

/// Secrets are named by manifests, and kept by the environment.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn annotation_error(error: CallError) -> AnnotationError {
    match error {
        CallError::TimedOut(limit) => AnnotationError::TimedOut(format!("no answer in {limit:?}")),
        CallError::Failed(problem) => AnnotationError::Failed(problem),
    }
}

fn completion(fields: &Object, value: &Json) -> Result<Json, &'static str> {
    let text = |name: &str| fields.get(name).and_then(Json::as_str);
    let model = text("model").ok_or("it has no `model`")?;
    let prompt = match (text("system_prompt"), text("prompt")) {
        (Some(prompt), None) | (None, Some(prompt)) => prompt,
        _ => {
            return Err("it needs exactly one of `system_prompt`, `prompt` and a prompt elsewhere");
        }
    };
    let content = match value {
        Json::String(text) => text.clone(),
        other => String::from_utf8_lossy(&other.to_sorted()).into_owned(),
    };
    let message = |role: &str, content: &str| {
        Json::object([("role", Json::from(role)), ("content", content.into())])
    };
    Ok(Json::object([
        ("model", model.into()),
        ("temperature", Json::from(0_u64)),
        (
            "messages",
            Json::Array(vec![message("system", prompt), message("user", &content)]),
        ),
    ]))
}

fn label(answer: &Json, fields: &Object) -> Result<Json, String> {
    let first = answer.get("choices").and_then(Json::as_array);
    let first = first.and_then(<[Json]>::first);
    let raw = first
        .and_then(|choice| choice.get("message")?.get("content")?.as_str())
        .ok_or("its answer is no chat completion")?;
    let label = raw.trim();
    let known = fields.get("labels").and_then(Json::as_array);
    if known.is_some_and(|known| !known.iter().any(|one| one.as_str() == Some(label))) {
        return Err("its answer is not one of `labels`".to_owned());
    }
    Ok(Json::object([
        ("label", Json::from(label)),
        ("raw", raw.into()),
    ]))
}
