//! Somebody else who has a say: about tool calls, and at other points of an agent's life.

use countersign_canon::{Digest, Json};

use super::Opinion;
use crate::capability::Explanation;
use crate::{Decision, Hearing, Point, Verdict};

/// Judges beside the capability rules. The strictest of all verdicts counts.
///
/// FAIL-CLOSED: it has no way to give no opinion; one that cannot judge denies.
pub trait Beside: Send + Sync {
    /// What it is called, in messages and in the digest of the policies.
    fn name(&self) -> &str;

    /// Over everything that its verdicts depend on.
    fn digest(&self) -> Digest;

    /// What it says about a call. A change has to be a change of the arguments.
    fn opinion(&self, call: &Called<'_>, hearing: &Hearing) -> Opinion;

    /// Whether it is meant to be asked at a point.
    fn attends(&self, point: Point) -> bool;

    /// What it says at a point. One that is not meant to be asked there denies.
    fn finding(&self, moment: &Moment<'_>, hearing: &Hearing) -> Finding;

    /// Whether its verdicts may wait for somebody outside of this process.
    fn asks_others(&self) -> bool {
        false
    }

    /// What it wants when people are asked.
    fn appeal(&self) -> Appeal {
        Appeal::default()
    }

    /// Everything that its verdicts depend on, as a document that gives it back.
    fn to_archive(&self) -> Json;
}

/// A tool call that is about to be decided.
#[derive(Debug, Clone, Copy)]
pub struct Called<'a> {
    /// The agent, if anybody has said who it is.
    pub agent: Option<&'a str>,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub args: &'a Json,
    /// What the session has done so far, as policies see it.
    pub session: &'a Json,
}

/// A point that an agent has come to.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The point.
    pub point: Point,
    /// The agent, if anybody has said who it is.
    pub agent: Option<&'a str>,
    /// What there is to see, beside what every point has: an object.
    pub subject: &'a Json,
    /// What the session has done so far, as policies see it.
    pub session: &'a Json,
}

/// What was said at a point.
#[derive(Debug, Clone)]
#[must_use]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// What there was to see, with the change in it.
    pub changed: Option<Json>,
    /// What was judged, and what may be done; `None` if something went wrong.
    pub identities: Option<Identities>,
    /// Which rule spoke, and why.
    pub explanation: Explanation,
}

/// What was judged, and what may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identities {
    /// Over what the policy saw.
    pub input: Digest,
    /// Over the same with the changed target in it. Equal unless a change was applied.
    pub enforced: Digest,
}

/// What somebody wants when people are asked on their account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Appeal {
    /// How long people may decide.
    pub decide_within_ms: Option<u64>,
    /// Whether a request that nobody has answered by then stays open.
    pub stays_open: bool,
    /// How many requests, in how many milliseconds, are too many for people.
    pub fatigue: Option<(u64, u64)>,
}

impl Finding {
    /// FAIL-CLOSED: nobody is there who could say something.
    pub(crate) fn nobody(point: Point) -> Self {
        Self {
            verdict: Verdict::new(Decision::Deny, "runtime_error:intervention_point_unknown"),
            changed: None,
            identities: None,
            explanation: Explanation {
                rule: format!("agent_control:{point}"),
                file: String::new(),
                line: 0,
                facts: Json::object::<String>([]),
                change: "put an Agent Control manifest in force that has this point".to_owned(),
            },
        }
    }
}
