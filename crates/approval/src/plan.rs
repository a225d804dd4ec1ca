//! What is to run and where: the plan, its hash, and what has changed since.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use countersign_canon::{Digest, Hash, Json, ParseDigestError};

use crate::call::{Class, Tool, ToolCall, call_json};
use crate::form::{ENVELOPE, Fields, FormError, wrong};
use crate::precondition::Fingerprints;
use crate::scope::Scope;
use countersign_canon::Quoted;

/// What is to run, in which order and where.
///
/// INVARIANT: at least one call; no two calls share an id; the canonical text is one that can be
/// read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    scope: Scope,
    calls: Vec<ToolCall>,
    policy: Digest,
    preconditions: Fingerprints,
    hash: PlanHash,
}

/// The SHA-256 of a plan's sorted ASCII form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanHash(Hash);

/// The place and the tools as they are now, to be held against a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Where it would run now.
    pub scope: Scope,
    /// The digest of the policies that are in force.
    pub policy: Digest,
    /// The tool that each call of the plan would reach now, in the order of the calls.
    pub tools: Vec<(Tool, Class)>,
}

impl Plan {
    /// A plan. `policy` is the digest of the policies that asked for the approval.
    pub fn new(
        scope: Scope,
        calls: Vec<ToolCall>,
        policy: Digest,
        preconditions: Fingerprints,
    ) -> Result<Self, PlanError> {
        check_calls(&calls)?;
        let mut plan = Self {
            scope,
            calls,
            policy,
            preconditions,
            hash: PlanHash(Hash::from_bytes([0; 32])),
        };
        let text = plan.payload().to_sorted_ascii();
        if text.len() > MAX_PLAN_BYTES {
            return Err(PlanError::TooLarge);
        }
        plan.hash = PlanHash(Hash::of(&text));
        Ok(plan)
    }

    /// Where it runs.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The calls in the order in which they run.
    pub fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    /// The digest of the policies that asked for the approval.
    pub const fn policy(&self) -> Digest {
        self.policy
    }

    /// What must still be true when it runs.
    pub const fn preconditions(&self) -> &Fingerprints {
        &self.preconditions
    }

    /// The hash that people see, sign and compare.
    pub const fn hash(&self) -> PlanHash {
        self.hash
    }

    /// Whether any call cannot be undone.
    pub fn is_irreversible(&self) -> bool {
        self.calls.iter().any(|call| call.class.irreversible)
    }

    /// What the hash covers.
    pub fn payload(&self) -> Json {
        let calls = self.calls.iter().map(ToolCall::to_json).collect();
        self.payload_of(&self.scope, self.policy, calls)
    }

    /// The context in which nothing has changed.
    pub fn context(&self) -> Context {
        let tools = self
            .calls
            .iter()
            .map(|call| (call.tool.clone(), call.class));
        Context {
            scope: self.scope.clone(),
            policy: self.policy,
            tools: tools.collect(),
        }
    }

    /// Works the hash out again for the context of now, from the stored arguments.
    pub fn hash_in(&self, context: &Context) -> PlanHash {
        let tools = self.calls.iter().zip(&context.tools);
        let calls =
            tools.map(|(call, (tool, class))| call_json(&call.id, &call.args, tool, *class));
        let payload = self.payload_of(&context.scope, context.policy, calls.collect());
        PlanHash(Hash::of(&payload.to_sorted_ascii()))
    }

    /// Whether the plan still means what it meant when it was shown.
    pub fn check_drift(&self, context: &Context) -> Result<(), Drift> {
        let computed = self.hash_in(context);
        // Fewer tools than calls give another payload; more would be dropped without notice.
        if computed == self.hash && context.tools.len() == self.calls.len() {
            return Ok(());
        }
        Err(Drift {
            fields: self.differences(context),
            approved: self.hash,
            computed,
        })
    }

    fn differences(&self, context: &Context) -> Vec<&'static str> {
        let mut fields = self.scope.differences(&context.scope);
        let now = &context.tools;
        let changed = |differs: fn(&ToolCall, &(Tool, Class)) -> bool| {
            let mut pairs = self.calls.iter().zip(now);
            pairs.any(|(call, tool)| differs(call, tool))
        };
        let parts = [
            ("policy_digest", self.policy != context.policy),
            ("tool_calls", self.calls.len() != now.len()),
            (
                "server",
                changed(|call, (tool, _)| call.tool.server != tool.server),
            ),
            (
                "tool_name",
                changed(|call, (tool, _)| call.tool.name != tool.name),
            ),
            (
                "definition_digest",
                changed(|call, (tool, _)| call.tool.definition != tool.definition),
            ),
            (
                "side_effect_class",
                changed(|call, (_, class)| call.class != *class),
            ),
        ];
        let differing = parts.into_iter().filter(|(_, differs)| *differs);
        fields.extend(differing.map(|(name, _)| name));
        fields
    }

    fn payload_of(&self, scope: &Scope, policy: Digest, calls: Vec<Json>) -> Json {
        Json::object([
            ("format", Json::from(FORMAT)),
            ("policy_digest", Json::from(policy.to_string())),
            ("preconditions", self.preconditions.to_json()),
            ("scope", scope.to_json()),
            ("tool_calls", Json::Array(calls)),
        ])
    }

    pub(crate) fn read(json: Json) -> Result<Self, FormError> {
        let mut fields = Fields::of("plan", json)?;
        if fields.text("format")? != FORMAT {
            return Err(wrong("format", "a version of the plan that is known"));
        }
        let policy = fields.parsed("policy_digest")?;
        let preconditions = Fingerprints::read(fields.list("preconditions")?)?;
        let scope = Scope::read(fields.take("scope")?)?;
        let calls = fields.list("tool_calls")?;
        let calls: Result<_, _> = calls.into_iter().map(ToolCall::read).collect();
        fields.end()?;
        Self::new(scope, calls?, policy, preconditions)
            .map_err(|error| FormError::refused("plan", error))
    }
}

fn check_calls(calls: &[ToolCall]) -> Result<(), PlanError> {
    if calls.is_empty() {
        return Err(PlanError::NoCalls);
    }
    if calls.len() > MAX_CALLS {
        return Err(PlanError::TooManyCalls(calls.len()));
    }
    let mut ids = BTreeSet::new();
    for call in calls {
        if !ids.insert(&call.id) {
            return Err(PlanError::DuplicateCall(call.id.as_str().to_owned()));
        }
        if !call.tool.is_named() {
            return Err(PlanError::UnnamedTool(call.id.as_str().to_owned()));
        }
    }
    Ok(())
}

/// Why a plan was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// It does nothing.
    #[error("a plan needs at least one call")]
    NoCalls,
    /// Nobody can read so much.
    #[error("a plan has at most {MAX_CALLS} calls, this one has {0}")]
    TooManyCalls(usize),
    /// Two calls could not be told apart.
    #[error("two calls have the id {}", Quoted(.0))]
    DuplicateCall(String),
    /// A name is empty or too long.
    #[error("the tool or server of call {} has no name of 1 to 1024 characters", Quoted(.0))]
    UnnamedTool(String),
    /// Its text would be too long to read back.
    #[error("the plan is larger than {MAX_PLAN_BYTES} bytes")]
    TooLarge,
}

impl PlanHash {
    /// What people compare: the first eight digits.
    pub fn short(&self) -> String {
        format!("{self:.8}")
    }

    /// What people type for something that cannot be undone: the first sixteen digits.
    pub fn typed(&self) -> String {
        format!("{self:.16}")
    }

    /// The value.
    pub const fn to_hash(self) -> Hash {
        self.0
    }
}

impl fmt::Display for PlanHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for PlanHash {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, ParseDigestError> {
        text.parse().map(Self)
    }
}

/// The plan no longer means what it meant when it was shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("changed since the plan was shown: {}", .fields.join(", "))]
pub struct Drift {
    /// What changed, by the names of the plan's members.
    pub fields: Vec<&'static str>,
    /// The hash of the plan as it was shown.
    pub approved: PlanHash,
    /// The hash of the plan as it would run now.
    pub computed: PlanHash,
}

const FORMAT: &str = "countersign.plan.v1";

const MAX_CALLS: usize = 256;

/// Leaves room for the rest of an envelope.
const MAX_PLAN_BYTES: usize = ENVELOPE.max_bytes - (1 << 20);
