//! Policies that decided: each document against its digest, the digests against the decisions.

use std::collections::{BTreeMap, BTreeSet};

use countersign_canon::Digest;
use countersign_event::EventType;
use countersign_pack::{PolicyDocument, member};

use super::approvals::public;
use super::events::Events;
use super::members::Members;
use super::{PackProblem, PackReport};

/// The manifests behind policies that are in the pack: name and version, by the digest of the policies.
pub(super) type Manifests = BTreeMap<String, (String, String)>;

pub(super) fn check(
    members: &Members<'_>,
    events: &Events<'_>,
    report: &mut PackReport,
) -> Result<Manifests, PackProblem> {
    let decisions = events.lines.iter();
    let decisions = decisions.filter(|line| line.event_type == EventType::PolicyDecision);
    let stated: BTreeSet<String> = decisions
        .filter_map(|line| public(line.payload, "policy_digest"))
        .collect();
    let mut manifests = Manifests::new();
    let mut here = BTreeSet::new();
    for (name, content) in members.within(member::POLICIES) {
        let refuse = |why: String| PackProblem::Policy {
            member: name.to_owned(),
            why,
        };
        let document = PolicyDocument::read(content).map_err(|error| refuse(error.to_string()))?;
        let digest = document.digest();
        let digest = digest.map_err(|error| refuse(error.to_string()))?;
        if name != member_name(&digest) {
            return Err(refuse(format!("it holds the policies {digest}")));
        }
        let digest = digest.to_string();
        if !stated.contains(&digest) {
            return Err(refuse("nothing here was decided by it".to_owned()));
        }
        for beside in document.beside() {
            report.leave(format!(
                "the rules of `{beside}`, which has a say in {digest}: only their digest"
            ));
        }
        if let Some((name, version)) = document.manifest() {
            let manifest = (name.to_owned(), version.to_owned());
            manifests.insert(digest.clone(), manifest);
        }
        here.insert(digest);
    }
    if !here.is_empty() {
        report.check(format!(
            "{} set(s) of policies, rules and manifest, against the digest that the decisions state",
            here.len()
        ));
    }
    for missing in stated.difference(&here) {
        report.leave(format!(
            "what the policies {missing} say: they decided here and are not in the pack"
        ));
    }
    Ok(manifests)
}

fn member_name(digest: &Digest) -> String {
    let digest = digest.to_string();
    let hex = digest.split_once(':').map_or("", |(_, hex)| hex);
    format!("{}{hex}.json", member::POLICIES)
}
