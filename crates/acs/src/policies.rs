//! Policies that were made ready once, and are asked many times.

mod bundle;
mod cedar;
mod fixed;
mod rego;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use countersign_canon::{Digest, Json, Object};

use crate::prompts::Prompts;
use crate::{Binding, Input, Limits, LoadError, Loader, Manifest, Point, Policy};

/// Who answers for policies.
pub trait Dispatch: Send + Sync {
    /// The policy's answer, which is not yet a verdict.
    fn dispatch(&self, call: &PolicyCall<'_>) -> Result<Json, DispatchError>;

    /// The prompt of an annotator of this point that stands in a file or at an address.
    fn prompt(&self, _: Point, _: &str) -> Option<&str> {
        None
    }

    /// Over everything that its answers depend on, as far as it is known.
    fn digest(&self) -> Digest {
        Digest::of(b"")
    }
}

/// One question to a policy.
#[derive(Debug)]
pub struct PolicyCall<'a> {
    /// The policy's name.
    pub id: &'a str,
    /// Its definition.
    pub policy: &'a Policy,
    /// What the point says about it.
    pub binding: &'a Binding,
    /// What it is asked about.
    pub input: &'a Input<'a>,
}

/// Why a policy gave no answer. Neither lets anything pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// It could not be asked, or failed.
    #[error("{0}")]
    Failed(String),
    /// It answered, but with nothing that could be a verdict.
    #[error("{0}")]
    NoVerdict(String),
}

/// A policy engine of the host, for policies of the type `custom`.
pub trait Adapter: Send + Sync {
    /// The policy's answer. It has to end in bounded time by itself.
    fn answer(&self, call: &AdapterCall<'_>) -> Result<Json, DispatchError>;
}

/// One question to an adapter.
#[derive(Debug)]
pub struct AdapterCall<'a> {
    /// The policy's name.
    pub id: &'a str,
    /// The fields of the definition with those of the point laid over them.
    pub fields: &'a Object,
    /// What it is asked about.
    pub input: &'a Input<'a>,
}

/// The policies of a manifest, parsed and compiled.
pub struct Policies {
    rego: BTreeMap<Point, Arc<rego::Rego>>,
    cedar: BTreeMap<String, cedar::Cedar>,
    adapters: BTreeMap<String, Arc<dyn Adapter>>,
    prompts: Prompts,
}

/// Why policies cannot be made ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActivationError {
    /// A file or an address cannot be read.
    #[error("policy `{id}`: {error}")]
    Load {
        /// The policy.
        id: String,
        /// Why.
        error: LoadError,
    },
    /// The prompt of an annotator cannot be read.
    #[error("annotator `{annotator}`: {problem}")]
    Prompt {
        /// The annotator.
        annotator: String,
        /// Why.
        problem: String,
    },
    /// The policy itself is wrong.
    #[error("policy `{id}`: {problem}")]
    Policy {
        /// The policy.
        id: String,
        /// Why.
        problem: String,
    },
}

impl Policies {
    /// Reads and compiles every policy that a point asks, and reads prompts that stand elsewhere.
    pub fn activate(manifest: &Manifest, loader: &dyn Loader) -> Result<Self, ActivationError> {
        Self::activate_within(manifest, loader, &Limits::default())
    }

    /// As [`Policies::activate`], with other limits for what is fetched.
    pub fn activate_within(
        manifest: &Manifest,
        loader: &dyn Loader,
        limits: &Limits,
    ) -> Result<Self, ActivationError> {
        let mut policies = Self {
            rego: BTreeMap::new(),
            cedar: BTreeMap::new(),
            adapters: BTreeMap::new(),
            prompts: Prompts::read(manifest, loader, limits)?,
        };
        for (point, config) in manifest.points() {
            let binding = &config.policy;
            let id = binding.id.as_str();
            match manifest.policies().get(id) {
                Some(Policy::Rego(policy)) => {
                    let mut before = manifest.points().range(..point);
                    let same = before.find(|(_, other)| other.policy == *binding);
                    let ready = same.and_then(|(point, _)| policies.rego.get(point).cloned());
                    let ready = match ready {
                        Some(ready) => ready,
                        None => Arc::new(rego::Rego::compile(id, policy, binding, loader, limits)?),
                    };
                    policies.rego.insert(*point, ready);
                }
                Some(Policy::Cedar(policy)) => {
                    if let Entry::Vacant(free) = policies.cedar.entry(id.to_owned()) {
                        free.insert(cedar::Cedar::compile(id, policy, loader)?);
                    }
                }
                Some(Policy::Test(_) | Policy::Custom(_)) | None => {}
            }
        }
        Ok(policies)
    }

    /// Adds an engine of the host.
    #[must_use = "gives the changed policies back"]
    pub fn with_adapter(
        mut self,
        name: impl Into<String>,
        adapter: impl Adapter + 'static,
    ) -> Self {
        self.adapters.insert(name.into(), Arc::new(adapter));
        self
    }
}

impl Dispatch for Policies {
    fn prompt(&self, point: Point, annotator: &str) -> Option<&str> {
        self.prompts.of(point, annotator)
    }

    fn digest(&self) -> Digest {
        self.combined()
    }

    fn dispatch(&self, call: &PolicyCall<'_>) -> Result<Json, DispatchError> {
        let not_ready = || DispatchError::Failed("it was not made ready".to_owned());
        match call.policy {
            Policy::Rego(_) => {
                let policy = self.rego.get(&call.input.point()).ok_or_else(not_ready)?;
                policy.ask(call.input)
            }
            Policy::Cedar(_) => {
                let policy = self.cedar.get(call.id).ok_or_else(not_ready)?;
                policy.ask(call.input)
            }
            Policy::Test(policy) => fixed::answer(policy, call),
            Policy::Custom(policy) => {
                let adapter = self.adapters.get(&policy.adapter).ok_or_else(|| {
                    DispatchError::Failed(format!("there is no adapter `{}`", policy.adapter))
                })?;
                let fields: Object = policy
                    .fields
                    .iter()
                    .chain(&call.binding.fields)
                    .map(|(name, value)| (name.to_owned(), value.clone()))
                    .collect();
                adapter.answer(&AdapterCall {
                    id: call.id,
                    fields: &fields,
                    input: call.input,
                })
            }
        }
    }
}

impl Policies {
    /// Each with its length before it, so that nothing can move from one to the next.
    fn combined(&self) -> Digest {
        let rego = self.rego.iter();
        let rego = rego.map(|(point, policy)| (point.to_string(), policy.digest()));
        let cedar = self.cedar.iter();
        let cedar = cedar.map(|(id, policy)| (id.clone(), policy.digest()));
        let all = rego.chain(cedar).chain(self.prompts.digests());
        all.fold(Digest::of(b""), |all, (name, one)| {
            let length = (name.len() as u64).to_be_bytes();
            Digest::of_parts(&[all.as_bytes(), &length, name.as_bytes(), one.as_bytes()])
        })
    }
}

/// The rule that is asked: the point's, or the policy's own.
fn query<'a>(binding: &'a Binding, defined: Option<&'a str>) -> &'a str {
    binding.query.as_deref().or(defined).unwrap_or_default()
}
