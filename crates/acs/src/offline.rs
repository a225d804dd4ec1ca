//! Annotators that need no network: secrets and personal data, signs of prompt injection, and what
//! arguments are made of.
//!
//! An annotator is one of these if its declaration says `builtin: secrets`, `injection` or `shape`.
//! They look at every text inside the value, also in keys, and say where and what kind, never the
//! content itself; `secrets` gives a cleaned copy if it is asked for one (`redact: true`).

mod injection;
mod secrets;
mod shape;
mod texts;

use std::sync::Arc;

use countersign_canon::Json;

use crate::{Annotate, AnnotationError, AnnotatorCall};

/// The annotators that work offline, and others for the rest.
pub struct Offline {
    secrets: secrets::Secrets,
    injection: injection::Injection,
    others: Option<Arc<dyn Annotate>>,
}

impl Default for Offline {
    fn default() -> Self {
        Self {
            secrets: secrets::Secrets::new(),
            injection: injection::Injection::new(),
            others: None,
        }
    }
}

impl Offline {
    /// The same, with somebody to ask for everything that is not built in.
    #[must_use = "gives the changed annotators back"]
    pub fn or(mut self, others: impl Annotate + 'static) -> Self {
        self.others = Some(Arc::new(others));
        self
    }
}

impl Annotate for Offline {
    fn is_repeatable(&self, call: &AnnotatorCall<'_>) -> bool {
        call.fields.contains_key("builtin")
    }

    fn annotate(&self, call: &AnnotatorCall<'_>) -> Result<Json, AnnotationError> {
        let failed = |problem: String| Err(AnnotationError::Failed(problem));
        match call.fields.get("builtin").map(Json::as_str) {
            Some(Some("secrets")) => {
                let redact = call.fields.get("redact").and_then(Json::as_bool);
                Ok(self.secrets.look(call.value, redact.unwrap_or(false)))
            }
            Some(Some("injection")) => Ok(self.injection.look(call.value)),
            Some(Some("shape")) => Ok(shape::look(call.value)),
            Some(_) => failed("`builtin` must be secrets, injection or shape".to_owned()),
            None => match &self.others {
                Some(others) => others.annotate(call),
                None => failed("this host asks no annotators over the network".to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests;
