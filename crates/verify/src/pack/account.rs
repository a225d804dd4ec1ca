//! Records, envelopes and CloudEvents: worked out again from the events and the disclosed values beside
//! them, and compared.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use countersign_canon::{Hash, Json, Limits, Numbers};
use countersign_event::{Line, Scope};
use countersign_evidence::aep::{self, Keys, Record, record_hash};
use countersign_evidence::cloudevents::{CloudEvent, Producer};
use countersign_evidence::{Account, Event};
use countersign_pack::member;

use super::events::{Events, Opened, cores};
use super::members::{Members, form};
use super::policies::Manifests;
use super::{PackProblem, PackReport};

/// What a pack tells about an action beside its events.
pub(super) struct Told {
    /// The hash of its record.
    pub(super) record: Hash,
    /// Its decision envelope.
    pub(super) envelope: Json,
    /// The leases that stood when it was decided.
    pub(super) leases: Vec<String>,
}

/// What is told, by tenant, session and action.
pub(super) type AllTold = BTreeMap<(String, String, String), Told>;

/// Who made the records.
struct Maker {
    producer: Producer,
    keys: Keys,
    /// Whether values were made fit to leave by the rules that are known here.
    same_rules: bool,
}

/// The events of a session.
struct Session<'e, 'a> {
    scope: Scope,
    lines: Vec<&'e Line<'a>>,
}

pub(super) fn check(
    members: &Members<'_>,
    events: &Events<'_>,
    opened: &Opened,
    manifests: &Manifests,
    report: &mut PackReport,
) -> Result<AllTold, PackProblem> {
    let parts = [
        member::PRODUCER,
        member::RECORDS,
        member::ENVELOPES,
        member::CLOUD_EVENTS,
    ];
    if parts.iter().all(|name| !members.has(name)) {
        report.leave("records, envelopes and CloudEvents: the pack has none");
        return Ok(AllTold::new());
    }
    let maker = maker(&members.json(member::PRODUCER)?)?;
    let records = members.needed_lines(member::RECORDS)?;
    let envelopes = members.needed_lines(member::ENVELOPES)?;
    let cloud_events = members.needed_lines(member::CLOUD_EVENTS)?;

    let sessions = sessions(events)?;
    let accounts = accounts(&sessions, opened, manifests, &maker)?;
    let mut told = AllTold::new();
    let mut place = Places::default();
    for (session, account) in sessions.iter().zip(&accounts) {
        compare_envelopes(&envelopes, account, place.envelopes)?;
        let own = compare_records(&records, account, &maker, place.records)?;
        compare_events(&cloud_events, account, &maker, place.events)?;
        place.records += account.records.len();
        place.envelopes += account.envelopes.len();
        place.events += account.events.len();
        for ((record, leases), envelope) in own.into_iter().zip(&account.envelopes) {
            let action = envelope.get("action_id").and_then(Json::as_str);
            let name = (
                session.scope.tenant.as_str().to_owned(),
                session.scope.session.as_str().to_owned(),
                action.unwrap_or_default().to_owned(),
            );
            let told_of_it = Told {
                record,
                envelope: envelope.clone(),
                leases,
            };
            told.insert(name, told_of_it);
        }
    }
    place.check_ends(records.len(), envelopes.len(), cloud_events.len())?;

    report.check(format!(
        "{} record(s) with their decision envelopes and {} CloudEvent(s): worked out again from the \
         events and what is disclosed of them, and the same",
        place.records, place.events
    ));
    if place.records > 0 {
        report.check("the signature of each record, by the key that the pack names for them");
    }
    if !maker.same_rules {
        report.leave("the data of the CloudEvents: it was redacted by rules of another version");
    }
    let untold: usize = accounts.iter().map(|account| account.untold.len()).sum();
    if untold > 0 {
        report.leave(format!(
            "{untold} action(s) that no record can tell of within its rules"
        ));
    }
    Ok(told)
}

/// How many lines of each member were compared.
#[derive(Default)]
struct Places {
    records: usize,
    envelopes: usize,
    events: usize,
}

impl Places {
    /// INVARIANT: nothing is told that no event stands behind.
    fn check_ends(
        &self,
        records: usize,
        envelopes: usize,
        events: usize,
    ) -> Result<(), PackProblem> {
        let ends = [
            (member::RECORDS, self.records, records),
            (member::ENVELOPES, self.envelopes, envelopes),
            (member::CLOUD_EVENTS, self.events, events),
        ];
        match ends.into_iter().find(|(_, told, found)| told != found) {
            None => Ok(()),
            Some((name, told, found)) => Err(PackProblem::Told {
                member: name,
                line: told.min(found) as u64 + 1,
                why: format!("the events tell of {told}, and there are {found}"),
            }),
        }
    }
}

fn compare_records(
    lines: &[&[u8]],
    account: &Account,
    maker: &Maker,
    first: usize,
) -> Result<Vec<(Hash, Vec<String>)>, PackProblem> {
    let mut records = Vec::with_capacity(account.records.len());
    let mut told = Vec::with_capacity(account.records.len());
    for (at, expected) in (first..).zip(&account.records) {
        let refuse = |why: String| different(member::RECORDS, at, why);
        let signed = line(member::RECORDS, lines, at)?;
        let mut unsigned = signed.clone();
        if let Some(members) = unsigned.as_object_mut() {
            members.remove("signature");
        }
        let expected = expected.clone().into_json();
        if unsigned != expected {
            let at = difference(&unsigned, &expected);
            return Err(refuse(format!(
                "it says something else than the events, at `{at}`"
            )));
        }
        let members = expected.as_object().cloned().unwrap_or_default();
        let hash = record_hash(&members).map_err(|error| refuse(error.to_string()))?;
        told.push((hash, leases(&expected)));
        records.push(Record::from_json(signed));
    }
    if records.is_empty() {
        return Ok(told);
    }
    match aep::check(&records, &maker.keys).first_not_signed() {
        None => Ok(told),
        Some((at, why)) => Err(PackProblem::RecordSignature {
            line: (first + at) as u64 + 1,
            why,
        }),
    }
}

/// The leases that the action of a record refers to.
fn leases(record: &Json) -> Vec<String> {
    let actions = record.get("actions").and_then(Json::as_array);
    let actions = actions.unwrap_or_default().iter();
    let refs = actions.filter_map(|action| action.get("evidence_refs")?.as_array());
    let refs = refs.flatten().filter_map(Json::as_str);
    refs.filter_map(|one| one.strip_prefix("countersign:lease:"))
        .map(str::to_owned)
        .collect()
}

fn compare_envelopes(lines: &[&[u8]], account: &Account, first: usize) -> Result<(), PackProblem> {
    for (at, expected) in (first..).zip(&account.envelopes) {
        let found = line(member::ENVELOPES, lines, at)?;
        if found != *expected {
            let place = difference(&found, expected);
            let why = format!("it says something else than the events, at `{place}`");
            return Err(different(member::ENVELOPES, at, why));
        }
    }
    Ok(())
}

fn compare_events(
    lines: &[&[u8]],
    account: &Account,
    maker: &Maker,
    first: usize,
) -> Result<(), PackProblem> {
    for (at, expected) in (first..).zip(&account.events) {
        let refuse = |why: String| different(member::CLOUD_EVENTS, at, why);
        let mut found = line(member::CLOUD_EVENTS, lines, at)?;
        let stated = found.get("assaycontenthash").and_then(Json::as_str);
        if stated != CloudEvent::content_hash(&found).ok().as_deref() {
            return Err(refuse(
                "its content hash is not that of its content".to_owned(),
            ));
        }
        let mut expected = expected.to_json();
        if !maker.same_rules {
            for event in [&mut found, &mut expected] {
                if let Some(members) = event.as_object_mut() {
                    for redacted in ["data", "subject", "assaycontenthash", "assaypii"] {
                        members.remove(redacted);
                    }
                }
            }
        }
        if found != expected {
            let place = difference(&found, &expected);
            return Err(refuse(format!(
                "it says something else than the events, at `{place}`"
            )));
        }
    }
    Ok(())
}

fn sessions<'e, 'a>(events: &'e Events<'a>) -> Result<Vec<Session<'e, 'a>>, PackProblem> {
    let mut sessions: BTreeMap<(&str, &str), Vec<&Line<'a>>> = BTreeMap::new();
    for line in &events.lines {
        let name = (line.tenant_id.as_ref(), line.session_id.as_ref());
        sessions.entry(name).or_default().push(line);
    }
    sessions
        .into_iter()
        .map(|((tenant, session), lines)| {
            let scope = Scope::new(tenant, session);
            let scope = scope.map_err(|error| form(member::EVENTS, error))?;
            Ok(Session { scope, lines })
        })
        .collect()
}

/// The accounts of all sessions, on all cores.
fn accounts(
    sessions: &[Session<'_, '_>],
    opened: &Opened,
    manifests: &Manifests,
    maker: &Maker,
) -> Result<Vec<Account>, PackProblem> {
    let by_event = by_event(opened);
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<usize, Result<Account, PackProblem>>> = Mutex::default();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(session) = sessions.get(at) else {
                return;
            };
            let account = account(session, &by_event, manifests, maker);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.insert(at, account);
        }
    };
    thread::scope(|scope| {
        for _ in 1..cores().min(sessions.len()) {
            scope.spawn(work);
        }
        work();
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_values().collect()
}

/// Disclosed values by event.
type ByEvent<'o> = BTreeMap<Hash, Vec<(&'o str, &'o Json)>>;

fn by_event(opened: &Opened) -> ByEvent<'_> {
    let mut by_event = ByEvent::new();
    for ((event, place), value) in opened {
        by_event.entry(*event).or_default().push((place, value));
    }
    by_event
}

fn account(
    session: &Session<'_, '_>,
    opened: &ByEvent<'_>,
    manifests: &Manifests,
    maker: &Maker,
) -> Result<Account, PackProblem> {
    let events = session.lines.iter().map(|line| {
        let opened = opened.get(&line.hash).map(Vec::as_slice);
        let opened = opened.unwrap_or_default().iter();
        let opened = opened.map(|(place, value)| ((*place).to_owned(), (*value).clone()));
        Event::disclosed(line, opened.collect())
    });
    let events: Vec<Event> = events.collect();
    Account::of(&session.scope, &events, manifests, &maker.producer)
        .map_err(|error| form(member::EVENTS, error))
}

fn maker(json: &Json) -> Result<Maker, PackProblem> {
    let bad = |what: &str| form(member::PRODUCER, format!("`{what}`"));
    let text = |json: &Json, name: &str| {
        let text = json.get(name).and_then(Json::as_str);
        text.map(str::to_owned).ok_or_else(|| bad(name))
    };
    let producer = json.get("producer").ok_or_else(|| bad("producer"))?;
    let rules = json.get("redaction").and_then(Json::as_u64);
    let mut keys = Keys::default();
    keys.add(&text(json, "key_id")?, &text(json, "key")?)
        .map_err(|error| form(member::PRODUCER, error))?;
    Ok(Maker {
        producer: Producer {
            name: text(producer, "name")?,
            version: text(producer, "version")?,
            git: text(producer, "git")?,
            source: text(producer, "source")?,
        },
        keys,
        same_rules: rules.ok_or_else(|| bad("redaction"))? == countersign_redact::RULES_VERSION,
    })
}

/// One line of a member, which has one text only.
fn line(name: &'static str, lines: &[&[u8]], at: usize) -> Result<Json, PackProblem> {
    let text = lines.get(at);
    let text = text.ok_or_else(|| different(name, at, "it is missing".to_owned()))?;
    let json = Json::admit(text, &LIMITS);
    let json = json.map_err(|error| different(name, at, error.to_string()))?;
    match json.to_jcs().is_ok_and(|canonical| canonical == **text) {
        true => Ok(json),
        false => Err(different(
            name,
            at,
            "it is not in canonical form".to_owned(),
        )),
    }
}

fn different(member: &'static str, at: usize, why: String) -> PackProblem {
    PackProblem::Told {
        member,
        line: at as u64 + 1,
        why,
    }
}

/// The first place where two values differ.
fn difference(found: &Json, expected: &Json) -> String {
    match (found, expected) {
        (Json::Object(found), Json::Object(expected)) => {
            let names = found.iter().chain(expected.iter()).map(|(name, _)| name);
            let mut names = names.filter(|name| found.get(name) != expected.get(name));
            let Some(name) = names.next() else {
                return String::new();
            };
            let null = Json::Null;
            let (found, expected) = (found.get(name), expected.get(name));
            let deeper = difference(found.unwrap_or(&null), expected.unwrap_or(&null));
            format!("/{name}{deeper}")
        }
        (Json::Array(found), Json::Array(expected)) if found.len() == expected.len() => {
            let mut pairs = found.iter().zip(expected).enumerate();
            let differs = pairs.find(|(_, (found, expected))| found != expected);
            differs.map_or_else(String::new, |(at, (found, expected))| {
                format!("/{at}{}", difference(found, expected))
            })
        }
        _ => String::new(),
    }
}

const LIMITS: Limits = Limits {
    max_bytes: 64 << 20,
    max_depth: 140,
    numbers: Numbers::Double,
};
