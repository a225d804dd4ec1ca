//! What a pack tells beside its events: records, envelopes, CloudEvents, and the policies that decided.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;

use countersign_canon::{Digest, Hash, Json};
use countersign_event::{EventType, Line, Scope};
use countersign_evidence::{Account, Event};
use countersign_pack::{DisclosedOpening, PolicyDocument, member};
use countersign_store::{Folder, Stored};

use super::pack::{scope, text};
use super::session::Signer;
use crate::command::log::view;
use crate::errors::Failure;
use crate::output;

/// Policies by the digest that decisions state.
pub(super) type Policies = BTreeMap<String, PolicyDocument>;

/// The members that follow from the others.
pub(super) fn members(
    events: &[Stored],
    openings: &[DisclosedOpening],
    policies: &Policies,
    signer: &Signer,
) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let producer = signer.producer();
    let manifests: BTreeMap<String, (String, String)> = policies
        .iter()
        .filter_map(|(digest, document)| {
            let (name, version) = document.manifest()?;
            Some((digest.clone(), (name.to_owned(), version.to_owned())))
        })
        .collect();
    let [mut records, mut envelopes, mut cloud_events] = [const { Vec::new() }; 3];
    for (scope, events) in sessions(events, openings)? {
        let account = Account::of(&scope, &events, &manifests, &producer)?;
        for record in account.records {
            let signed = record.sign(&signer.key, &signer.key_id);
            let signed = signed.map_err(|error| super::pack::unwritten(&error))?;
            records.extend(text(&signed)?);
        }
        for envelope in &account.envelopes {
            envelopes.extend(text(envelope)?);
        }
        for event in &account.events {
            cloud_events.extend(text(&event.to_json())?);
        }
    }
    let made = Json::object([
        (
            "key",
            Json::from(base16ct::lower::encode_string(
                signer.key.verifying_key().as_bytes(),
            )),
        ),
        ("key_id", Json::from(signer.key_id.as_str())),
        (
            "producer",
            Json::object([
                ("name", Json::from(producer.name)),
                ("version", Json::from(producer.version)),
                ("git", Json::from(producer.git)),
                ("source", Json::from(producer.source)),
            ]),
        ),
        ("redaction", Json::from(countersign_redact::RULES_VERSION)),
    ]);
    Ok([
        (member::PRODUCER, text(&made)?),
        (member::RECORDS, records),
        (member::ENVELOPES, envelopes),
        (member::CLOUD_EVENTS, cloud_events),
    ]
    .map(|(name, content)| (name.to_owned(), content))
    .into())
}

/// The policies that decided these events, as far as they were kept and are what they should be. The
/// verifier names those that are missing.
pub(super) fn policies(events: &[Stored], folder: &Folder) -> Result<Policies, Failure> {
    let mut stated = BTreeSet::new();
    for event in events {
        let line = view::read(event)?;
        if line.event_type == EventType::PolicyDecision {
            let digest = Event::disclosed(&line, Vec::new()).payload;
            let digest = digest.get("policy_digest").and_then(Json::as_str);
            stated.extend(digest.and_then(|digest| digest.parse::<Digest>().ok()));
        }
    }
    let mut policies = Policies::new();
    for digest in stated.into_iter().take(MOST_POLICIES) {
        let path = folder.policies(digest);
        let found = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(crate::input::unreadable(
                    &path.display().to_string(),
                    &error,
                ));
            }
            Ok(text) => PolicyDocument::archived(&text),
        };
        match found.and_then(|document| Ok((document.digest()?, document))) {
            Ok((own, document)) if own == digest => {
                policies.insert(digest.to_string(), document);
            }
            _ => output::stderr(&format!(
                "the policies {digest} are left out: what was kept under this digest is something else"
            )),
        }
    }
    Ok(policies)
}

/// The name of the member with these policies.
pub(super) fn policy_member(digest: &str) -> String {
    let hex = digest.split_once(':').map_or(digest, |(_, hex)| hex);
    format!("{}{hex}.json", member::POLICIES)
}

/// The events of each session, with what is disclosed of them.
fn sessions(
    events: &[Stored],
    openings: &[DisclosedOpening],
) -> Result<BTreeMap<Scope, Vec<Event>>, Failure> {
    let mut opened: HashMap<Hash, Vec<(String, Json)>> = HashMap::new();
    for opening in openings {
        let value = (opening.place.clone(), opening.opening.value.clone());
        opened.entry(opening.event).or_default().push(value);
    }
    let mut sessions: BTreeMap<Scope, Vec<Event>> = BTreeMap::new();
    for event in events {
        let line: Line<'_> = view::read(event)?;
        let opened = opened.remove(&line.hash).unwrap_or_default();
        let told = Event::disclosed(&line, opened);
        sessions.entry(scope(&line)?).or_default().push(told);
    }
    Ok(sessions)
}

/// More sets of policies than a pack has room for.
const MOST_POLICIES: usize = 128;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop at once")]
mod tests {
    use countersign_policy::capability::Capability;
    use countersign_policy::manifest::Manifest;
    use countersign_policy::rego::Source;
    use countersign_policy::{Mode, Policies, UserPolicy};

    use super::*;

    /// The verifier works the digest out by itself, from the document alone.
    #[test]
    fn the_digest_of_kept_policies_is_the_one_that_decisions_state() {
        let manifest = |root: &str| {
            let text = format!(
                r#"{{"name":"shop","version":"3","permissions":{{"fs":{{"read_roots":["{root}"]}}}}}}"#
            );
            let source = Json::admit(text.as_bytes(), &countersign_canon::Limits::event());
            Some(Manifest::partial(&source.unwrap()).unwrap())
        };
        let rules = |manifest| Policies::new(Capability::new(manifest).unwrap());
        let limits = || {
            let source = Source {
                name: "limits.rego".to_owned(),
                text: "package limits\n\nverdict := {\"decision\": \"allow\"}\n".to_owned(),
            };
            UserPolicy::compile("limits", &[source], "data.limits.verdict", Mode::Shadow).unwrap()
        };
        let sets = [
            rules(None),
            rules(manifest("/srv/a")),
            rules(manifest("/srv/b")),
            rules(manifest("/srv/a")).with(limits()),
            rules(manifest("/srv/a")).with(limits()).observing(),
        ];
        let mut seen = BTreeSet::new();
        for policies in sets {
            let kept = policies.to_archive().to_sorted_ascii();
            let document = PolicyDocument::archived(&kept).unwrap();
            assert_eq!(document.digest().unwrap(), policies.digest());
            let again = PolicyDocument::read(&document.to_text().unwrap()).unwrap();
            assert_eq!(again, document);
            assert!(seen.insert(policies.digest()), "two sets have one digest");
        }
    }
}
