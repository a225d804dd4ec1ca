//! One action in the state before it: what the policies decide about.

use countersign_canon::{Digest, Hash, Json};
use countersign_event::payload::{Counters, PolicyDecision};
use countersign_session::{Call, LoopRules, Next, Snapshot, Terms, View};

use crate::capability::{Constraints, Judgement};
use crate::facts::{Action, Facts, State, Surroundings};
use crate::manifest::{Loops, Manifest};
use crate::matcher::{Link, NormalPath};
use crate::{Classification, Decision, Mode, Offered, Opinion, Policies, TargetError, Verdict};

/// Everything that a decision depends on beside the policies and the links of the file system.
pub struct Case<'a> {
    /// The tool.
    pub tool_name: &'a str,
    /// The arguments.
    pub args: &'a Json,
    /// The server that offers the tool.
    pub server: Option<&'a str>,
    /// The digest of the tool's definition, if anybody knows one.
    pub definition: Option<Digest>,
    /// The key of the sanitised text that the call carries.
    pub sanitizer_key: Option<&'a str>,
    /// The place that the proposal has in its session.
    pub seq: u64,
    /// When it is proposed.
    pub now_unix_ms: u64,
    /// The state before it.
    pub snapshot: &'a Snapshot,
}

/// What the policies decided about a case.
#[derive(Debug, Clone)]
#[must_use]
pub struct Ruling {
    /// The strictest verdict, with its grounds.
    pub judgement: Judgement,
    /// What each policy beside the capability rules said.
    pub opinions: Vec<Opinion>,
    /// The arguments to run with in the place of the proposed ones.
    pub rewritten: Option<Json>,
}

impl Policies {
    /// The state of a session as they see it.
    pub fn view(&self, snapshot: &Snapshot) -> View {
        view(snapshot, None, self.capability().manifest())
    }

    /// Decides about an action. Fails for arguments that have no canonical form.
    ///
    /// The same case and the same links always give the same answer.
    pub fn decide(
        &self,
        case: &Case<'_>,
        examine: &dyn Fn(&NormalPath) -> Link,
    ) -> Result<Ruling, countersign_canon::Error> {
        let call = Call::new(case.seq, case.tool_name, Some(case.args))?;
        let manifest = self.capability().manifest();
        let next = Next {
            call: &call,
            ts_unix_ms: case.now_unix_ms,
        };
        let view = view(case.snapshot, Some(&next), manifest);
        let sanitized = case
            .sanitizer_key
            .is_some_and(|key| case.snapshot.is_sanitized(key));
        let action = Action {
            tool_name: case.tool_name,
            args: case.args,
            sanitizer_key: case.sanitizer_key,
        };
        let surroundings = Surroundings {
            examine,
            base: None,
        };
        let state = State::of(&view, sanitized);
        let mut facts = Facts::of(&action, state, &surroundings, manifest);
        if case.server.is_some() || is_pinned(case.tool_name, manifest) {
            facts = facts.classified(&classification(case, manifest));
        }
        let (judgement, opinions) = self.judge(&facts, case.args, &|| view.to_json());
        Ok(Ruling::of(judgement, opinions, case.args))
    }
}

impl Ruling {
    fn of(mut judgement: Judgement, opinions: Vec<Opinion>, args: &Json) -> Self {
        let rewritten = match rewrite(args, &judgement.verdict) {
            Ok(rewritten) => rewritten,
            // FAIL-CLOSED: a rewriting that does not fit is no reason to run the call as it is.
            Err(error) => {
                let message = format!("the rewriting does not fit the action: {error}");
                judgement.verdict =
                    Verdict::new(Decision::Deny, TRANSFORM_MISSING).with_message(message);
                judgement.constraints = None;
                None
            }
        };
        Self {
            judgement,
            opinions,
            rewritten,
        }
    }

    /// The event that records the decision. `engine` says who took it.
    pub fn to_event(
        &self,
        call_id: &str,
        engine: &str,
        policies: Digest,
        snapshot: Hash,
    ) -> PolicyDecision {
        let verdict = &self.judgement.verdict;
        let shadow: Vec<String> = self
            .opinions
            .iter()
            .filter(|opinion| opinion.mode == Mode::Shadow)
            .map(|opinion| format!("{}={}", opinion.policy, opinion.verdict.decision()))
            .collect();
        PolicyDecision {
            call_id: Some(call_id.to_owned()),
            outcome: Some(verdict.decision().outcome().to_owned()),
            verdict: Some(verdict.decision().as_str().to_owned()),
            reason: verdict.reason().map(str::to_owned),
            reason_codes: (!shadow.is_empty()).then_some(shadow),
            policy_ref: Some(format!("{} {engine}", self.judgement.explanation.rule)),
            policy_digest: Some(policies.to_string()),
            snapshot_hash: Some(snapshot.to_string()),
            side_effect: Some(self.judgement.side_effect.as_str().to_owned()),
            constraints: self.judgement.constraints.map(counters),
            ..PolicyDecision::default()
        }
    }
}

/// The arguments that a transform asks for.
fn rewrite(args: &Json, verdict: &Verdict) -> Result<Option<Json>, TargetError> {
    let Some(transform) = verdict.transform() else {
        return Ok(None);
    };
    let mut args = args.clone();
    transform.path.replace(&mut args, transform.value.clone())?;
    Ok(Some(args))
}

fn counters(constraints: Constraints) -> Counters {
    Counters::from([
        ("max_output_bytes".to_owned(), constraints.max_output_bytes),
        ("timeout_ms".to_owned(), constraints.timeout_ms),
    ])
}

/// Whether the manifest says which server or which definition it speaks of.
fn is_pinned(tool: &str, manifest: Option<&Manifest>) -> bool {
    manifest
        .and_then(|manifest| manifest.tool(tool))
        .is_some_and(|tool| tool.server.is_some() || tool.definition.is_some())
}

/// FAIL-CLOSED: a server or a definition that nobody knows is none that was pinned.
fn classification(case: &Case<'_>, manifest: Option<&Manifest>) -> Classification {
    let offered = Offered {
        server: case.server.unwrap_or_default(),
        tool: case.tool_name,
        definition: case.definition.unwrap_or_else(|| Digest::of(b"")),
    };
    Classification::of(&offered, manifest)
}

fn view(snapshot: &Snapshot, next: Option<&Next<'_>>, manifest: Option<&Manifest>) -> View {
    let loops = loop_rules(manifest);
    let trusted = |server: Option<&str>, tool: &str| {
        manifest.is_some_and(|manifest| manifest.trusts_output_of(server, tool))
    };
    let terms = Terms {
        loops: &loops,
        trusted_tools: &trusted,
    };
    snapshot.view(next, &terms)
}

fn loop_rules(manifest: Option<&Manifest>) -> LoopRules {
    let default = Loops::default();
    let loops = manifest.map_or(&default, Manifest::loops);
    LoopRules {
        identical_calls: loops.identical_calls,
        no_progress_steps: loops.no_progress_steps,
        sequence_min: loops.sequence_min as usize,
        sequence_max: loops.sequence_max as usize,
        exempt_tools: loops.polling_tools.clone(),
    }
}

const TRANSFORM_MISSING: &str = "runtime_error:transform_target_missing";
