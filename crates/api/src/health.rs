//! Is anybody here, and who am I?

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use countersign_canon::Json;
use countersign_engine::Engine;

use crate::Permission;
use crate::api::lock;
use crate::call::Call;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;

pub(crate) fn healthz() -> Reply {
    Reply::ok(&Json::object([("status", Json::from("ok"))]))
}

/// When the log last took something. Anybody may ask, and the disk is not theirs.
#[derive(Default)]
pub(crate) struct Rehearsals(Mutex<Option<Instant>>);

impl Rehearsals {
    /// Whether an event could be recorded. Blocks; who asks meanwhile hears the same.
    fn is_ready(&self, engine: &Engine) -> bool {
        let mut last = lock(&self.0);
        if last.is_some_and(|last| last.elapsed() < LASTING) {
            return true;
        }
        *last = engine.store().rehearse().is_ok().then(Instant::now);
        last.is_some()
    }
}

/// Events can be recorded.
pub(crate) async fn readyz(call: &Call) -> Reply {
    let api = Arc::clone(&call.api);
    let asked = call
        .api
        .workers
        .run(move || api.rehearsals.is_ready(&api.engine));
    match asked.await {
        Ok(true) => Reply::ok(&Json::object([("status", Json::from("ready"))])),
        _ => Reply::json(
            StatusCode::SERVICE_UNAVAILABLE,
            &Json::object([
                ("status", Json::from("not ready")),
                ("error", Json::from("nothing can be recorded")),
            ]),
        ),
    }
}

/// What is counted, by whoever counts.
pub(crate) fn metrics(call: &Call) -> Result<Reply, Problem> {
    match &call.api.settings.metrics {
        Some(metrics) => Ok(Reply::bytes(StatusCode::OK, PROMETHEUS, metrics())),
        None => Err(Problem::new(Kind::NotFound, "nothing is counted here")),
    }
}

pub(crate) fn me(call: &Call) -> Reply {
    let caller = &call.caller;
    let permissions = Permission::ALL.iter().filter(|one| caller.role.may(**one));
    let permissions = permissions.map(|one| Json::from(one.as_str())).collect();
    let mut members = vec![
        ("id", Json::from(caller.id.as_str())),
        ("name", Json::from(caller.name.as_str())),
        ("role", Json::from(caller.role.as_str())),
        (
            "tenant_id",
            Json::from(caller.tenant.as_ref().map(|id| id.as_str())),
        ),
        (
            "session_id",
            Json::from(caller.session.as_ref().map(|id| id.as_str())),
        ),
        ("permissions", Json::Array(permissions)),
    ];
    if let Some(csrf) = &caller.csrf {
        members.push(("csrf_token", Json::from(csrf.as_str())));
    }
    Reply::ok(&Json::object(members))
}

const LASTING: Duration = Duration::from_secs(1);
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
