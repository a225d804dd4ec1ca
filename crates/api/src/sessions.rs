//! Sessions: which there are, how they stand, and whether they hold together.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use countersign_canon::{Json, Limits, Numbers};
use countersign_engine::Engine;
use countersign_event::Scope;
use countersign_session::Snapshot;
use countersign_store::{Cursor, Filter, SessionFilter, SessionSummary};
use countersign_verify::{Expectation, Report, Selection, verify_stream};

use crate::Role;
use crate::call::Call;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;

pub(crate) async fn list(call: &Call) -> Result<Reply, Problem> {
    let tenant = match (call.parameters.query("tenant_id"), &call.caller.tenant) {
        (None, None) => None,
        (named, _) => Some(call.caller.tenant(named)?),
    };
    let is_agent = call.caller.role == Role::Agent;
    let filter = SessionFilter {
        tenant,
        session: call.caller.session.clone(),
        owner: is_agent.then(|| call.caller.id.clone()),
    };
    let limit = call.parameters.limit()?;
    let cursor = call.parameters.query("cursor");
    let cursor = cursor.map(str::parse).transpose()?;
    let engine = Arc::clone(&call.api.engine);
    let read = move || {
        let reader = engine.store().reader();
        reader.session_page(&filter, cursor.as_ref(), limit)
    };
    let page = call.api.workers.run(read).await??;
    let sessions = page.sessions.iter().map(json).collect();
    Ok(Reply::ok(&Json::object([
        ("sessions", Json::Array(sessions)),
        ("next", Json::from(page.next.map(|next| next.to_string()))),
    ]))
    .tagged(call.if_none_match()))
}

pub(crate) async fn show(call: &Call) -> Result<Reply, Problem> {
    let scope = call.session().await?;
    let session = summary(call, &scope).await?;
    Ok(Reply::ok(&json(&session)).tagged(call.if_none_match()))
}

pub(crate) async fn snapshot(call: &Call) -> Result<Reply, Problem> {
    let scope = call.session().await?;
    let session = summary(call, &scope).await?;
    if session.erased_unix_ms.is_some() {
        return Err(Problem::new(
            Kind::Erased,
            "the content of this session was erased",
        ));
    }
    let engine = Arc::clone(&call.api.engine);
    let snapshot = move || snapshot_json(&scope, &engine);
    let json = call.api.workers.run(snapshot).await??;
    Ok(Reply::ok(&json).tagged(call.if_none_match()))
}

/// The state of a session that the next decision starts from. Blocks.
pub(crate) fn snapshot_json(scope: &Scope, engine: &Engine) -> Result<Json, Problem> {
    let (snapshot, head) = engine.snapshot(scope).map_err(Problem::from)?;
    let text = snapshot.to_bytes();
    let all = Json::admit(&text, &SNAPSHOT)?;
    Ok(Json::object([
        ("tenant_id", Json::from(scope.tenant.as_str())),
        ("session_id", Json::from(scope.session.as_str())),
        ("last_seq", Json::from(head.count().saturating_sub(1))),
        (
            "head",
            Json::from(head.hash().map(|hash| hash.to_string()).unwrap_or_default()),
        ),
        ("state", state(&snapshot, engine)),
        ("snapshot", all),
        ("snapshot_hash", Json::from(snapshot.hash().to_string())),
    ]))
}

pub(crate) async fn verify(call: &Call) -> Result<Reply, Problem> {
    let scope = call.session().await?;
    let _there = summary(call, &scope).await?;
    let engine = Arc::clone(&call.api.engine);
    let report = call
        .api
        .workers
        .run(move || recompute(&scope, &engine))
        .await??;
    Ok(Reply::ok(&verified(&report)))
}

async fn summary(call: &Call, scope: &Scope) -> Result<SessionSummary, Problem> {
    let (engine, wanted) = (Arc::clone(&call.api.engine), scope.clone());
    let read = move || engine.store().reader().session(&wanted);
    let found = call.api.workers.run(read).await??;
    found.ok_or_else(|| Problem::new(Kind::NoSession, "no such session"))
}

/// What policies see, under the manifest in force.
fn state(snapshot: &Snapshot, engine: &Engine) -> Json {
    engine.policies().view(snapshot).to_json()
}

pub(crate) fn json(session: &SessionSummary) -> Json {
    Json::object([
        ("tenant_id", Json::from(session.scope.tenant.as_str())),
        ("session_id", Json::from(session.scope.session.as_str())),
        ("events", Json::from(session.events)),
        ("head", Json::from(session.head.to_string())),
        ("first_unix_ms", Json::from(session.first_unix_ms)),
        ("last_unix_ms", Json::from(session.last_unix_ms)),
        ("terminated", Json::from(session.terminated)),
        ("erased_unix_ms", Json::from(session.erased_unix_ms)),
    ])
}

pub(crate) fn verified(report: &Report) -> Json {
    let words = |words: &[String]| {
        let words = words.iter().map(|word| Json::from(word.as_str()));
        Json::Array(words.collect())
    };
    let head = report.sessions.first().and_then(|session| session.head);
    let mut members = vec![
        ("valid", Json::from(report.is_good())),
        ("events", Json::from(report.events)),
        ("head", Json::from(head.map(|head| head.to_string()))),
        ("checked", words(&report.checked)),
        ("not_checked", words(&report.not_checked)),
    ];
    if let Some(failure) = &report.failure {
        let seq = failure.event.as_ref().map(|(_, _, seq)| *seq);
        members.push(("first_bad_seq", Json::from(seq.unwrap_or(report.events))));
        members.push(("error", Json::from(failure.problem.to_string())));
    }
    Json::object(members)
}

/// Hands the stored lines of the session to the verifier, which shares no code with the writer.
pub(crate) fn recompute(scope: &Scope, engine: &Engine) -> Result<Report, Problem> {
    let lines = BufReader::with_capacity(1 << 20, Lines::of(scope, engine));
    let selection = Selection::default();
    let report = verify_stream(lines, &selection, &Expectation::default(), &mut |_| {});
    report.map_err(|_| Problem::new(Kind::Database, "the log could not be read to its end"))
}

/// The lines of a session, page by page.
struct Lines<'e> {
    engine: &'e Engine,
    filter: Filter,
    next: Option<Cursor>,
    page: io::Cursor<Vec<u8>>,
    at_end: bool,
}

impl<'e> Lines<'e> {
    fn of(scope: &Scope, engine: &'e Engine) -> Self {
        Self {
            engine,
            filter: Filter::session(scope),
            next: None,
            page: io::Cursor::default(),
            at_end: false,
        }
    }
}

impl Read for Lines<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.page.read(out)?;
            if read > 0 || self.at_end {
                return Ok(read);
            }
            let reader = self.engine.store().reader();
            let page = reader.page(&self.filter, self.next.as_ref(), PAGE);
            let page = page.map_err(io::Error::other)?;
            let mut text = Vec::new();
            for event in &page.events {
                text.extend_from_slice(&event.line);
                text.push(b'\n');
            }
            self.page = io::Cursor::new(text);
            self.at_end = page.next.is_none();
            self.next = page.next;
        }
    }
}

const PAGE: usize = 500;

const SNAPSHOT: Limits = Limits {
    max_bytes: Snapshot::MAX_BYTES,
    max_depth: 8,
    numbers: Numbers::Double,
};
