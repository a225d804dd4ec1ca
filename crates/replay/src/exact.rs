//! A session exactly as it was.

use std::collections::HashMap;
use std::str::FromStr as _;

use countersign_approval::Envelope;
use countersign_canon::{Digest, Json, Limits};
use countersign_event::Scope;
use countersign_event::payload::{ApprovalRequested, Payload, PolicyDecision};
use countersign_policy::{Hearing, Point};
use countersign_session::{Fact, Snapshot};
use countersign_store::{Opened, Reader};

use crate::proposed::Proposed;
use crate::shelf::Shelf;
use crate::{Diff, Error, Mode, Report, Taken};

/// Folds the session again and takes every decision again, with the policies that took it.
pub fn exact(scope: &Scope, reader: &Reader) -> Result<Report, Error> {
    Replayer::new(reader).session(scope)
}

/// Replays sessions of one log. Policies that took decisions in several of them are read once.
pub struct Replayer<'r> {
    reader: &'r Reader,
    shelf: Shelf<'r>,
}

impl<'r> Replayer<'r> {
    /// Replays sessions of this log.
    pub fn new(reader: &'r Reader) -> Self {
        Self {
            reader,
            shelf: Shelf::new(reader.folder()),
        }
    }

    /// Folds the session again and takes every decision again, with the policies that took it.
    pub fn session(&mut self, scope: &Scope) -> Result<Report, Error> {
        let mut run = Run {
            shelf: &mut self.shelf,
            snapshot: Snapshot::default(),
            waiting: HashMap::new(),
            held: HashMap::new(),
            edit: None,
            report: Report {
                scope: scope.clone(),
                mode: Mode::Exact,
                timeline: Vec::new(),
                steps: 0,
                events: 0,
                decisions: 0,
                decided_at_the_door: 0,
                diffs: Vec::new(),
            },
        };
        self.reader.history(scope, |event| run.step(&event))?;
        run.finish()
    }
}

struct Run<'s, 'f> {
    shelf: &'s mut Shelf<'f>,
    snapshot: Snapshot,
    /// Calls that were proposed and not yet decided, with the state before each.
    waiting: HashMap<String, (Proposed, Snapshot)>,
    /// Calls that wait for people, who may edit them.
    held: HashMap<String, Proposed>,
    /// A decision about an edited call; the request that follows says how it was edited.
    edit: Option<Edit>,
    report: Report,
}

struct Edit {
    seq: u64,
    ts_unix_ms: u64,
    before: Snapshot,
    decision: PolicyDecision,
}

impl Run<'_, '_> {
    fn step(&mut self, event: &Opened<'_>) -> Result<(), Error> {
        match event.payload {
            Payload::ToolCallProposed(payload) => {
                let proposed = Proposed::new(payload, event.seq, event.ts_unix_ms);
                let call_id = event.call_id.unwrap_or_default().to_owned();
                self.waiting
                    .insert(call_id, (proposed, self.snapshot.clone()));
            }
            Payload::PolicyDecision(decision) => self.decided(decision, event)?,
            Payload::ApprovalRequested(request) => self.asked(request, event)?,
            _ => {}
        }
        let fact = Fact {
            seq: event.seq,
            ts_unix_ms: event.ts_unix_ms,
            event_type: event.event_type,
            payload: event.payload,
        };
        let seq = event.seq;
        self.report.events += 1;
        self.snapshot
            .apply(&fact)
            .map_err(|error| Error::Fold { seq, error })
    }

    fn decided(&mut self, decision: &PolicyDecision, event: &Opened<'_>) -> Result<(), Error> {
        let call_id = event.call_id.unwrap_or_default();
        if decision.policy_digest.is_none() {
            self.waiting.remove(call_id);
            self.report.decided_at_the_door += 1;
            return Ok(());
        }
        let point = decision.intervention_point.as_deref();
        if let Some(point) = point.filter(|point| *point != Point::PreToolCall.as_str()) {
            // People are asked as about a call, which is proposed right before.
            let before = self.waiting.remove(call_id).map(|(_, before)| before);
            let before = before.unwrap_or_else(|| self.snapshot.clone());
            return self.attended((point, &before), decision, event.seq);
        }
        let Some((proposed, before)) = self.waiting.remove(call_id) else {
            self.edit = Some(Edit {
                seq: event.seq,
                ts_unix_ms: event.ts_unix_ms,
                before: self.snapshot.clone(),
                decision: decision.clone(),
            });
            return Ok(());
        };
        self.decide(&proposed, &before, decision, event.seq)?;
        if decision.outcome.as_deref() == Some("require_approval") {
            self.held.insert(call_id.to_owned(), proposed);
        }
        Ok(())
    }

    /// A decision at a point that is no call: what there was to see is in its record.
    fn attended(
        &mut self,
        (point, before): (&str, &Snapshot),
        recorded: &PolicyDecision,
        seq: u64,
    ) -> Result<(), Error> {
        let incomplete = |problem| Error::Incomplete { seq, problem };
        let point: Point = point
            .parse()
            .map_err(|_| incomplete("its point is not known"))?;
        let subject = recorded.subject.as_ref().and_then(Json::as_str);
        let subject = subject.and_then(|text| Json::admit(text.as_bytes(), &SUBJECT).ok());
        let subject = subject.ok_or_else(|| incomplete("what was judged is not recorded"))?;
        let digest = recorded.policy_digest.as_deref();
        let digest = digest
            .and_then(|digest| Digest::from_str(digest).ok())
            .ok_or_else(|| incomplete("its policies have no digest"))?;
        let policies = self.shelf.policies(digest, seq)?;
        let hearing = Hearing::again(recorded.heard.as_ref());
        let (_, mut replayed) = policies.attend(
            (point, &subject),
            recorded.agent_id.as_deref(),
            before,
            &hearing,
            "",
        );
        // The labels of a result come with the result.
        if point == Point::PostToolCall {
            replayed.result_labels = None;
        }
        self.report.decisions += 1;
        self.compare(recorded, &replayed, seq);
        Ok(())
    }

    /// The request that goes with a decision about an edited call names its arguments.
    fn asked(&mut self, request: &ApprovalRequested, event: &Opened<'_>) -> Result<(), Error> {
        let Some(edit) = self.edit.take() else {
            return Ok(());
        };
        let seq = edit.seq;
        let incomplete = |problem| Error::Incomplete { seq, problem };
        let held = self.held.get(event.call_id.unwrap_or_default());
        let held = held.ok_or_else(|| incomplete("no call of this name waits for people"))?;
        let envelope = request.envelope.as_ref().and_then(Json::as_str);
        let envelope = envelope.and_then(|text| Envelope::read(text.as_bytes()).ok());
        let call = envelope
            .as_ref()
            .and_then(|envelope| envelope.plan().calls().first());
        let call = call.ok_or_else(|| incomplete("the request has no readable envelope"))?;
        let edited = held.edited(call.args.value().clone(), seq, edit.ts_unix_ms);
        self.decide(&edited, &edit.before, &edit.decision, seq)
    }

    fn decide(
        &mut self,
        proposed: &Proposed,
        before: &Snapshot,
        recorded: &PolicyDecision,
        seq: u64,
    ) -> Result<(), Error> {
        let incomplete = |problem| Error::Incomplete { seq, problem };
        let digest = recorded.policy_digest.as_deref();
        let digest = digest
            .and_then(|digest| Digest::from_str(digest).ok())
            .ok_or_else(|| incomplete("its policies have no digest"))?;
        let policies = self.shelf.policies(digest, seq)?;
        let hearing = Hearing::again(recorded.heard.as_ref());
        let ruling = proposed
            .decide(&policies, before, recorded.links.as_ref(), &hearing)
            .map_err(|_| incomplete("its arguments have no canonical form"))?;
        let call_id = recorded.call_id.as_deref().unwrap_or_default();
        let replayed = ruling.to_event(call_id, "", digest, before.hash());
        self.report.decisions += 1;
        let differences = self.report.diffs.len();
        self.compare(recorded, &replayed, seq);
        self.report.took(Taken {
            seq,
            ts_unix_ms: proposed.ts_unix_ms,
            tool: proposed.tool_name.clone(),
            recorded: words(recorded),
            replayed: words(&replayed),
            same: self.report.diffs.len() == differences,
        });
        Ok(())
    }

    fn compare(&mut self, recorded: &PolicyDecision, replayed: &PolicyDecision, seq: u64) {
        if recorded.snapshot_hash != replayed.snapshot_hash {
            self.report.diffs.push(Diff {
                seq,
                field: "snapshot_hash",
                pointer: String::new(),
                recorded: text(recorded.snapshot_hash.as_deref()),
                replayed: text(replayed.snapshot_hash.as_deref()),
                cause: "the events before it fold to another state than they did then".to_owned(),
            });
        }
        let (was, is) = (verdict(recorded), verdict(replayed));
        if was != is {
            let by = recorded.policy_ref.as_deref().unwrap_or_default();
            let by = by.split_once(' ').map_or("another version", |(_, by)| by);
            self.report.diffs.push(Diff {
                seq,
                field: "policy_decision",
                pointer: String::new(),
                recorded: was,
                replayed: is,
                cause: format!("the same policies gave another answer; {by} took the decision"),
            });
        }
    }

    fn finish(mut self) -> Result<Report, Error> {
        if self.report.events == 0 {
            return Err(Error::NoSession(Box::new(self.report.scope)));
        }
        if let Some(edit) = self.edit {
            let problem = "no request follows the decision about an edited call";
            return Err(Error::Incomplete {
                seq: edit.seq,
                problem,
            });
        }
        self.report.steps = self.snapshot.counters().steps_consumed();
        Ok(self.report)
    }
}

/// `deny EGRESS_DENY`
fn words(decision: &PolicyDecision) -> String {
    let verdict = decision.verdict.as_deref().unwrap_or("nothing");
    match decision.reason.as_deref() {
        None => verdict.to_owned(),
        Some(reason) => format!("{verdict} {reason}"),
    }
}

/// Everything in a decision that follows from the case and the policies.
fn verdict(decision: &PolicyDecision) -> Json {
    let rule = decision.policy_ref.as_deref();
    let rule = rule.and_then(|rule| rule.split(' ').next());
    let codes = decision.reason_codes.iter().flatten();
    let labels = decision.result_labels.iter().flatten();
    let constraints = decision.constraints.iter().flatten();
    Json::object([
        ("outcome", text(decision.outcome.as_deref())),
        ("verdict", text(decision.verdict.as_deref())),
        ("reason", text(decision.reason.as_deref())),
        ("rule", text(rule)),
        (
            "enforced_identity",
            text(decision.enforced_identity.as_deref()),
        ),
        (
            "reason_codes",
            Json::Array(codes.map(|code| Json::from(code.as_str())).collect()),
        ),
        (
            "result_labels",
            Json::Array(labels.map(|label| Json::from(label.as_str())).collect()),
        ),
        (
            "constraints",
            Json::object(constraints.map(|(name, limit)| (name.clone(), Json::from(*limit)))),
        ),
    ])
}

fn text(text: Option<&str>) -> Json {
    text.map_or(Json::Null, Json::from)
}

/// As large as anything that was judged.
const SUBJECT: Limits = Limits {
    max_bytes: 16 << 20,
    max_depth: 128,
    ..Limits::plan()
};
