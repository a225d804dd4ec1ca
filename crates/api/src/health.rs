//! Is anybody here, and who am I?

use std::sync::Arc;

use axum::http::StatusCode;
use countersign_canon::Json;

use crate::Permission;
use crate::call::Call;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;

pub(crate) fn healthz() -> Reply {
    Reply::ok(&Json::object([("status", Json::from("ok"))]))
}

/// The log can be read, and the writer takes commands.
pub(crate) async fn readyz(call: &Call) -> Reply {
    let engine = Arc::clone(&call.api.engine);
    let asked = call
        .api
        .workers
        .run(move || engine.store().reader().last_id());
    match asked.await {
        Ok(Ok(_)) => Reply::ok(&Json::object([("status", Json::from("ready"))])),
        _ => Reply::json(
            StatusCode::SERVICE_UNAVAILABLE,
            &Json::object([
                ("status", Json::from("not ready")),
                ("error", Json::from("the log cannot be read")),
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

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
