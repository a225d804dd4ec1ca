//! Logs to verify: sessions whose events are the same in every run.

use countersign_canon::{Digest, Hash, Json, Limits};
use countersign_event::payload::Split;
use countersign_event::{Body, EventType, Head, Opening, Payload, Salt, Scope, Seal, Sealed};
use countersign_verify::{Expectation, Openings, Report, Selection, verify_stream, verify_text};

use crate::random::Random;

/// One chain.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) scope: Scope,
    pub(crate) events: Vec<Event>,
    head: Head,
}

/// An event as it is stored.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) line: Vec<u8>,
    #[cfg_attr(
        not(feature = "database"),
        allow(dead_code, reason = "an export has none")
    )]
    pub(crate) ciphertext: Option<Vec<u8>>,
}

impl Session {
    pub(crate) fn new(tenant: &str, session: &str) -> Self {
        let scope = Scope::new(tenant, session).unwrap();
        Self {
            scope,
            events: Vec::new(),
            head: Head::GENESIS,
        }
    }

    /// A session that has lived for a while: calls of every outcome, one after the other.
    pub(crate) fn lived(tenant: &str, session: &str, random: &mut Random, chapters: usize) -> Self {
        let mut lived = Self::new(tenant, session);
        for number in 0..chapters {
            for (event_type, payload) in chapter(random, number) {
                lived.record(event_type, &payload, random);
            }
        }
        lived
    }

    /// Appends an event; what is not public is put away by [`Hidden`].
    pub(crate) fn record(&mut self, event_type: &str, payload: &str, random: &mut Random) {
        let event_type = event_type.parse().unwrap();
        let payload = Json::admit(payload.as_bytes(), &Limits::event()).unwrap();
        let payload = Payload::admit(event_type, payload).unwrap();
        let (body, ciphertext) = Hidden::seal(payload, &self.scope, random);
        self.append(event_type, &body, ciphertext);
    }

    pub(crate) fn append(
        &mut self,
        event_type: EventType,
        body: &Body,
        ciphertext: Option<Vec<u8>>,
    ) {
        let ts_unix_ms = 1_760_000_000_000 + 17 * self.head.count();
        let sealed = Sealed::seal(event_type, ts_unix_ms, body, &self.scope, &self.head).unwrap();
        self.head = sealed.head();
        self.events.push(Event {
            line: sealed.line().to_vec(),
            ciphertext,
        });
    }

    pub(crate) fn head(&self) -> Hash {
        self.head.hash().unwrap()
    }

    pub(crate) fn count(&self) -> u64 {
        self.head.count()
    }

    pub(crate) fn lines(&self) -> Vec<Vec<u8>> {
        self.events.iter().map(|event| event.line.clone()).collect()
    }

    pub(crate) fn selection(&self) -> Selection {
        Selection {
            tenant_id: Some(self.scope.tenant.as_str().to_owned()),
            session_id: Some(self.scope.session.as_str().to_owned()),
        }
    }

    /// What somebody knows who has kept the head.
    pub(crate) fn expectation(&self) -> Expectation {
        Expectation {
            head: Some(self.head()),
            count: Some(self.count()),
            ..Expectation::default()
        }
    }
}

/// Six sessions, a few hundred events; ids that are easily confused.
pub(crate) fn sessions() -> Vec<Session> {
    let names = [
        ("acme", "s"),
        ("acme", "s/1"),
        ("acme/s", "1"),
        ("é\u{1}", "😀"),
        ("acme", "S"),
        ("s", "acme"),
    ];
    let mut random = Random::seeded(1);
    names
        .map(|(tenant, session)| Session::lived(tenant, session, &mut random, 10))
        .into()
}

/// The events of several sessions in one order that keeps each session's own, with the number of
/// the session.
pub(crate) fn interleaved(sessions: &[Session], random: &mut Random) -> Vec<(usize, Event)> {
    let mut rest: Vec<_> = sessions
        .iter()
        .map(|session| session.events.iter())
        .collect();
    let total = sessions.iter().map(|session| session.events.len()).sum();
    let mut events = Vec::with_capacity(total);
    while events.len() < total {
        let owner = random.below(rest.len());
        events.extend(rest[owner].next().map(|event| (owner, event.clone())));
    }
    events
}

/// An export: one event a line.
pub(crate) fn export(lines: &[Vec<u8>]) -> Vec<u8> {
    let mut export = Vec::new();
    for line in lines {
        export.extend_from_slice(line);
        export.push(b'\n');
    }
    export
}

/// Verifies an export with nothing known about it.
pub(crate) fn verify(export: &[u8]) -> Report {
    verify_with(export, &Selection::default(), &Expectation::default())
}

pub(crate) fn verify_with(
    export: &[u8],
    selection: &Selection,
    expectation: &Expectation,
) -> Report {
    let report = verify_stream(export, selection, expectation, &mut |_| {}).unwrap();
    // Read or in memory, a log is the same log.
    let in_memory = verify_text(export, selection, expectation, &mut |_| {});
    assert_eq!(in_memory, report);
    report
}

/// Stands in for encryption, so that the same events have the same bytes in every run. Tells
/// sessions apart as a real cipher does.
pub(crate) struct Hidden;

impl Hidden {
    pub(crate) fn seal(
        payload: Payload,
        scope: &Scope,
        random: &mut Random,
    ) -> (Body, Option<Vec<u8>>) {
        let Split { public, sealed } = payload.split();
        if sealed.is_empty() {
            return (Body::new(public, None).unwrap(), None);
        }
        let openings = sealed.into_iter().map(|(place, value)| {
            let salt = (u128::from(random.next()) << 64 | u128::from(random.next())).to_be_bytes();
            (
                place.to_owned(),
                Opening {
                    salt: Salt::from_bytes(salt),
                    value,
                },
            )
        });
        let openings: Openings = openings.collect();
        let ciphertext = Self::close(&openings, scope);
        let commitments = openings
            .iter()
            .map(|(place, opening)| (place.clone(), opening.commitment().unwrap()));
        let seal = Seal {
            ciphertext: Digest::of(&ciphertext),
            commitments: commitments.collect(),
        };
        (Body::new(public, Some(seal)).unwrap(), Some(ciphertext))
    }

    pub(crate) fn close(openings: &Openings, scope: &Scope) -> Vec<u8> {
        let members = openings.iter().map(|(place, opening)| {
            let salt = opening
                .salt
                .as_bytes()
                .iter()
                .map(|byte| Json::from(u32::from(*byte)))
                .collect();
            (
                place.clone(),
                Json::Array(vec![Json::Array(salt), opening.value.clone()]),
            )
        });
        let mut ciphertext = key(scope).as_bytes()[..8].to_vec();
        ciphertext.extend(
            Json::object(members)
                .to_jcs()
                .unwrap()
                .iter()
                .map(|byte| byte ^ 0x5a),
        );
        ciphertext
    }
}

pub(crate) fn key(scope: &Scope) -> Hash {
    Hash::of_parts(&[
        scope.tenant.as_str().as_bytes(),
        b"|",
        scope.session.as_str().as_bytes(),
    ])
}

/// Some events that belong together, in an order that the rules allow.
fn chapter(random: &mut Random, number: usize) -> Vec<(&'static str, String)> {
    let call = |more: &str| format!("{{\"call_id\":\"c{number}\"{more}}}");
    let tool = random.pick(&["fs.read", "exec", "mcp.https.post", "db.write"]);
    let proposed = (
        "TOOL_CALL_PROPOSED",
        call(&format!(
            ",\"tool_name\":\"{tool}\",\"args\":{{\"path\":\"/tmp/{}\"}}",
            random.below(1000)
        )),
    );
    let decision = |verdict: &str| {
        (
            "POLICY_DECISION",
            call(&format!(
                ",\"verdict\":\"{verdict}\",\"reason_codes\":[\"R{number}\"],\"constraints\":{{\"timeout_ms\":30000}}"
            )),
        )
    };
    let ran = |random: &mut Random| {
        vec![
            ("TOOL_CALL_ALLOWED", call("")),
            (
                "TOOL_CALL_EXECUTED",
                call(&format!(",\"started_ms\":{}", random.below(1 << 40))),
            ),
            (
                "TOOL_RESULT",
                call(&format!(
                    ",\"is_error\":false,\"content\":\"é{}\",\"usage\":{{\"cpu\":0.5}}",
                    random.next()
                )),
            ),
        ]
    };
    match random.below(6) {
        0 => vec![
            (
                "MODEL_CALL_STARTED",
                call(",\"model_id\":\"large\",\"prompt\":\"Hi\""),
            ),
            (
                "MODEL_CALL_FINISHED",
                call(&format!(
                    ",\"total_tokens\":{},\"content\":[\"a\",null]",
                    random.below(9999)
                )),
            ),
        ],
        1 => [vec![proposed, decision("allow")], ran(random)].concat(),
        2 => vec![
            proposed,
            decision("deny"),
            ("TOOL_CALL_DENIED", call(",\"reason_code\":\"EXEC_DENY\"")),
        ],
        3 => {
            let approval = format!(",\"approval_id\":\"apr{number}\"");
            let held = vec![
                proposed,
                decision("escalate"),
                ("APPROVAL_REQUESTED", call(&approval)),
                (
                    "APPROVAL_DECIDED",
                    call(&format!("{approval},\"approved\":true,\"message\":\"ok\"")),
                ),
            ];
            [held, ran(random)].concat()
        }
        4 => vec![
            (
                "MEMORY_WRITE",
                "{\"memory_key\":\"k\",\"content\":\"new\"}".to_owned(),
            ),
            (
                "MEMORY_READ",
                "{\"memory_key\":\"k\",\"bytes_read\":3}".to_owned(),
            ),
            (
                "SANITIZED_TEXT",
                format!("{{\"key\":\"safe{number}\",\"text\":\"x\"}}"),
            ),
            (
                "CHECKPOINT_CREATED",
                format!("{{\"checkpoint_id\":\"chk{number}\"}}"),
            ),
        ],
        _ => vec![
            (
                "HANDOFF_REQUESTED",
                format!("{{\"context_id\":\"x{number}\",\"to_agent\":\"b\",\"context\":[1.5]}}"),
            ),
            (
                "HANDOFF_COMPLETED",
                format!("{{\"context_id\":\"x{number}\",\"success\":true}}"),
            ),
            ("ERROR_RAISED", "\"whole\"".to_owned()),
        ],
    }
}
