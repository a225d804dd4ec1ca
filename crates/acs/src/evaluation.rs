//! What came out.

use countersign_canon::{Digest, Json, Object};
use countersign_policy::{Decision, Evidence, Identities, Verdict};

use crate::reserved::Failure;
use crate::{Input, Mode, Point};

/// The outcome of one evaluation.
#[derive(Debug, Clone)]
#[must_use]
pub struct Evaluation<'a> {
    pub(crate) point: Point,
    pub(crate) mode: Mode,
    pub(crate) verdict: Verdict,
    pub(crate) detail: Option<String>,
    pub(crate) policy: Option<&'a str>,
    pub(crate) transformed: Option<Json>,
    pub(crate) input: Option<Input<'a>>,
    pub(crate) identities: Option<Identities>,
}

impl<'a> Evaluation<'a> {
    /// FAIL-CLOSED: the one place where something that went wrong becomes a verdict.
    pub(crate) fn refused(
        point: Point,
        mode: Mode,
        failure: Failure,
        input: Option<Input<'a>>,
    ) -> Self {
        let verdict = Verdict::new(Decision::Deny, failure.reserved.as_str());
        Self {
            point,
            mode,
            verdict: verdict.with_message(BLOCKED),
            detail: Some(failure.detail),
            policy: None,
            transformed: None,
            input,
            identities: None,
        }
    }

    /// Where.
    pub fn point(&self) -> Point {
        self.point
    }

    /// How seriously.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The verdict.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// What went wrong, for an operator; it may quote the snapshot.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The policy that spoke.
    pub fn policy(&self) -> Option<&str> {
        self.policy
    }

    /// What is judged, changed; `null` is a value. The host uses it in the place of the original.
    pub fn transformed(&self) -> Option<&Json> {
        self.transformed.as_ref()
    }

    /// What the policy was asked about, as far as it got.
    pub fn input(&self) -> Option<&Input<'a>> {
        self.input.as_ref()
    }

    /// The identities, unless something went wrong.
    pub fn identities(&self) -> Option<Identities> {
        self.identities
    }

    /// The result on the wire.
    pub fn to_json(&self) -> Json {
        let identity = |pick: fn(Identities) -> Digest| {
            Json::from(self.identities.map(|both| pick(both).to_string()))
        };
        let mut members: Vec<(&str, Json)> = vec![
            ("verdict", verdict(&self.verdict)),
            (
                "transformed_policy_target_applied",
                self.transformed.is_some().into(),
            ),
            (
                "policy_input",
                self.input.as_ref().map(Input::to_json).into(),
            ),
            ("action_identity", identity(|both| both.enforced)),
            ("input_identity", identity(|both| both.input)),
            ("enforced_identity", identity(|both| both.enforced)),
        ];
        if let Some(transformed) = &self.transformed {
            members.push(("transformed_policy_target", transformed.clone()));
        }
        Json::object(members)
    }
}

/// A verdict on the wire: what is absent is left out.
pub(crate) fn verdict(verdict: &Verdict) -> Json {
    let mut members = Object::new();
    let mut set = |name: &str, value: Option<Json>| {
        if let Some(value) = value {
            members.insert(name.to_owned(), value);
        }
    };
    set("decision", Some(verdict.decision().as_str().into()));
    set("reason", verdict.reason().map(Json::from));
    set("message", verdict.message().map(Json::from));
    set(
        "transform",
        verdict.transform().map(|transform| {
            Json::object([
                ("path", Json::from(transform.path.to_string())),
                ("value", transform.value.clone()),
            ])
        }),
    );
    set("evidence", verdict.evidence().map(Evidence::to_json));
    let labels = verdict.result_labels();
    let labels = (!labels.is_empty())
        .then(|| Json::Array(labels.iter().map(|label| label.as_str().into()).collect()));
    set("result_labels", labels);
    Json::Object(members)
}

/// Text for whoever was stopped. What went wrong is the operator's business.
const BLOCKED: &str = "Request blocked by Agent Control Specification.";
