//! One evaluation, in the order that the specification gives.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use countersign_canon::{Digest, Json, Object};
use countersign_policy::path::Lost;
use countersign_policy::{Hearing, TargetError, Unheard, Verdict, VerdictError};

use crate::annotate::Annotators;
use crate::limits::depth;
use crate::policies::{Dispatch, DispatchError, PolicyCall};
use crate::reserved::Failure;
use crate::{
    Annotate, Evaluation, Identities, Input, Limits, Manifest, Mode, NoAnnotators, Point,
    PointConfig, Policy, Reserved,
};

/// A manifest in force. It has no state: evaluations do not know of one another.
#[derive(Clone)]
pub struct Runtime {
    manifest: Manifest,
    policies: Arc<dyn Dispatch>,
    annotators: Arc<dyn Annotate>,
    limits: Limits,
}

impl Runtime {
    /// A runtime without annotators.
    pub fn new(manifest: Manifest, policies: impl Dispatch + 'static) -> Self {
        Self {
            manifest,
            policies: Arc::new(policies),
            annotators: Arc::new(NoAnnotators),
            limits: Limits::default(),
        }
    }

    /// The same with annotators.
    #[must_use = "gives the changed runtime back"]
    pub fn with_annotators(mut self, annotators: impl Annotate + 'static) -> Self {
        self.annotators = Arc::new(annotators);
        self
    }

    /// The same with other limits.
    #[must_use = "gives the changed runtime back"]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Over everything that answers for policies.
    pub fn policy_digest(&self) -> Digest {
        self.policies.digest()
    }

    /// Judges what happens at a point. Never fails: what goes wrong is a deny with a reserved reason.
    pub fn evaluate<'a>(&'a self, point: Point, snapshot: &'a Json, mode: Mode) -> Evaluation<'a> {
        self.evaluate_hearing(point, snapshot, mode, &Hearing::default())
    }

    /// The same; what annotators and policies elsewhere say is heard there, or read back from there.
    pub fn evaluate_hearing<'a>(
        &'a self,
        point: Point,
        snapshot: &'a Json,
        mode: Mode,
        hearing: &Hearing,
    ) -> Evaluation<'a> {
        let mut seen = None;
        match self.judge(point, snapshot, mode, hearing, &mut seen) {
            Ok(evaluation) => evaluation,
            Err(failure) => Evaluation::refused(point, mode, failure, seen),
        }
    }

    fn judge<'a>(
        &'a self,
        point: Point,
        snapshot: &'a Json,
        mode: Mode,
        hearing: &Hearing,
        seen: &mut Option<Input<'a>>,
    ) -> Result<Evaluation<'a>, Failure> {
        let config = self.manifest.points().get(&point).ok_or_else(|| {
            Failure::new(
                Reserved::InterventionPointUnknown,
                format!("the manifest does not configure `{point}`"),
            )
        })?;
        let measured = self.measure(snapshot)?;
        let target = config
            .target
            .resolve(snapshot)
            .map_err(|found| lost(found, &format!("policy_target: `{}`", config.target)))?;
        let input = Input {
            point,
            config,
            snapshot,
            target,
            tool: self.tool(config, snapshot)?,
            annotations: Object::new(),
        };
        let target_depth = depth(target);
        self.check_depth(&input, measured.depth, target_depth)?;
        let input = seen.insert(input);
        let annotators = Annotators {
            manifest: &self.manifest,
            ask: &*self.annotators,
            limits: &self.limits,
            hearing,
            policies: &*self.policies,
        };
        input.annotations = annotators.annotations(input)?;
        self.check_depth(input, measured.depth, target_depth)?;
        let input = &*input;

        let verdict = self.ask(config, input, hearing)?;
        let transformed = match verdict.transform() {
            None => None,
            Some(transform) => {
                let mut changed = target.clone();
                transform
                    .path
                    .replace(&mut changed, transform.value.clone())
                    .map_err(|error| unchanged(error, &transform.path.to_string()))?;
                self.check_changed(&measured, config, target, &changed)?;
                (mode == Mode::Enforce).then_some(changed)
            }
        };
        let identity = input.identity(&measured.text, target);
        let enforced = match &transformed {
            Some(changed) => input.identity(&measured.text, changed),
            None => identity,
        };
        Ok(Evaluation {
            point,
            mode,
            verdict,
            detail: None,
            policy: Some(&config.policy.id),
            transformed,
            input: seen.take(),
            identities: Some(Identities {
                input: identity,
                enforced,
            }),
        })
    }

    fn measure(&self, snapshot: &Json) -> Result<Measured, Failure> {
        let depth = depth(snapshot);
        if depth > self.limits.max_policy_input_depth {
            return Err(too_deep("the snapshot", &self.limits));
        }
        let text = snapshot.to_sorted();
        self.check_snapshot_bytes(text.len())?;
        Ok(Measured { depth, text })
    }

    fn check_snapshot_bytes(&self, size: usize) -> Result<(), Failure> {
        let limit = self.limits.max_snapshot_bytes;
        match size > limit {
            true => Err(Failure::new(
                Reserved::ResourceLimitExceeded,
                format!("the snapshot has {size} bytes, and {limit} are allowed"),
            )),
            false => Ok(()),
        }
    }

    /// The changed target has to fit back into the snapshot.
    fn check_changed(
        &self,
        measured: &Measured,
        config: &PointConfig,
        target: &Json,
        changed: &Json,
    ) -> Result<(), Failure> {
        // Canonical texts are made of canonical texts: one is taken out, one put in.
        let size = measured.text.len() - target.to_sorted().len() + changed.to_sorted().len();
        self.check_snapshot_bytes(size)?;
        let deep = config.target.segments().len() + depth(changed);
        match deep > self.limits.max_policy_input_depth {
            true => Err(too_deep("the changed snapshot", &self.limits)),
            false => Ok(()),
        }
    }

    fn check_depth(
        &self,
        input: &Input<'_>,
        snapshot_depth: usize,
        target_depth: usize,
    ) -> Result<(), Failure> {
        let depth = input.depth(snapshot_depth, target_depth);
        match depth > self.limits.max_policy_input_depth {
            true => Err(too_deep("the policy input", &self.limits)),
            false => Ok(()),
        }
    }

    /// The catalog entry of the tool that the snapshot names.
    fn tool<'a>(&'a self, config: &PointConfig, snapshot: &Json) -> Result<&'a Json, Failure> {
        let Some(path) = &config.tool_name_from else {
            return Ok(&Json::Null);
        };
        let name = path
            .resolve(snapshot)
            .map_err(|found| lost(found, &format!("tool_name_from: `{path}`")))?;
        let name = name.as_str().ok_or_else(|| {
            Failure::new(
                Reserved::PathTypeMismatch,
                format!("tool_name_from: `{path}` is not a string"),
            )
        })?;
        self.manifest.tools().get(name).ok_or_else(|| {
            Failure::new(
                Reserved::ToolUnknown,
                format!("the catalog has no tool `{}`", name.escape_debug()),
            )
        })
    }

    fn ask(
        &self,
        config: &PointConfig,
        input: &Input<'_>,
        hearing: &Hearing,
    ) -> Result<Verdict, Failure> {
        let id = config.policy.id.as_str();
        let policy =
            self.manifest.policies().get(id).ok_or_else(|| {
                Failure::new(Reserved::ManifestInvalid, format!("no policy `{id}`"))
            })?;
        let call = PolicyCall {
            id,
            policy,
            binding: &config.policy,
            input,
        };
        let failed = |problem: &str| {
            Failure::new(
                Reserved::PolicyInvocationFailed,
                format!("policy `{id}`: {problem}"),
            )
        };
        // FAIL-CLOSED: a host's code may panic, and the agent must not go on because of it.
        let dispatch = || match policy {
            Policy::Custom(_) => hearing
                .hear(&format!("policy {id}"), || {
                    let said = self.policies.dispatch(&call);
                    said.map_err(|error| Unheard::Failed(error.to_string()))
                })
                .map_err(|unheard| match unheard {
                    Unheard::Failed(problem) | Unheard::TimedOut(problem) => {
                        DispatchError::Failed(problem)
                    }
                }),
            _ => self.policies.dispatch(&call),
        };
        let output = catch_unwind(AssertUnwindSafe(dispatch))
            .map_err(|_| failed("it panicked"))?
            .map_err(|error| match error {
                DispatchError::Failed(problem) => failed(&problem),
                DispatchError::NoVerdict(problem) => Failure::new(
                    Reserved::PolicyOutputInvalid,
                    format!("policy `{id}`: {problem}"),
                ),
            })?;
        if depth(&output) > self.limits.max_policy_input_depth {
            return Err(too_deep("the policy's answer", &self.limits));
        }
        let (size, limit) = (
            output.to_sorted().len(),
            self.limits.max_policy_output_bytes,
        );
        if size > limit {
            return Err(Failure::new(
                Reserved::ResourceLimitExceeded,
                format!("the policy's answer has {size} bytes, and {limit} are allowed"),
            ));
        }
        Verdict::from_policy(&output).map_err(|error| {
            let reserved = match &error {
                VerdictError::Invalid(_) => Reserved::PolicyOutputInvalid,
                VerdictError::TargetForbidden(_) => Reserved::TransformTargetForbidden,
            };
            Failure::new(reserved, format!("policy `{id}`: {error}"))
        })
    }
}

/// What was found out about a snapshot once.
struct Measured {
    depth: usize,
    text: Vec<u8>,
}

pub(crate) fn lost(found: Lost, what: &str) -> Failure {
    let reserved = match found {
        Lost::Missing => Reserved::PathMissing,
        Lost::Type => Reserved::PathTypeMismatch,
    };
    Failure::new(reserved, format!("{what}: {found}"))
}

fn unchanged(error: TargetError, path: &str) -> Failure {
    let reserved = match error {
        TargetError::OtherRoot => Reserved::TransformTargetForbidden,
        TargetError::Malformed | TargetError::Missing => Reserved::TransformInvalid,
    };
    Failure::new(reserved, format!("transform `{path}`: {error}"))
}

fn too_deep(what: &str, limits: &Limits) -> Failure {
    Failure::new(
        Reserved::ResourceLimitExceeded,
        format!(
            "{what} is nested deeper than {}",
            limits.max_policy_input_depth
        ),
    )
}
