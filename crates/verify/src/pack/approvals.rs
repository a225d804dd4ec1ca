//! Approvals: envelopes and votes that the pack discloses, and the audit.

use std::collections::BTreeMap;

use countersign_approval::audit::Entry;
use countersign_approval::{Envelope, KeyId, Submission};
use countersign_canon::{Hash, Json};
use countersign_event::EventType;
use countersign_pack::member;

use super::events::{Events, Opened};
use super::members::{Log, Members};
use super::{PackProblem, PackReport, Trust};

/// Approvals whose envelopes are disclosed.
pub(super) type Approvals = BTreeMap<String, Approval>;

pub(super) struct Approval {
    pub(super) envelope: Envelope,
    /// Who voted, with a signature that was checked.
    pub(super) votes: Vec<String>,
}

pub(super) fn check(
    members: &Members<'_>,
    events: &Events<'_>,
    opened: &Opened,
    trust: &Trust,
    report: &mut PackReport,
) -> Result<Approvals, PackProblem> {
    let mut approvals = Approvals::new();
    let (mut closed, mut votes) = (0, 0);
    for line in &events.lines {
        let Some(id) = line.refs.approval_id.as_deref() else {
            continue;
        };
        let disclosed = |place: &str| {
            let value = opened.get(&(line.hash, place.to_owned()))?;
            value.as_str()
        };
        let refuse = |why: &dyn ToString| PackProblem::Approval {
            id: id.to_owned(),
            why: why.to_string(),
        };
        match line.event_type {
            EventType::ApprovalRequested => {
                let Some(text) = disclosed("/envelope") else {
                    closed += 1;
                    continue;
                };
                let envelope = Envelope::read(text.as_bytes()).map_err(|error| refuse(&error))?;
                let stated = public(line.payload, "plan_hash");
                if envelope.id().to_string() != id
                    || stated.as_deref() != Some(&*envelope.plan().hash().to_string())
                {
                    return Err(refuse(&"the envelope is not the one that was asked about"));
                }
                approvals.insert(
                    id.to_owned(),
                    Approval {
                        envelope,
                        votes: Vec::new(),
                    },
                );
            }
            EventType::ApprovalDecided => {
                let (Some(text), Some(approval)) =
                    (disclosed("/submission"), approvals.get_mut(id))
                else {
                    continue;
                };
                // The event of a lease has another text in the same place.
                let Ok(submission) = Submission::parse(text.as_bytes()) else {
                    continue;
                };
                let person = voter(&submission, &approval.envelope, members, trust)
                    .map_err(|why| refuse(&why))?;
                approval.votes.push(person);
                votes += 1;
            }
            _ => {}
        }
    }
    if !approvals.is_empty() {
        report.check(format!(
            "{} approval(s): the envelope against the plan hash of its event, and {votes} signed \
             vote(s) against the envelope",
            approvals.len()
        ));
        match trust.people.is_empty() {
            true => report.leave(
                "whose keys the votes were signed with: give --trust with the keys of the people",
            ),
            false => report.check("that the votes were signed with keys that you trust"),
        }
    }
    if closed > 0 {
        report.leave(format!("{closed} approval(s) whose envelopes stay sealed"));
    }
    Ok(approvals)
}

fn voter(
    submission: &Submission,
    envelope: &Envelope,
    members: &Members<'_>,
    trust: &Trust,
) -> Result<String, String> {
    let wanted = submission.key_id();
    let listed = members.people.iter();
    let known = listed.filter(|(_, key)| KeyId::of(key) == wanted);
    let (person, key) = known
        .into_iter()
        .next()
        .ok_or_else(|| format!("key `{wanted}` of a vote is not in the pack"))?;
    let claimed = submission.claims().approver.to_string();
    if *person != claimed {
        return Err(format!(
            "the key of a vote by `{claimed}` is that of `{person}`"
        ));
    }
    if !trust.people.is_empty() && !trust.people.contains(key) {
        return Err(format!(
            "the key of `{person}` is not one of those that you trust"
        ));
    }
    match submission.is_signed_by(key, envelope) {
        true => Ok(claimed),
        false => Err(format!(
            "the signature of `{claimed}` does not fit the envelope"
        )),
    }
}

/// Entries of the audit: each of its form; all of them against the checkpoint, if all are here.
pub(super) fn check_audit(
    members: &Members<'_>,
    log: &Log,
    report: &mut PackReport,
) -> Result<(), PackProblem> {
    let lines = members.lines(member::AUDIT)?;
    let mut last: Option<Hash> = None;
    let mut linked = 0;
    for (number, line) in (1..).zip(&lines) {
        let (_, prev) = Entry::read(line).map_err(|error| PackProblem::Audit {
            line: number,
            why: error.to_string(),
        })?;
        linked += u64::from(last == Some(prev));
        last = Some(Hash::of(line));
    }
    let Some(audit) = log.says.map(|says| says.audit) else {
        report.leave("the audit: the checkpoint does not say where it ended");
        return Ok(());
    };
    let count = lines.len() as u64;
    if audit.count == count && (count == 0 || last == Some(audit.hash)) {
        // The first entry follows a fixed text, and the last one has the hash that was signed.
        if linked + 1 < count {
            return Err(PackProblem::Audit {
                line: count,
                why: "entries before it are missing".to_owned(),
            });
        }
        report.check(match count {
            0 => "that the audit of approvals had no entry at the checkpoint".to_owned(),
            count => format!("the whole audit of {count} entries, to its signed end"),
        });
    } else if count > 0 {
        report.check(format!("the form of {count} entries of the audit"));
        report.leave(format!(
            "that no entry of the audit is missing: the pack has {count} of {}",
            audit.count
        ));
    } else {
        report.leave(format!(
            "the audit of {} entries, which is not in the pack",
            audit.count
        ));
    }
    Ok(())
}

/// A public text of a payload.
pub(super) fn public(payload: &[u8], name: &str) -> Option<String> {
    let limits = countersign_canon::Limits {
        max_bytes: usize::MAX,
        ..countersign_canon::Limits::event()
    };
    let payload = Json::admit(payload, &limits).ok()?;
    payload.get(name)?.as_str().map(str::to_owned)
}
