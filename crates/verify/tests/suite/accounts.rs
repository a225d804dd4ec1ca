//! Records, envelopes, CloudEvents and policies in packs: what follows from the events verifies, and
//! nothing else does, whoever signs it.

use std::collections::BTreeMap;

use countersign_approval::SigningKey;
use countersign_canon::{Json, Limits};
use countersign_event::{Line, Scope};
use countersign_evidence::cloudevents::{CloudEvent, Producer};
use countersign_evidence::{Account, Event};
use countersign_pack::{PolicyDocument, member};

use crate::packs::{Log, Parts, text};

/// The members that tell of these events, as the exporter makes them.
pub(crate) fn told(lines: &[Vec<u8>]) -> Vec<(String, Vec<u8>)> {
    told_by(lines, &key(), countersign_redact::RULES_VERSION)
}

fn told_by(lines: &[Vec<u8>], key: &SigningKey, redaction: u64) -> Vec<(String, Vec<u8>)> {
    let producer = Producer {
        name: "countersign".to_owned(),
        version: "0.1.0".to_owned(),
        git: "unknown".to_owned(),
        source: "urn:countersign:node:test".to_owned(),
    };
    let events: Vec<Event> = lines
        .iter()
        .map(|line| Event::disclosed(&Line::read(line).unwrap(), Vec::new()))
        .collect();
    let first = Line::read(&lines[0]).unwrap();
    let scope = Scope::new(first.tenant_id.as_ref(), first.session_id.as_ref()).unwrap();
    let policies = BTreeMap::from([(digest(), ("shop".to_owned(), "3".to_owned()))]);
    let account = Account::of(&scope, &events, &policies, &producer).unwrap();
    let join = |values: Vec<Json>| values.iter().flat_map(text).collect::<Vec<u8>>();
    let records = account.records.into_iter();
    let records = records.map(|record| record.sign(key, "node").unwrap());
    let events = account.events.iter().map(CloudEvent::to_json);
    let made = Json::object([
        ("key", Json::from(hex(key))),
        ("key_id", Json::from("node")),
        (
            "producer",
            Json::object([
                ("name", Json::from(producer.name)),
                ("version", Json::from(producer.version)),
                ("git", Json::from(producer.git)),
                ("source", Json::from(producer.source)),
            ]),
        ),
        ("redaction", Json::from(redaction)),
    ]);
    [
        (member::PRODUCER.to_owned(), text(&made)),
        (member::RECORDS.to_owned(), join(records.collect())),
        (member::ENVELOPES.to_owned(), join(account.envelopes)),
        (member::CLOUD_EVENTS.to_owned(), join(events.collect())),
        (policy_member(), document().to_text().unwrap()),
    ]
    .into()
}

fn key() -> SigningKey {
    SigningKey::from_bytes(&[3; 32])
}

fn hex(key: &SigningKey) -> String {
    let public = key.verifying_key();
    let bytes = public.as_bytes().iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Its digest was worked out by another program, and stands in the decision of call `c1`.
fn document() -> PolicyDocument {
    let text = r#"{"schema":"countersign/policies/v1","manifest":{"version":"3","name":"shop"},
        "rules":[{"name":"capability.rego","text":"package countersign.capability\n"}],
        "entry":"data.countersign.capability.decision",
        "policies":[{"name":"limits","mode":"enforce","entry":"data.limits.verdict",
          "files":[{"name":"limits.rego","text":"package limits\n"}]}],
        "beside":[{"name":"acs","digest":"sha256:305f8cbf3cf1815fc12adbffc5c98f006bd98ae3cb5251d621a9741d346fe680"}],
        "observing":true}"#;
    PolicyDocument::archived(text.as_bytes()).unwrap()
}

fn digest() -> String {
    document().digest().unwrap().to_string()
}

fn policy_member() -> String {
    let digest = digest();
    format!("policies/{}.json", digest.strip_prefix("sha256:").unwrap())
}

fn with_account(log: &Log) -> Parts {
    let mut parts = log.parts("acting");
    parts.told = told(&parts.lines);
    parts
}

/// A pack in which the log itself signs a changed member.
fn changed(log: &Log, name: &str, change: impl Fn(&str) -> String) -> Option<&'static str> {
    let mut parts = with_account(log);
    let (_, content) = parts
        .told
        .iter_mut()
        .find(|(other, _)| *other == name)
        .unwrap();
    let before = String::from_utf8(content.clone()).unwrap();
    let after = change(&before);
    assert_ne!(after, before, "nothing was changed in {name}");
    *content = after.into_bytes();
    log.found(parts).map(|problem| problem.name())
}

#[test]
fn a_pack_with_records_verifies_and_its_actions_have_them() {
    let log = Log::new();
    let report = log.verify(&with_account(&log).pack(&log.signer));
    assert_eq!(report.failure, None);
    let of = |call: &str| {
        let mut actions = report.actions.iter();
        actions.find(|action| action.call_id == call).unwrap()
    };
    let ran = of("c1");
    assert!(ran.record.is_some());
    let envelope = ran.envelope.as_ref().unwrap();
    let member = |name: &str| envelope.get(name).and_then(Json::as_str);
    assert_eq!(member("policy_id"), Some("shop"));
    assert_eq!(member("policy_version"), Some("3"));
    assert_eq!(member("observed_result"), Some("success"));
    assert!(ran.available.text().contains("manifest `shop` 3"));
    let fact = |part: &str, name: &str| ran.facts.get(part).and_then(|it| it.get(name)).cloned();
    assert_eq!(fact("exercised", "ran"), Some(Json::Bool(true)));
    assert_eq!(
        fact("available", "policy_digest"),
        Some(Json::from(digest()))
    );
    let denied = of("c2").envelope.as_ref().unwrap();
    let denied = denied.get("observed_result").and_then(Json::as_str);
    assert_eq!(denied, Some("denied"));
    let said = |what: &str, list: &[String]| list.iter().any(|line| line.contains(what));
    assert!(said("3 record(s)", &report.checked), "{:?}", report.checked);
    assert!(said("1 set(s) of policies", &report.checked));
    assert!(said("the rules of `acs`", &report.not_checked));
}

#[test]
fn a_pack_without_records_or_policies_says_so() {
    let log = Log::new();
    let report = log.verify(&log.parts("acting").pack(&log.signer));
    assert_eq!(report.failure, None);
    let said = |what: &str| report.not_checked.iter().any(|line| line.contains(what));
    assert!(said("records, envelopes and CloudEvents"));
    assert!(said(&format!("what the policies {} say", digest())));
}

/// The maker of the records signs a lie, and the log signs the pack that holds it.
#[test]
fn what_says_something_else_than_the_events_is_found_by_name() {
    let log = Log::new();
    // Made and signed as they should be, from events of which one is missing.
    let parts = log.parts("acting");
    let is_result = |line: &Vec<u8>| String::from_utf8_lossy(line).contains("TOOL_RESULT");
    let lines: Vec<Vec<u8>> = parts
        .lines
        .into_iter()
        .filter(|it| !is_result(it))
        .collect();
    let lies = told(&lines);
    for (name, problem) in [(member::RECORDS, "record"), (member::ENVELOPES, "envelope")] {
        let (_, lie) = lies.iter().find(|(other, _)| other == name).unwrap();
        let found = changed(&log, name, |_| String::from_utf8(lie.clone()).unwrap());
        assert_eq!(found, Some(problem));
    }
    let better = |text: &str| text.replace("\"success\"", "\"failure\"");
    assert_eq!(changed(&log, member::RECORDS, better), Some("record"));
    assert_eq!(changed(&log, member::ENVELOPES, better), Some("envelope"));

    let event = |before: &str| {
        let lines = before.lines().map(|line| {
            let mut event = Json::admit(line.as_bytes(), &Limits::event()).unwrap();
            let data = event.as_object_mut().unwrap().get_mut("data").unwrap();
            let data = data.as_object_mut().unwrap();
            if data.get("tool_name").is_some() {
                data.insert("tool_name".to_owned(), Json::from("other"));
            }
            let hash = CloudEvent::content_hash(&event).unwrap();
            let members = event.as_object_mut().unwrap();
            members.insert("assaycontenthash".to_owned(), Json::from(hash));
            String::from_utf8(text(&event)).unwrap()
        });
        lines.collect::<Vec<_>>().concat()
    };
    assert_eq!(
        changed(&log, member::CLOUD_EVENTS, event),
        Some("cloudevent")
    );
    let renamed = |text: &str| text.replacen("mail.send", "mail.read", 1);
    assert_eq!(
        changed(&log, member::CLOUD_EVENTS, renamed),
        Some("cloudevent")
    );
}

#[test]
fn lines_that_are_missing_added_or_moved_are_found() {
    let log = Log::new();
    for (name, problem) in [
        (member::RECORDS, "record"),
        (member::ENVELOPES, "envelope"),
        (member::CLOUD_EVENTS, "cloudevent"),
    ] {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let joined = |lines: Vec<String>| lines.join("\n") + "\n";
        let missing = changed(&log, name, |text| {
            let mut lines = lines(text);
            lines.pop();
            joined(lines)
        });
        assert_eq!(missing, Some(problem));
        let more = changed(&log, name, |text| {
            let mut lines = lines(text);
            lines.push(lines[0].clone());
            joined(lines)
        });
        assert_eq!(more, Some(problem));
        let moved = changed(&log, name, |text| {
            let mut lines = lines(text);
            lines.swap(0, 1);
            joined(lines)
        });
        assert_eq!(moved, Some(problem));
        let loose = changed(&log, name, |text| text.replacen('{', "{ ", 1));
        assert_eq!(loose, Some(problem));
        let mut parts = with_account(&log);
        parts.told.retain(|(other, _)| other != name);
        assert_eq!(log.found(parts).map(|it| it.name()), Some("member"));
    }
}

#[test]
fn records_count_only_with_the_signature_of_the_named_key() {
    let log = Log::new();
    let mut parts = with_account(&log);
    let other = told_by(&parts.lines, &SigningKey::from_bytes(&[4; 32]), 1);
    let (_, theirs) = other
        .iter()
        .find(|(name, _)| name == member::RECORDS)
        .unwrap();
    for (name, content) in &mut parts.told {
        if name == member::RECORDS {
            content.clone_from(theirs);
        }
    }
    let found = log.found(parts).map(|problem| problem.name());
    assert_eq!(found, Some("record-signature"));
    let unsigned = changed(&log, member::RECORDS, |before| {
        let lines = before.lines().map(|line| {
            let mut record = Json::admit(line.as_bytes(), &Limits::event()).unwrap();
            record.as_object_mut().unwrap().remove("signature");
            String::from_utf8(text(&record)).unwrap()
        });
        lines.collect::<Vec<_>>().concat()
    });
    assert_eq!(unsigned, Some("record-signature"));
}

/// Rules of another version may have left other words out: everything else is compared still.
#[test]
fn data_redacted_by_other_rules_is_not_checked_and_the_rest_is() {
    let log = Log::new();
    let mut parts = log.parts("acting");
    parts.told = told_by(&parts.lines, &key(), 99);
    let report = log.verify(&parts.pack(&log.signer));
    assert_eq!(report.failure, None);
    let said = "the data of the CloudEvents";
    assert!(report.not_checked.iter().any(|line| line.contains(said)));
    for (name, content) in &mut parts.told {
        if name == member::CLOUD_EVENTS {
            let text = String::from_utf8(content.clone()).unwrap();
            *content = text
                .replacen("\"assayseq\":2", "\"assayseq\":3", 1)
                .into_bytes();
        }
    }
    let found = log.found(parts).map(|problem| problem.name());
    assert_eq!(found, Some("cloudevent"));
}

#[test]
fn policies_are_those_that_the_decisions_state() {
    let log = Log::new();
    let name = policy_member();
    let other = |text: &str| text.replace("package limits", "package limit5");
    assert_eq!(changed(&log, &name, other), Some("policy"));
    let observing = |text: &str| text.replace("\"observing\":true", "\"observing\":false");
    assert_eq!(changed(&log, &name, observing), Some("policy"));
    let manifest = |text: &str| text.replace("\"version\":\"3\"", "\"version\":\"4\"");
    assert_eq!(changed(&log, &name, manifest), Some("policy"));
    let loose = |text: &str| text.replacen('{', "{ ", 1);
    assert_eq!(changed(&log, &name, loose), Some("policy"));
    // Policies that decided nothing here, under their own digest.
    let mut parts = with_account(&log);
    let text = String::from_utf8(document().to_text().unwrap()).unwrap();
    let text = observing(&text).into_bytes();
    let digest = PolicyDocument::read(&text).unwrap().digest().unwrap();
    let digest = digest.to_string().replace("sha256:", "");
    parts.told.push((format!("policies/{digest}.json"), text));
    assert_eq!(log.found(parts).map(|it| it.name()), Some("policy"));
}
