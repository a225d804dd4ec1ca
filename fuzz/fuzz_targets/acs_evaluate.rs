//! Any snapshot, any annotation and any policy output: a verdict, and whatever is wrong is a deny with
//! a reserved reason, without identities and without a change.
#![no_main]

use std::sync::LazyLock;

use countersign_acs::{
    Annotate, AnnotationError, AnnotatorCall, Dispatch, DispatchError, Manifest, Mode, Offline,
    Point, PolicyCall, Reserved, Runtime,
};
use countersign_canon::{Json, Limits};
use countersign_policy::Decision;
use libfuzzer_sys::fuzz_target;

struct Says(Json);

impl Dispatch for Says {
    fn dispatch(&self, _: &PolicyCall<'_>) -> Result<Json, DispatchError> {
        Ok(self.0.clone())
    }
}

struct Notes(Json);

impl Annotate for Notes {
    fn annotate(&self, call: &AnnotatorCall<'_>) -> Result<Json, AnnotationError> {
        match call.fields.contains_key("builtin") {
            true => OFFLINE.annotate(call),
            false => Ok(self.0.clone()),
        }
    }
}

/// Its detectors take a while to put together.
static OFFLINE: LazyLock<Offline> = LazyLock::new(Offline::default);

static MANIFEST: LazyLock<Manifest> = LazyLock::new(|| {
    let text = b"
agent_control_specification_version: 0.3.1-beta
policies: {p: {type: test}}
intervention_points:
  pre_tool_call:
    policy_target: $.tool_call.args
    tool_name_from: $.tool_call.name
    policy: {id: p}
    annotations:
      a: {from: $policy_target}
      secrets: {from: $policy_target}
      injection: {from: $policy_target}
      shape: {from: $policy_target}
annotators:
  a: {type: llm}
  secrets: {type: classifier, builtin: secrets, redact: true}
  injection: {type: classifier, builtin: injection}
  shape: {type: classifier, builtin: shape}
tools: {t: {}}
";
    Manifest::read(text).expect("the manifest is valid")
});

fuzz_target!(|text: &[u8]| {
    let mut parts = text.splitn(3, |byte| *byte == b'\n');
    let mut next = || {
        let part = parts.next().unwrap_or_default();
        Json::admit(part, &Limits::plan()).unwrap_or(Json::Null)
    };
    let (args, note, output) = (next(), next(), next());
    let snapshot = Json::object([(
        "tool_call",
        Json::object([("name", Json::from("t")), ("args", args)]),
    )]);
    let runtime = Runtime::new(MANIFEST.clone(), Says(output)).with_annotators(Notes(note));
    for mode in [Mode::Enforce, Mode::EvaluateOnly] {
        let found = runtime.evaluate(Point::PreToolCall, &snapshot, mode);
        let reason = found.verdict().reason().unwrap_or_default();
        match found.identities() {
            Some(_) => assert!(!reason.starts_with("runtime_error:")),
            None => {
                assert_eq!(found.verdict().decision(), Decision::Deny);
                assert!(Reserved::ALL.iter().any(|one| one.as_str() == reason));
                assert!(found.transformed().is_none());
            }
        }
    }
});
