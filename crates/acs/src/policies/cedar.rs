//! Policies in Cedar.
//!
//! A permit allows, a forbid denies, and silence denies. What a permit advises (`@advice`) can make
//! the answer stricter: warn, transform or escalate. A policy that fails while it is evaluated refuses
//! the action; Cedar alone would pass over it, and a forbid that fails would forbid nothing.

mod advice;
mod context;
mod request;

use std::path::Path;

use cedar_policy::{
    Authorizer, Decision, Entities, Policy, PolicySet, Response, Schema, ValidationMode, Validator,
};
use countersign_canon::{Digest, Json, Object};

use super::{ActivationError, DispatchError};
use crate::{CedarPolicy, Input, Loader};
use request::Mapping;

/// A policy set with its entities and its schema.
pub(super) struct Cedar {
    policies: PolicySet,
    entities: Entities,
    schema: Option<Schema>,
    mapping: Mapping,
    digest: Digest,
}

impl Cedar {
    pub(super) fn compile(
        id: &str,
        policy: &CedarPolicy,
        loader: &dyn Loader,
    ) -> Result<Self, ActivationError> {
        let failed = |problem: String| ActivationError::Policy {
            id: id.to_owned(),
            problem,
        };
        let read = |path: &str| {
            let bytes = loader.read(Path::new(path), MOST_BYTES).map_err(|error| {
                ActivationError::Load {
                    id: id.to_owned(),
                    error,
                }
            })?;
            String::from_utf8(bytes).map_err(|_| failed(format!("`{path}` is not UTF-8")))
        };
        let text = match (&policy.policy_set, &policy.policy_path) {
            (Some(text), _) => text.clone(),
            (None, Some(path)) => policy_text(id, path, loader)?,
            (None, None) => String::new(),
        };
        let policies: PolicySet = text.parse().map_err(|error| failed(described(&error)))?;
        if policies.templates().next().is_some() {
            return Err(failed("templates are not supported".to_owned()));
        }
        advice::check(&policies).map_err(&failed)?;
        let schema_text = policy.schema_path.as_deref().map(read).transpose()?;
        let schema = match (&schema_text, &policy.schema_path) {
            (Some(text), Some(path)) => Some(schema(text, path).map_err(&failed)?),
            _ => None,
        };
        if let Some(schema) = &schema {
            let checked =
                Validator::new(schema.clone()).validate(&policies, ValidationMode::Strict);
            if let Some(error) = checked.validation_errors().next() {
                return Err(failed(error.to_string()));
            }
        }
        let entity_text = policy.entities_path.as_deref().map(read).transpose()?;
        let entities = match (&entity_text, &policy.entities_path) {
            (Some(text), Some(path)) => Entities::from_json_str(text, schema.as_ref())
                .map_err(|error| failed(format!("`{path}`: {}", described(&error))))?,
            _ => Entities::empty(),
        };
        let texts = [Some(text), schema_text, entity_text];
        let digest = texts.iter().flatten().fold(Digest::of(b""), |all, text| {
            Digest::of_parts(&[all.as_bytes(), Digest::of(text.as_bytes()).as_bytes()])
        });
        let mapping = Mapping::read(policy.query.as_ref()).map_err(failed)?;
        Ok(Self {
            policies,
            entities,
            schema,
            mapping,
            digest,
        })
    }

    /// Over the texts of policies, entities and schema. How the question is asked is in the manifest.
    pub(super) fn digest(&self) -> Digest {
        self.digest
    }

    pub(super) fn ask(&self, input: &Input<'_>) -> Result<Json, DispatchError> {
        let request = self
            .mapping
            .request(input, self.schema.as_ref())
            .map_err(DispatchError::Failed)?;
        let response = Authorizer::new().is_authorized(&request, &self.policies, &self.entities);
        // FAIL-CLOSED: see above.
        if let Some(error) = response.diagnostics().errors().next() {
            return Err(DispatchError::Failed(error.to_string()));
        }
        let spoke = self.spoke(&response);
        match response.decision() {
            Decision::Allow => advice::verdict(&spoke).map_err(DispatchError::NoVerdict),
            Decision::Deny => {
                let first = spoke.first().copied().map(name);
                let reason = first.unwrap_or_else(|| NO_POLICY.to_owned());
                Ok(Json::object([
                    ("decision", Json::from("deny")),
                    ("reason", reason.into()),
                ]))
            }
        }
    }

    /// The policies that the decision rests on, in the order of their text.
    fn spoke(&self, response: &Response) -> Vec<&Policy> {
        let mut ids: Vec<_> = response.diagnostics().reason().collect();
        // The library counts: `policy2` stands before `policy10`.
        ids.sort_by_key(|id| (id.to_string().len(), id.to_string()));
        ids.into_iter()
            .filter_map(|id| self.policies.policy(id))
            .collect()
    }
}

/// What a policy calls itself (`@id`), or its place in the text.
fn name(policy: &Policy) -> String {
    let named = policy.annotation("id").filter(|name| !name.is_empty());
    named.map_or_else(|| policy.id().to_string(), str::to_owned)
}

/// One file, or every `.cedar` file of a folder, as one text: the library numbers policies by it.
fn policy_text(id: &str, path: &str, loader: &dyn Loader) -> Result<String, ActivationError> {
    let load = |error| ActivationError::Load {
        id: id.to_owned(),
        error,
    };
    let given = Path::new(path);
    let mut files = loader.files(given).map_err(load)?;
    files.retain(|file| file == given || file.extension().is_some_and(|end| end == "cedar"));
    files.sort();
    let mut text = String::new();
    for file in files {
        let bytes = loader.read(&file, MOST_BYTES).map_err(load)?;
        let file_text = String::from_utf8(bytes).map_err(|_| ActivationError::Policy {
            id: id.to_owned(),
            problem: format!("`{}` is not UTF-8", file.display()),
        })?;
        text.push_str(&file_text);
        text.push('\n');
    }
    if text.trim().is_empty() {
        return Err(ActivationError::Policy {
            id: id.to_owned(),
            problem: format!("`{path}` holds no policy"),
        });
    }
    Ok(text)
}

fn schema(text: &str, path: &str) -> Result<Schema, String> {
    let read = match path.ends_with(".json") {
        true => Schema::from_json_str(text).map_err(|error| described(&error)),
        false => Schema::from_cedarschema_str(text)
            .map(|(schema, _)| schema)
            .map_err(|error| described(&error)),
    };
    read.map_err(|error| format!("`{path}`: {error}"))
}

/// The error with its causes, which the library keeps apart.
fn described(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        text.push_str(": ");
        text.push_str(&one.to_string());
        cause = one.source();
    }
    text
}

/// Members that are there, as an object.
fn object(members: impl IntoIterator<Item = (&'static str, Option<Json>)>) -> Object {
    members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

const NO_POLICY: &str = "no_matching_policy";
const MOST_BYTES: usize = 1 << 20;
