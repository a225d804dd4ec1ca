//! Hosts for tests: policies and annotators that say what they are told to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use countersign_acs::{
    Annotate, AnnotationError, AnnotatorCall, Dispatch, DispatchError, Manifest, PolicyCall,
    Runtime,
};
use countersign_canon::{Json, Limits};

/// A policy that always answers the same.
pub(crate) struct Says(pub(crate) Json);

impl Dispatch for Says {
    fn dispatch(&self, _: &PolicyCall<'_>) -> Result<Json, DispatchError> {
        Ok(self.0.clone())
    }
}

/// Annotators that say what they are told to, and remember in which order they were asked.
#[derive(Clone, Default)]
pub(crate) struct Annotators {
    pub(crate) outputs: BTreeMap<String, Json>,
    pub(crate) error: Option<AnnotationError>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Annotate for Annotators {
    fn annotate(&self, call: &AnnotatorCall<'_>) -> Result<Json, AnnotationError> {
        self.asked.lock().unwrap().push(call.name.to_owned());
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(self.outputs.get(call.name).cloned().unwrap_or(Json::Null)),
        }
    }
}

pub(crate) fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::plan()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(crate) fn manifest(text: &str) -> Manifest {
    Manifest::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// A runtime whose only policy judges `$.input` and says this.
pub(crate) fn saying(answer: &str) -> Runtime {
    Runtime::new(manifest(INPUT), Says(json(answer)))
}

pub(crate) const INPUT: &str = "
agent_control_specification_version: 0.3.1-beta
policies:
  p: {type: rego, query: data.acs.verdict}
intervention_points:
  input: {policy_target: $.input, policy: {id: p}}
";
