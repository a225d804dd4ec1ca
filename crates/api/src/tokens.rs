//! Tokens, for operators who are not at the machine.

use std::sync::Arc;

use axum::http::StatusCode;
use countersign_canon::Json;
use countersign_event::{SessionId, TenantId};
use countersign_store::TokenRow;

use crate::api::now_unix_ms;
use crate::call::Call;
use crate::caller::Caller;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;
use crate::token::NewToken;

pub(crate) async fn list(call: &Call) -> Result<Reply, Problem> {
    let engine = Arc::clone(&call.api.engine);
    let rows = call
        .api
        .workers
        .run(move || engine.store().reader().tokens())
        .await??;
    let tokens = rows
        .iter()
        .filter(|row| sees(&call.caller, row))
        .map(json)
        .collect();
    Ok(Reply::ok(&Json::object([("tokens", Json::Array(tokens))])).tagged(call.if_none_match()))
}

pub(crate) async fn create(call: &Call) -> Result<Reply, Problem> {
    let mut members = call.object()?;
    let mut text = |name: &str| members.remove(name).and_then(Json::into_string);
    let (name, role) = (
        text("name").unwrap_or_default(),
        text("role").unwrap_or_default(),
    );
    let (tenant, session) = (text("tenant_id"), text("session_id"));
    let tenant = match (tenant, &call.caller.tenant) {
        (None, None) => None,
        (named, _) => Some(call.caller.tenant(named.as_deref())?),
    };
    let wrong = |error: &dyn ToString| Problem::new(Kind::Member, error.to_string());
    let token = NewToken {
        name,
        role: role.parse().map_err(|error| wrong(&error))?,
        tenant,
        session: session.map(SessionId::new).transpose()?,
        expires_unix_ms: members
            .remove("expires_unix_ms")
            .and_then(|time| time.as_u64()),
    };
    let (secret, row) = token.issue(now_unix_ms()?).map_err(|error| wrong(&error))?;
    let mut made = json(&row);
    if let Some(members) = made.as_object_mut() {
        members.insert("token".to_owned(), Json::from(secret));
    }
    let engine = Arc::clone(&call.api.engine);
    let kept = call
        .api
        .workers
        .run(move || engine.store().add_token(row))
        .await??;
    match kept {
        true => Ok(Reply::json(StatusCode::CREATED, &made)),
        false => Err(Problem::new(Kind::Overloaded, "there are too many tokens")),
    }
}

pub(crate) async fn revoke(call: &Call) -> Result<Reply, Problem> {
    let id = call.parameters.path("token").to_owned();
    let (engine, caller, now) = (
        Arc::clone(&call.api.engine),
        call.caller.clone(),
        now_unix_ms()?,
    );
    let revoke = move || {
        let store = engine.store();
        let rows = store.reader().tokens()?;
        let is_there = rows.iter().any(|row| row.id == id && sees(&caller, row));
        match is_there && store.revoke_token(&id, now)? {
            true => Ok(id),
            false => Err(Problem::new(
                Kind::NotFound,
                "no such token that is not revoked",
            )),
        }
    };
    let id = call.api.workers.run(revoke).await??;
    call.api.learn_tokens().await?;
    Ok(Reply::ok(&Json::object([("revoked", Json::from(id))])))
}

fn sees(caller: &Caller, row: &TokenRow) -> bool {
    caller.tenant.is_none() || caller.tenant == row.tenant
}

fn json(row: &TokenRow) -> Json {
    Json::object([
        ("id", Json::from(row.id.as_str())),
        ("name", Json::from(row.name.as_str())),
        ("role", Json::from(row.role.as_str())),
        (
            "tenant_id",
            Json::from(row.tenant.as_ref().map(TenantId::as_str)),
        ),
        (
            "session_id",
            Json::from(row.session.as_ref().map(SessionId::as_str)),
        ),
        ("created_unix_ms", Json::from(row.created_unix_ms)),
        ("expires_unix_ms", Json::from(row.expires_unix_ms)),
        ("revoked_unix_ms", Json::from(row.revoked_unix_ms)),
    ])
}
