//! Points of an agent's life that are no tool calls: its start and end, what comes in and goes out, what
//! its model is asked and answers.

use countersign_approval::{Arguments, State, Tool};
use countersign_canon::{Json, Limits, Object};
use countersign_event::payload::{
    ModelCallFinished, ModelCallStarted, PolicyDecision, ToolCallProposed,
};
use countersign_event::{EventType, Payload, Scope};
use countersign_policy::capability::Judgement;
use countersign_policy::manifest::SideEffect;
use countersign_policy::{Decision, Finding, Hearing, Identities, Point, Policies, Verdict};
use countersign_store::{Change, Recorded};

use crate::approval::{LABELS, POINT_TOOL, random};
use crate::decide::ENGINE;
use crate::engine::MAX_ATTEMPTS;
use crate::hot::{Hot, lock};
use crate::refusal::Fault;
use crate::{ApprovalId, Engine, Hold, Origin, Proposal, Redeemed, Refusal, Unaskable, Wanted};

/// A point that an agent has come to, as a door understood it.
pub struct Intervention<'a> {
    /// The session.
    pub scope: &'a Scope,
    /// The point; none of a tool call.
    pub point: Point,
    /// Where it comes from.
    pub origin: &'a Origin,
    /// What there is to see: an object, with the members that the point has.
    pub subject: Json,
    /// The id of the model call, at the two points of one: then the log tells of the call too.
    pub call_id: Option<String>,
}

/// The engine's answer.
#[derive(Debug)]
#[must_use]
pub enum Intervened {
    /// The agent goes on.
    Passed(Box<Passed>),
    /// A human decides.
    Held(Box<Hold>),
    /// The agent does not go on.
    Refused(Refusal),
}

/// An agent goes on.
#[derive(Debug)]
pub struct Passed {
    /// What was said.
    pub verdict: Verdict,
    /// What to use in the place of what there was.
    pub changed: Option<Json>,
    /// What was judged, and what may be done.
    pub identities: Option<Identities>,
    /// The durable decision.
    pub decision: Recorded,
}

/// What was found, and what has to be durable before it counts.
pub(crate) struct Found {
    pub(crate) finding: Finding,
    pub(crate) events: Vec<(EventType, Payload, Option<Change>)>,
    pub(crate) asked: Option<Result<Box<countersign_approval::Envelope>, Unaskable>>,
}

impl Engine {
    /// Decides whether an agent goes on. Whatever comes back is recorded durably first.
    pub fn intervene(&self, intervention: &Intervention<'_>) -> Intervened {
        match intervention.point {
            point @ (Point::PreToolCall | Point::PostToolCall) => {
                Intervened::Refused(Fault::NotHere(point).into())
            }
            _ => self.attend(intervention),
        }
    }

    /// Decides whether an agent sees a result that came when its call was settled already, as that of
    /// a task does. The subject is what there is to see of a call and its result.
    pub fn review(&self, scope: &Scope, origin: &Origin, subject: Json) -> Intervened {
        self.attend(&Intervention {
            scope,
            point: Point::PostToolCall,
            origin,
            subject,
            call_id: None,
        })
    }

    fn attend(&self, intervention: &Intervention<'_>) -> Intervened {
        for _ in 0..MAX_ATTEMPTS {
            match self.try_intervene(intervention) {
                Err(Fault::Store(error)) if error.is_retryable() => {}
                Ok(intervened) => return intervened,
                Err(fault) => return Intervened::Refused(fault.into()),
            }
        }
        Intervened::Refused(Fault::Busy.into())
    }

    /// Goes on with what people have approved: the very thing that they saw, once.
    pub fn resume(&self, id: ApprovalId, intervention: &Intervention<'_>) -> Intervened {
        match self.try_resume(id, intervention) {
            Ok(passed) => Intervened::Passed(Box::new(passed)),
            Err(refusal) => Intervened::Refused(refusal),
        }
    }

    fn try_intervene(&self, intervention: &Intervention<'_>) -> Result<Intervened, Fault> {
        let policies = self.policies();
        self.keep(&policies)?;
        let (scope, now) = (intervention.scope, self.clock.now_unix_ms()?);
        let place = self.sessions.place(scope);
        let heard = match policies.asks_others() {
            false => None,
            true => {
                let hot = self.peek(&place, scope)?;
                let hearing = Hearing::default();
                let _found = intervention.judged(&policies, &hot, &hearing);
                Some((hot.head, hearing.into_record()))
            }
        };
        let mut guard = lock(&place);
        let hot = self.hot(&mut guard, scope)?;
        let hearing = match heard {
            Some((head, heard)) if head == hot.head => Hearing::again(heard.as_ref()),
            _ => Hearing::default(),
        };
        let (finding, mut decision) = intervention.judged(&policies, &hot, &hearing);
        decision.heard = hearing.into_record();
        let found = match finding.verdict.decision() {
            Decision::Escalate => {
                self.held(intervention, (finding, decision), &[], (&hot, &policies))
            }
            _ => Ok(intervention.told(finding, decision)),
        };
        guard.hot = Some(hot);
        let found = found?;
        let recorded = self.push_at(guard, &place, scope, now, found.events)?;
        let Finding {
            verdict,
            changed,
            identities,
            explanation,
        } = found.finding;
        Ok(match (verdict.decision(), found.asked) {
            (Decision::Escalate, Some(Ok(envelope))) => Intervened::Held(Box::new(Hold {
                call_id: call_id(&envelope),
                verdict,
                irreversible: false,
                explanation,
                decision: recorded,
                approval: Ok(envelope),
            })),
            // FAIL-CLOSED: where nobody can be asked, nobody has approved.
            (Decision::Escalate, asked) => {
                let problem = asked.and_then(Result::err).unwrap_or(Unaskable::Nobody);
                let denied = Verdict::new(Decision::Deny, problem.reason());
                let denied = denied.with_message(problem.to_string());
                Intervened::Refused(Refusal::denied(&denied, explanation, recorded))
            }
            (Decision::Deny, _) => {
                Intervened::Refused(Refusal::denied(&verdict, explanation, recorded))
            }
            (Decision::Allow | Decision::Warn | Decision::Transform, _) => {
                Intervened::Passed(Box::new(Passed {
                    verdict,
                    changed,
                    identities,
                    decision: recorded,
                }))
            }
        })
    }

    /// People are asked as about a call: what they approve is what would go on, with these labels.
    pub(crate) fn held(
        &self,
        intervention: &Intervention<'_>,
        (finding, mut decision): (Finding, PolicyDecision),
        labels: &[String],
        (hot, policies): (&Hot, &Policies),
    ) -> Result<Found, Fault> {
        let random = random().map_err(|error| Fault::History(error.to_string()))?;
        let call_id = format!("point_{}", base16ct::lower::encode_string(&random));
        let proposal = intervention.as_proposal(&call_id);
        decision.call_id = Some(call_id.clone());
        let proposed = ToolCallProposed {
            call_id: Some(call_id),
            tool_name: Some(proposal.tool_name.clone()),
            agent_id: Some(intervention.origin.agent_name.clone()),
            args: Some(proposal.args.clone()),
            other: labelled(labels),
            ..ToolCallProposed::default()
        };
        let judgement = Judgement {
            verdict: finding.verdict.clone(),
            constraints: None,
            irreversible: false,
            side_effect: SideEffect::Unknown,
            explanation: finding.explanation.clone(),
        };
        let mut question = self.question(&proposal, &judgement, hot, policies)?;
        question.identity = finding.identities.map(|both| both.enforced);
        let asked = self.ask(&question);
        let mut events = vec![
            (
                EventType::ToolCallProposed,
                Payload::ToolCallProposed(proposed),
                None,
            ),
            (
                EventType::PolicyDecision,
                Payload::PolicyDecision(decision),
                None,
            ),
        ];
        let asked = match asked {
            Ok(asked) => {
                let kind = EventType::ApprovalRequested;
                events.push((kind, asked.payload, Some(asked.change)));
                Ok(Box::new(asked.envelope))
            }
            Err(unaskable) => {
                events.push(unaskable.denial(&proposal.call_id));
                Err(unaskable)
            }
        };
        Ok(Found {
            finding,
            events,
            asked: Some(asked),
        })
    }

    pub(crate) fn try_resume(
        &self,
        id: ApprovalId,
        intervention: &Intervention<'_>,
    ) -> Result<Passed, Refusal> {
        let standing = self.approval(id)?;
        // SECURITY: an approval of another session is none of this one.
        let standing = standing.filter(|standing| standing.row.scope == *intervention.scope);
        let unknown = || Fault::Approval(countersign_approval::Refusal::UnknownNonce);
        let standing = standing.ok_or_else(unknown)?;
        let (args, tool) = (
            Arguments::new(intervention.subject.clone())
                .map_err(|error| Fault::History(error.to_string()))?,
            intervention.tool(),
        );
        let wanted = Wanted {
            tool: Some(&tool),
            args: Some(&args),
            ..Wanted::default()
        };
        let encode = |call: &countersign_approval::ToolCall| call.args.canonical().to_vec();
        let permit = match self.redeem(id, wanted, &encode) {
            Redeemed::Permit(permit) => permit,
            Redeemed::Failed(refusal) => return Err(refusal),
            Redeemed::Refused(refusal) => return Err(Fault::Approval(refusal).into()),
            Redeemed::Replayed(_) => {
                let used = countersign_approval::Refusal::Replayed(State::Consumed);
                return Err(Fault::Approval(used).into());
            }
            Redeemed::Drifted(_) => return Err(Fault::ActionMismatch.into()),
        };
        let labels = permit.labels.clone();
        let bytes = permit.rewritten().map(<[u8]>::to_vec).unwrap_or_default();
        let running = self.begin(permit, &bytes)?;
        let grounds = running.permit.grounds.as_deref();
        let step = self.step(grounds, State::Started, State::Executed)?;
        let decision = PolicyDecision {
            call_id: Some(running.permit.call_id.clone()),
            outcome: Some("allow".to_owned()),
            verdict: Some("allow".to_owned()),
            reason: Some(GRANTED.to_owned()),
            policy_ref: Some(format!("approval {ENGINE}")),
            intervention_point: Some(intervention.point.as_str().to_owned()),
            result_labels: (!labels.is_empty()).then_some(labels),
            ..PolicyDecision::default()
        };
        let payload = Payload::PolicyDecision(decision);
        let kind = EventType::PolicyDecision;
        let mut decision = self.settle_event(intervention.scope, kind, payload, step)?;
        let approved = standing.envelope.plan().calls().first();
        let approved = approved.map(|call| call.args.value().clone());
        if let Some(told) = intervention.model_event(approved.as_ref()) {
            let (event_type, payload) = told;
            decision = self.record(intervention.scope, event_type, payload)?;
        }
        Ok(Passed {
            verdict: Verdict::new(Decision::Allow, GRANTED),
            changed: approved.filter(|approved| *approved != intervention.subject),
            identities: None,
            decision,
        })
    }
}

impl Intervention<'_> {
    fn judged(
        &self,
        policies: &Policies,
        hot: &Hot,
        hearing: &Hearing,
    ) -> (Finding, PolicyDecision) {
        policies.attend(
            (self.point, &self.subject),
            Some(&self.origin.agent_name),
            hot.snapshot(),
            hearing,
            ENGINE,
        )
    }

    fn told(&self, finding: Finding, decision: PolicyDecision) -> Found {
        let passes = finding.verdict.decision().permits();
        let subject = finding.changed.as_ref().unwrap_or(&self.subject);
        let model = self
            .model_event(Some(subject).filter(|_| passes))
            // A model that was not asked has not begun to answer.
            .filter(|_| passes || self.point == Point::PostModelCall);
        let decision = (EventType::PolicyDecision, Payload::PolicyDecision(decision));
        let events = std::iter::once(decision).chain(model);
        let events = events.map(|(event_type, payload)| (event_type, payload, None));
        Found {
            events: events.collect(),
            finding,
            asked: None,
        }
    }

    /// What the log tells of the model call; its content where it went on.
    fn model_event(&self, subject: Option<&Json>) -> Option<(EventType, Payload)> {
        let call_id = Some(self.call_id.clone()?);
        let model = |name: &str| {
            let text = self.subject.get("model")?.get(name)?.as_str()?;
            Some(text.to_owned())
        };
        let content = subject.map(content);
        match self.point {
            Point::PreModelCall => Some((
                EventType::ModelCallStarted,
                Payload::ModelCallStarted(ModelCallStarted {
                    call_id,
                    model_id: model("name"),
                    provider: model("vendor"),
                    agent_id: Some(self.origin.agent_name.clone()),
                    prompt: content,
                    ..ModelCallStarted::default()
                }),
            )),
            Point::PostModelCall => Some((
                EventType::ModelCallFinished,
                Payload::ModelCallFinished(ModelCallFinished {
                    call_id,
                    model_id: model("name"),
                    content,
                    ..ModelCallFinished::default()
                }),
            )),
            _ => None,
        }
    }

    fn tool(&self) -> Tool {
        Tool {
            server: None,
            name: format!("{POINT_TOOL}{}", self.point),
            definition: None,
        }
    }

    fn as_proposal(&self, call_id: &str) -> Proposal<'_> {
        Proposal {
            scope: self.scope,
            call_id: call_id.to_owned(),
            tool_name: self.tool().name,
            server: None,
            definition: None,
            origin: self.origin,
            preconditions: Vec::new(),
            args: self.subject.clone(),
            sanitizer_key: None,
            bytes: b"",
            encode: &|_| Vec::new(),
        }
    }
}

/// As an event can hold it: the value itself, or its text where an event cannot hold its numbers.
fn content(subject: &Json) -> Json {
    let text = subject.to_sorted();
    Json::admit(&text, &Limits::event())
        .unwrap_or_else(|_| Json::from(String::from_utf8_lossy(&text).as_ref()))
}

fn labelled(labels: &[String]) -> Object {
    let labels: Vec<Json> = labels.iter().map(|label| label.as_str().into()).collect();
    let labels = (!labels.is_empty()).then(|| (LABELS.to_owned(), Json::Array(labels)));
    labels.into_iter().collect()
}

fn call_id(envelope: &countersign_approval::Envelope) -> String {
    let call = envelope.plan().calls().first();
    call.map(|call| call.id.as_str().to_owned())
        .unwrap_or_default()
}

const GRANTED: &str = "approval_granted";
