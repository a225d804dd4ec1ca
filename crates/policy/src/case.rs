//! One action in the state before it: what the policies decide about.

use countersign_canon::{Digest, Hash, Json};
use countersign_event::payload::{Counters, PolicyDecision};
use countersign_session::{Call, LoopRules, Next, Snapshot, Terms, View};

use crate::capability::{Constraints, Judgement};
use crate::facts::{Action, Facts, State, Surroundings};
use crate::manifest::{Loops, Manifest};
use crate::matcher::{Link, NormalPath};
use crate::{
    Called, Classification, Decision, Evidence, Finding, Hearing, Identities, Mode, Moment,
    Offered, Opinion, Point, Policies, TargetError, Transform, Verdict,
};

/// Everything that a decision depends on beside the policies and the links of the file system.
pub struct Case<'a> {
    /// The agent, if anybody has said who it is.
    pub agent: Option<&'a str>,
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
    /// What was judged and what may be done, if somebody told.
    pub identities: Option<Identities>,
    /// What the session had done as policies saw it, if people are asked about those identities.
    pub session: Option<Json>,
}

/// What people were asked about.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Where.
    pub point: Point,
    /// The agent, if anybody has said who it is.
    pub agent: Option<&'a str>,
    /// The tool, of a call.
    pub tool_name: &'a str,
    /// The arguments of a call; otherwise what there was to see.
    pub subject: &'a Json,
}

impl Policies {
    /// The state of a session as they see it.
    pub fn view(&self, snapshot: &Snapshot) -> View {
        view(snapshot, None, self.capability().manifest())
    }

    /// What counts at a point that an agent has come to, and the event that tells of it: `engine` says
    /// who took the decision.
    pub fn attend(
        &self,
        (point, subject): (Point, &Json),
        agent: Option<&str>,
        snapshot: &Snapshot,
        hearing: &Hearing,
        engine: &str,
    ) -> (Finding, PolicyDecision) {
        let session = self.view(snapshot).to_json();
        let moment = Moment {
            point,
            agent,
            subject,
            session: &session,
        };
        let (found, would) = self.finding(&moment, hearing);
        let verdict = &found.verdict;
        let labels = verdict.result_labels();
        // What did not come to pass has no result.
        let proceeds = verdict.decision().permits() && !labels.is_empty();
        let held = verdict.decision() == Decision::Escalate;
        let event = PolicyDecision {
            reason_codes: would.map(|would| vec![format!("observed={would}")]),
            policy_ref: Some(format!("{} {engine}", found.explanation.rule)),
            policy_digest: Some(self.digest().to_string()),
            snapshot_hash: Some(snapshot.hash().to_string()),
            intervention_point: Some(point.as_str().to_owned()),
            result_labels: proceeds.then(|| labels.to_vec()),
            agent_id: agent.map(str::to_owned),
            subject: Some(text(subject)),
            session: (held && found.identities.is_some()).then(|| text(&session)),
            ..said(verdict, found.identities)
        };
        (found, event)
    }

    /// What would be done, and the labels of its result, if this were judged in a state that was
    /// recorded; `None` if nobody tells.
    pub fn identify(
        &self,
        asked: Asked<'_>,
        session: &Json,
        hearing: &Hearing,
    ) -> Option<(Digest, Vec<String>)> {
        let Asked { agent, .. } = asked;
        let (identities, verdict) = match asked.point {
            Point::PreToolCall => {
                let called = Called {
                    agent,
                    tool: asked.tool_name,
                    args: asked.subject,
                    session,
                };
                let said = self.beside().iter();
                let mut said = said.map(|one| one.opinion(&called, hearing));
                said.find_map(|one| Some((one.identities?, one.verdict)))?
            }
            point => {
                let moment = Moment {
                    point,
                    agent,
                    subject: asked.subject,
                    session,
                };
                let found = self.finding(&moment, hearing).0;
                (found.identities?, found.verdict)
            }
        };
        Some((identities.enforced, verdict.result_labels().to_vec()))
    }

    /// Decides about an action. Fails for arguments that have no canonical form.
    ///
    /// The same case, the same links and the same answers of others always give the same answer.
    pub fn decide(
        &self,
        case: &Case<'_>,
        examine: &dyn Fn(&NormalPath) -> Link,
        hearing: &Hearing,
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
        let surroundings = Surroundings {
            examine,
            base: None,
        };
        let facts = |args: &Json| {
            let action = Action {
                tool_name: case.tool_name,
                args,
                sanitizer_key: case.sanitizer_key,
            };
            let state = State::of(&view, sanitized);
            let facts = Facts::of(&action, state, &surroundings, manifest);
            match case.server.is_some() || is_pinned(case.tool_name, manifest) {
                true => facts.classified(&classification(case, manifest)),
                false => facts,
            }
        };
        let session = || view.to_json();
        let (judgement, opinions) =
            self.judge(&facts(case.args), case.args, case.agent, &session, hearing);
        let mut ruling = Ruling::of(judgement, opinions, case.args);
        if let Some(rewritten) = ruling.rewritten.as_ref().filter(|_| !self.is_observing()) {
            // What runs has to keep to the rules too, not only what was asked for.
            let judged = self.capability().judge(&facts(rewritten));
            ruling.tightened(judged);
        }
        if ruling.judgement.verdict.decision() == Decision::Escalate && ruling.identities.is_some()
        {
            ruling.session = Some(session());
        }
        Ok(ruling)
    }
}

impl Ruling {
    fn of(mut judgement: Judgement, opinions: Vec<Opinion>, args: &Json) -> Self {
        let enforced = || opinions.iter().filter(|one| one.mode == Mode::Enforce);
        let mut change = judgement.verdict.transform().cloned();
        if judgement.verdict.decision() == Decision::Escalate {
            // People are asked about what would run.
            let changes = || enforced().filter_map(|one| one.verdict.transform());
            change = changes().next().cloned();
            if changes().any(|one| Some(one) != change.as_ref()) {
                let message = "two policies change the action: make them one policy";
                judgement.verdict =
                    Verdict::new(Decision::Deny, TRANSFORM_INVALID).with_message(message);
                judgement.constraints = None;
                change = None;
            }
        }
        let rewritten = match rewrite(args, change.as_ref()) {
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
        let identities = enforced().find_map(|one| one.identities);
        Self {
            judgement,
            opinions,
            rewritten,
            identities,
            session: None,
        }
    }

    /// A stricter judgement of the rewritten call takes the place of the one about the call as it was.
    fn tightened(&mut self, judged: Judgement) {
        let (now, then) = (&judged.verdict, &self.judgement.verdict);
        if now.decision() <= then.decision() {
            return;
        }
        if now.decision() == Decision::Deny {
            self.rewritten = None;
        }
        self.judgement = judged;
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
            reason_codes: (!shadow.is_empty()).then_some(shadow),
            policy_ref: Some(format!("{} {engine}", self.judgement.explanation.rule)),
            policy_digest: Some(policies.to_string()),
            snapshot_hash: Some(snapshot.to_string()),
            side_effect: Some(self.judgement.side_effect.as_str().to_owned()),
            constraints: self.judgement.constraints.map(counters),
            intervention_point: self
                .identities
                .map(|_| Point::PreToolCall.as_str().to_owned()),
            session: self.session.as_ref().map(text),
            ..said(verdict, self.identities)
        }
    }
}

/// What a decision says about its verdict.
fn said(verdict: &Verdict, identities: Option<Identities>) -> PolicyDecision {
    PolicyDecision {
        outcome: Some(verdict.decision().outcome().to_owned()),
        verdict: Some(verdict.decision().as_str().to_owned()),
        reason: verdict.reason().map(str::to_owned),
        input_identity: identities.map(|both| both.input.to_string()),
        enforced_identity: identities.map(|both| both.enforced.to_string()),
        evidence: verdict.evidence().map(Evidence::to_json),
        ..PolicyDecision::default()
    }
}

/// As text: an event cannot hold every number.
fn text(json: &Json) -> Json {
    Json::from(String::from_utf8_lossy(&json.to_sorted()).as_ref())
}

/// The arguments that a transform asks for.
fn rewrite(args: &Json, change: Option<&Transform>) -> Result<Option<Json>, TargetError> {
    let Some(transform) = change else {
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

const TRANSFORM_INVALID: &str = "runtime_error:transform_invalid";
const TRANSFORM_MISSING: &str = "runtime_error:transform_target_missing";
