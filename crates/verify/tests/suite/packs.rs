//! Evidence packs: good ones verify, and nothing else does.

use std::collections::BTreeMap;

use countersign_canon::{Hash, Json};
use countersign_event::{Line, Opening, Salt};
use countersign_pack::archive::{self, Limits};
use countersign_pack::dsse::Envelope;
use countersign_pack::{DisclosedOpening, Selected, Statement, member};
use countersign_tlog::{
    Checkpoint, Counted, Durability, Kind, Range, Signer, Statement as Says, batch, hash,
    session_entry,
};
use countersign_verify::pack::{Answer, PackProblem, PackReport, Trust, html, verify_pack};

use crate::accounts::told;
use crate::log::{Event, Session, interleaved, sessions};
use crate::random::Random;

/// A log with its checkpoint, from which packs are made as the exporter makes them.
pub(crate) struct Log {
    pub(crate) lines: Vec<Vec<u8>>,
    pub(crate) signer: Signer,
    pub(crate) checkpoint: Checkpoint,
    heads: BTreeMap<(String, String), (u64, Hash)>,
}

/// What goes into a pack, to be changed before it is signed.
pub(crate) struct Parts {
    pub(crate) selected: Selected,
    pub(crate) checkpoint: Vec<u8>,
    pub(crate) keys: String,
    pub(crate) lines: Vec<Vec<u8>>,
    pub(crate) indices: Vec<u64>,
    pub(crate) inclusion: Vec<Hash>,
    pub(crate) sessions: Vec<u8>,
    pub(crate) openings: Vec<u8>,
    pub(crate) audit: Vec<u8>,
    /// What is told beside the events.
    pub(crate) told: Vec<(String, Vec<u8>)>,
}

impl Log {
    pub(crate) fn new() -> Self {
        let mut random = Random::seeded(11);
        let mut all = sessions();
        let mut acting = Session::new("acme", "acting");
        for (event_type, payload) in ACTS {
            acting.record(event_type, payload, &mut random);
        }
        all.push(acting);
        let events: Vec<Event> = interleaved(&all, &mut random)
            .into_iter()
            .map(|(_, event)| event)
            .collect();
        let lines: Vec<Vec<u8>> = events.into_iter().map(|event| event.line).collect();
        let mut tree = Range::default();
        let mut heads = BTreeMap::new();
        for line in &lines {
            let line = Line::read(line).unwrap();
            tree.push(hash::leaf(line.hash.as_bytes()));
            let name = (line.tenant_id.to_string(), line.session_id.to_string());
            heads.insert(name, (line.seq + 1, line.hash));
        }
        let mut ends = Range::default();
        for ((tenant, session), (count, head)) in &heads {
            ends.push(hash::leaf(&session_entry(tenant, session, *count, head)));
        }
        let says = Says {
            durability: Durability::Full,
            sessions: Counted {
                count: ends.end(),
                hash: ends.root(),
            },
            audit: Counted {
                count: 0,
                hash: Hash::of(b"autopoiesis:audit:genesis"),
            },
        };
        let checkpoint = Checkpoint {
            origin: "example.com/log".to_owned(),
            size: tree.end(),
            root: tree.root(),
            extensions: says.to_lines(),
        };
        Self {
            lines,
            signer: Signer::new("example.com/log", &[5; 32]).unwrap(),
            checkpoint,
            heads,
        }
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust {
            keys: vec![self.signer.key(Kind::Note)],
            people: Vec::new(),
        }
    }

    fn note(&self) -> Vec<u8> {
        let mut note = self.checkpoint.to_note().unwrap();
        note.add(self.signer.sign(&note));
        note.to_string().into_bytes()
    }

    /// A pack of one session.
    pub(crate) fn parts(&self, session: &str) -> Parts {
        let mine = |line: &[u8]| Line::read(line).unwrap().session_id == session;
        let indices: Vec<u64> = (0..)
            .zip(&self.lines)
            .filter(|(_, line)| mine(line))
            .map(|(index, _)| index)
            .collect();
        let selected = Selected::Session {
            tenant: "acme".to_owned(),
            session: session.to_owned(),
        };
        self.parts_of(selected, &indices, |_, name| name == session)
    }

    pub(crate) fn parts_of(
        &self,
        selected: Selected,
        indices: &[u64],
        has: impl Fn(&str, &str) -> bool,
    ) -> Parts {
        let leaves: Vec<Hash> = self
            .lines
            .iter()
            .map(|line| hash::leaf(Line::read(line).unwrap().hash.as_bytes()))
            .collect();
        let nodes = |leaves: Vec<Hash>| {
            move |level, index| Ok::<_, ()>(Range::of_node(level, index, &leaves))
        };
        let inclusion = batch::prove(indices, leaves.len() as u64, nodes(leaves)).unwrap();
        let ends: Vec<Hash> = self
            .heads
            .iter()
            .map(|((tenant, session), (count, head))| {
                hash::leaf(&session_entry(tenant, session, *count, head))
            })
            .collect();
        let mine: Vec<(u64, _)> = (0..)
            .zip(&self.heads)
            .filter(|(_, ((tenant, session), _))| has(tenant, session))
            .collect();
        let places: Vec<u64> = mine.iter().map(|(index, _)| *index).collect();
        let proof = batch::prove(&places, ends.len() as u64, nodes(ends)).unwrap();
        let heads = mine
            .iter()
            .map(|(index, ((tenant, session), (count, head)))| {
                Json::object([
                    ("count", Json::from(*count)),
                    ("head", Json::from(head.to_string())),
                    ("index", Json::from(*index)),
                    ("session_id", Json::from(session.as_str())),
                    ("tenant_id", Json::from(tenant.as_str())),
                ])
            });
        let sessions = Json::object([
            ("hashes", hashes(&proof)),
            ("heads", Json::Array(heads.collect())),
        ]);
        Parts {
            selected,
            checkpoint: self.note(),
            keys: self.signer.key(Kind::Note).to_string(),
            lines: indices
                .iter()
                .map(|index| self.lines[usize::try_from(*index).unwrap()].clone())
                .collect(),
            indices: indices.to_vec(),
            inclusion,
            sessions: text(&sessions),
            openings: Vec::new(),
            audit: Vec::new(),
            told: Vec::new(),
        }
    }

    pub(crate) fn verify(&self, pack: &[u8]) -> PackReport {
        verify_pack(pack, &self.trust(), &Limits::default())
    }

    /// What a pack of these parts, signed by the log itself, is found to be.
    pub(crate) fn found(&self, parts: Parts) -> Option<PackProblem> {
        self.verify(&parts.pack(&self.signer)).failure
    }
}

impl Parts {
    fn members(&self) -> Vec<(String, Vec<u8>)> {
        let keys = Json::object([
            ("log", Json::from(self.keys.as_str())),
            ("people", Json::Array(Vec::new())),
        ]);
        let indices = self.indices.iter().copied().map(Json::from).collect();
        let inclusion = Json::object([
            ("hashes", hashes(&self.inclusion)),
            ("indices", Json::Array(indices)),
        ]);
        let lines: Vec<u8> = self
            .lines
            .iter()
            .flat_map(|line| line.iter().copied().chain([b'\n']))
            .collect();
        [
            (member::README, b"read me\n".to_vec()),
            (member::CHECKPOINT, self.checkpoint.clone()),
            (member::KEYS, text(&keys)),
            (member::EVENTS, lines),
            (member::INCLUSION, text(&inclusion)),
            (member::SESSIONS, self.sessions.clone()),
            (member::OPENINGS, self.openings.clone()),
            (member::AUDIT, self.audit.clone()),
        ]
        .map(|(name, content)| (name.to_owned(), content))
        .into_iter()
        .chain(self.told.clone())
        .collect()
    }

    pub(crate) fn pack(&self, signer: &Signer) -> Vec<u8> {
        let mut members = self.members();
        let mut statement = Statement {
            members: Vec::new(),
            selected: self.selected.clone(),
            events: self.lines.len() as u64,
        };
        for (name, content) in &members {
            statement.list(name, content);
        }
        let key = signer.key(Kind::Note);
        let envelope = Envelope::sign(statement.to_text().unwrap(), signer, &key);
        members.insert(0, (member::STATEMENT.to_owned(), envelope.to_text()));
        archive::write(&members).unwrap()
    }
}

fn hashes(hashes: &[Hash]) -> Json {
    Json::Array(
        hashes
            .iter()
            .map(|hash| Json::from(hash.to_string()))
            .collect(),
    )
}

pub(crate) fn text(json: &Json) -> Vec<u8> {
    let mut text = json.to_jcs().unwrap();
    text.push(b'\n');
    text
}

#[test]
fn a_pack_of_a_session_verifies_and_answers_the_three_questions() {
    let log = Log::new();
    let report = log.verify(&log.parts("acting").pack(&log.signer));
    assert_eq!(report.failure, None);
    assert_eq!(report.events, ACTS.len() as u64);
    let action = |call: &str| {
        let found = report.actions.iter().find(|action| action.call_id == call);
        found.unwrap_or_else(|| panic!("no call {call}"))
    };
    let ran = action("c1");
    assert_eq!(ran.tool.as_deref(), Some("mail.send"));
    assert!(ran.available.text().contains("policy said allow by rule 7"));
    assert!(
        ran.exercised
            .text()
            .contains("ran with sha256:aa and answered")
    );
    assert!(matches!(ran.changed, Answer::Known(_)), "{:?}", ran.changed);
    let denied = action("c2");
    assert_eq!(
        denied.exercised.text(),
        "none: the call was denied (POLICY)"
    );
    let swapped = action("c3");
    assert_eq!(
        swapped.changed,
        Answer::Wrong("sha256:aa was allowed, sha256:bb ran".to_owned())
    );
    let page = html("a <b>.pack", &report);
    assert!(page.contains("VERIFIED") && page.contains("a &lt;b&gt;.pack"));
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"));
}

#[test]
fn a_pack_of_a_time_range_verifies() {
    let log = Log::new();
    let indices: Vec<u64> = (10..50).collect();
    let names: Vec<(String, String)> = indices
        .iter()
        .map(|index| {
            let line = &log.lines[usize::try_from(*index).unwrap()];
            let line = Line::read(line).unwrap();
            (line.tenant_id.to_string(), line.session_id.to_string())
        })
        .collect();
    let selected = Selected::Range {
        since_unix_ms: Some(0),
        until_unix_ms: None,
    };
    let has =
        |tenant: &str, session: &str| names.contains(&(tenant.to_owned(), session.to_owned()));
    let report = log.verify(&log.parts_of(selected, &indices, has).pack(&log.signer));
    assert_eq!(report.failure, None);
}

#[test]
fn trust_is_the_readers() {
    let log = Log::new();
    let pack = log.parts("acting").pack(&log.signer);
    let nobody = verify_pack(&pack, &Trust::default(), &Limits::default());
    assert_eq!(nobody.failure, None);
    let unsaid = "whose key that is: give --trust with the key of the log";
    assert!(nobody.not_checked.iter().any(|what| what == unsaid));
    let other = Trust {
        keys: vec![
            Signer::new("example.com/log", &[6; 32])
                .unwrap()
                .key(Kind::Note),
        ],
        people: Vec::new(),
    };
    let report = verify_pack(&pack, &other, &Limits::default());
    assert_eq!(report.failure, Some(PackProblem::Untrusted));

    let witness = Signer::new("witness.example/w", &[8; 32]).unwrap();
    let mut parts = log.parts("acting");
    let mut note = countersign_tlog::Note::read(&parts.checkpoint).unwrap();
    note.add(witness.cosign(&note, 1_700_000_000));
    parts.checkpoint = note.to_string().into_bytes();
    let mut trust = log.trust();
    trust.keys.push(witness.key(Kind::Cosignature));
    let report = verify_pack(&parts.pack(&log.signer), &trust, &Limits::default());
    assert_eq!(report.failure, None);
    let seen = "the cosignature of `witness.example/w` at 1700000000";
    assert!(report.checked.iter().any(|what| what == seen));
}

/// Whoever has the key of the log can sign any pack. He still cannot show another history than the
/// checkpoint that others have.
#[test]
fn the_log_itself_cannot_leave_out_or_change_what_its_checkpoint_covers() {
    let log = Log::new();
    let good = || log.parts("acting");
    assert_eq!(log.found(good()), None);
    let last = ACTS.len() - 1;

    let mut cut = log.parts_of(good().selected, &good().indices[..last], |_, s| {
        s == "acting"
    });
    assert!(matches!(
        log.found(cut),
        Some(PackProblem::Incomplete { .. })
    ));
    let mut indices = good().indices;
    indices.remove(3);
    cut = log.parts_of(good().selected, &indices, |_, s| s == "acting");
    assert!(matches!(
        log.found(cut),
        Some(PackProblem::Incomplete { .. } | PackProblem::Link { .. })
    ));
    cut = log.parts_of(good().selected, &good().indices[1..], |_, s| s == "acting");
    assert!(matches!(
        log.found(cut),
        Some(PackProblem::Incomplete { .. })
    ));

    let mut changed = good();
    let line = String::from_utf8(changed.lines[last].clone()).unwrap();
    let line = line.replace("acting", "acted!");
    let old = Line::read(line.as_bytes()).unwrap();
    let rehashed = line.replace(&old.hash.to_string(), &old.computed_hash().to_string());
    changed.lines[last] = rehashed.into_bytes();
    assert!(matches!(log.found(changed), Some(PackProblem::Inclusion)));

    let mut unhashed = good();
    let line = String::from_utf8(unhashed.lines[last].clone()).unwrap();
    unhashed.lines[last] = line.replace("acting", "acted!").into_bytes();
    assert!(matches!(log.found(unhashed), Some(PackProblem::Hash(_))));

    let mut moved = good();
    moved.indices[last] += 1;
    assert!(matches!(log.found(moved), Some(PackProblem::Inclusion)));
    let mut swapped = good();
    swapped.lines.swap(0, 1);
    assert!(matches!(log.found(swapped), Some(PackProblem::Inclusion)));
    let mut shorter = good();
    shorter.inclusion.pop();
    assert!(matches!(log.found(shorter), Some(PackProblem::Inclusion)));
    let mut ends = good();
    let count = format!("\"count\":{}", ACTS.len());
    let fewer = format!("\"count\":{}", ACTS.len() - 1);
    let sessions = String::from_utf8(ends.sessions).unwrap();
    ends.sessions = sessions.replace(&count, &fewer).into_bytes();
    assert!(matches!(log.found(ends), Some(PackProblem::Sessions)));
    let mut other = good();
    other.selected = Selected::Session {
        tenant: "acme".to_owned(),
        session: "s".to_owned(),
    };
    assert!(matches!(
        log.found(other),
        Some(PackProblem::NotSelected(_))
    ));
    let mut empty = log.parts_of(good().selected, &[], |_, _| false);
    empty.indices.clear();
    assert!(matches!(log.found(empty), Some(PackProblem::Count { .. })));
    let mut unsigned = good();
    unsigned.checkpoint = Signer::new("example.com/log", &[6; 32])
        .map(|signer| {
            let mut note = log.checkpoint.to_note().unwrap();
            note.add(signer.sign(&note));
            note.to_string().into_bytes()
        })
        .unwrap();
    assert_eq!(
        log.found(unsigned),
        Some(PackProblem::Signature("the checkpoint"))
    );
    let stranger = Signer::new("example.com/log", &[6; 32]).unwrap();
    let report = log.verify(&good().pack(&stranger));
    assert_eq!(report.failure, Some(PackProblem::Signature("the pack")));
}

#[test]
fn disclosed_values_must_be_those_that_were_committed_to() {
    let mut random = Random::seeded(3);
    let log = Log::new();
    let mut parts = log.parts("acting");
    let event = Line::read(&parts.lines[0]).unwrap().hash;
    let disclosed = DisclosedOpening {
        event,
        place: "/args".to_owned(),
        opening: Opening {
            salt: Salt::from_bytes([u8::try_from(random.below(256)).unwrap(); 16]),
            value: Json::from("made up"),
        },
    };
    parts.openings = disclosed.to_line().unwrap();
    parts.openings.push(b'\n');
    let expected = PackProblem::Commitment {
        event,
        place: "/args".to_owned(),
    };
    assert_eq!(log.found(parts), Some(expected));
}

/// Changes anything anywhere. `COUNTERSIGN_PACK_MUTATIONS` is the number of changes; ten thousand and
/// more are the full campaign.
#[test]
fn every_mutation_of_a_pack_is_found() {
    let log = Log::new();
    let mut parts = log.parts("acting");
    parts.told = told(&parts.lines);
    let pack = parts.pack(&log.signer);
    assert_eq!(log.verify(&pack).failure, None);
    let other = log.parts("s").pack(&log.signer);
    let rounds = std::env::var("COUNTERSIGN_PACK_MUTATIONS");
    let rounds: u64 = rounds.map_or(2_000, |rounds| rounds.parse().unwrap());
    let mut random = Random::seeded(99);
    for round in 0..rounds {
        let changed = mutated(&pack, &other, &mut random);
        if changed == pack {
            continue;
        }
        let report = log.verify(&changed);
        assert!(report.failure.is_some(), "round {round} was not found");
        let _ = html("x", &report);
    }
}

fn mutated(pack: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut changed = pack.to_vec();
    let at = random.below(pack.len());
    match random.below(8) {
        0 | 1 => changed[at] ^= 1 << random.below(8),
        2 => changed[at] = u8::try_from(random.below(256)).unwrap(),
        3 => changed.truncate(at),
        4 => {
            let from = random.below(pack.len());
            let length = random.below(600).min(pack.len() - from.max(at));
            changed.copy_within(from..from + length, at);
        }
        5 => {
            let length = random.below(600).min(pack.len() - at);
            changed.drain(at..at + length);
        }
        6 => {
            let from = random.below(other.len().min(pack.len()));
            let length = random
                .below(2000)
                .min(other.len() - from)
                .min(pack.len() - at);
            changed.splice(at..at + length, other[from..from + length].iter().copied());
        }
        _ => swap_members(&mut changed, other, random),
    }
    changed
}

/// Exchanges whole members, with proper headers.
fn swap_members(pack: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let limits = Limits::default();
    let owned = |file: &[u8]| -> Vec<(String, Vec<u8>)> {
        let members = archive::read(file, &limits).unwrap();
        let own = |member: &archive::Member<'_>| (member.name.to_owned(), member.content.to_vec());
        members.iter().map(own).collect()
    };
    let (mut members, others) = (owned(pack), owned(other));
    let (first, second) = (random.below(members.len()), random.below(members.len()));
    match random.below(4) {
        0 => members.swap(first, second),
        1 => drop(members.remove(first)),
        2 if first < others.len() => members[first].1 = others[first].1.clone(),
        _ => members.push(("more.txt".to_owned(), b"more".to_vec())),
    }
    *pack = archive::write(&members).unwrap();
}

#[test]
fn bombs_and_tricks_are_refused_by_name() {
    let log = Log::new();
    let pack = log.parts("acting").pack(&log.signer);
    let small = Limits {
        max_bytes: 1000,
        max_members: 3,
    };
    let name = |file: &[u8], limits: &Limits| {
        let report = verify_pack(file, &log.trust(), limits);
        report.failure.map(|problem| problem.name())
    };
    assert_eq!(name(&pack, &small), Some("limit"));
    let few = Limits {
        max_members: 3,
        ..Limits::default()
    };
    assert_eq!(name(&pack, &few), Some("limit"));
    for nothing in [&b""[..], b"x", &[0; 1024], &[0; 512], &[b'a'; 4096]] {
        assert!(name(nothing, &Limits::default()).is_some());
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let members = [(member::STATEMENT.to_owned(), deep.into_bytes())];
    let bomb = archive::write(&members).unwrap();
    assert_eq!(name(&bomb, &Limits::default()), Some("statement"));
}

/// One call that ran, one that was denied, one that ran with other bytes than were allowed.
const ACTS: [(&str, &str); 11] = [
    (
        "TOOL_CALL_PROPOSED",
        r#"{"call_id":"c1","tool_name":"mail.send"}"#,
    ),
    (
        "POLICY_DECISION",
        r#"{"call_id":"c1","verdict":"allow","policy_ref":"rule 7","policy_digest":"sha256:7b851671c807269f0751c4786cc920fadbadcd61927ee0ba7669a74ddb0edabd"}"#,
    ),
    (
        "TOOL_CALL_ALLOWED",
        r#"{"call_id":"c1","action_digest":"sha256:aa"}"#,
    ),
    (
        "TOOL_CALL_EXECUTED",
        r#"{"call_id":"c1","action_digest":"sha256:aa"}"#,
    ),
    ("TOOL_RESULT", r#"{"call_id":"c1","is_error":false}"#),
    (
        "TOOL_CALL_PROPOSED",
        r#"{"call_id":"c2","tool_name":"<script>"}"#,
    ),
    (
        "TOOL_CALL_DENIED",
        r#"{"call_id":"c2","reason_code":"POLICY"}"#,
    ),
    (
        "TOOL_CALL_PROPOSED",
        r#"{"call_id":"c3","tool_name":"shell"}"#,
    ),
    (
        "TOOL_CALL_ALLOWED",
        r#"{"call_id":"c3","action_digest":"sha256:aa"}"#,
    ),
    (
        "TOOL_CALL_EXECUTED",
        r#"{"call_id":"c3","action_digest":"sha256:bb"}"#,
    ),
    ("TERMINATION", "{}"),
];
