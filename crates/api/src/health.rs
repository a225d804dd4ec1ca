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

/// When it was tried last whether the log takes something, and whether it did. Anybody may ask, and the disk is
/// not theirs.
#[derive(Default)]
pub(crate) struct Rehearsals {
    trying: Mutex<()>,
    last: Mutex<Option<(Instant, bool)>>,
}

impl Rehearsals {
    /// What is known, if nobody has to try again.
    fn known(&self) -> Option<bool> {
        let last = *lock(&self.last);
        last.filter(|(at, _)| at.elapsed() < LASTING)
            .map(|(_, is_ready)| is_ready)
    }

    /// Whether an event could be recorded. One waits for the disk; who asks meanwhile hears what was known last.
    fn is_ready(&self, engine: &Engine) -> bool {
        let Ok(_one) = self.trying.try_lock() else {
            return lock(&self.last).is_some_and(|(_, is_ready)| is_ready);
        };
        if let Some(known) = self.known() {
            return known;
        }
        let is_ready = engine.store().rehearse().is_ok();
        *lock(&self.last) = Some((Instant::now(), is_ready));
        is_ready
    }
}

/// Events can be recorded.
pub(crate) async fn readyz(call: &Call) -> Reply {
    let api = Arc::clone(&call.api);
    let is_ready = match api.rehearsals.known() {
        Some(known) => Ok(known),
        None => {
            let try_it = move || api.rehearsals.is_ready(&api.engine);
            call.api.workers.run(try_it).await
        }
    };
    match is_ready {
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
