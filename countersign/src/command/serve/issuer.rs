//! The issuer whose tokens are taken beside our own.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use countersign_api::{Oidc, OidcSettings};

use super::Plan;
use crate::errors::Failure;
use crate::{input, output};

/// What is configured; nothing if there is no issuer.
pub(super) fn keys(plan: &Plan) -> Result<Option<Arc<Oidc>>, Failure> {
    let config = &plan.config;
    let text = |name: &str| config.text(name).map(str::to_owned);
    let Some(issuer) = text("oidc.issuer") else {
        // FAIL-CLOSED: half of what is needed does not mean "without".
        for name in ["oidc.audience", "oidc.jwks_file", "oidc.jwks_url"] {
            if config.text(name).is_some() {
                return Err(config.wrong(name, &"there is no `oidc.issuer`"));
            }
        }
        return Ok(None);
    };
    let audience = text("oidc.audience")
        .ok_or_else(|| config.wrong("oidc.issuer", &"there is no `oidc.audience`"))?;
    let settings = OidcSettings {
        issuer,
        audience,
        role_claim: text("oidc.role_claim").unwrap_or_default(),
        tenant_claim: text("oidc.tenant_claim").unwrap_or_default(),
    };
    match (text("oidc.jwks_file"), text("oidc.jwks_url")) {
        (Some(file), None) => {
            let jwks = input::file(&file, MAX_JWKS)?;
            let oidc = Oidc::new(settings, &jwks);
            let oidc = oidc.map_err(|error| config.wrong("oidc.jwks_file", &error))?;
            Ok(Some(Arc::new(oidc)))
        }
        (None, Some(address)) => {
            if !is_safe(&address) {
                let text = "expected an https address, or http on this machine";
                return Err(config.wrong("oidc.jwks_url", &text));
            }
            let wrong = |error: &dyn std::fmt::Display| config.wrong("oidc.jwks_url", error);
            let jwks = fetch(&address).map_err(|error| wrong(&error))?;
            let oidc = Oidc::new(settings, &jwks).map_err(|error| wrong(&error))?;
            let oidc = Arc::new(oidc);
            refresh(Arc::clone(&oidc), address);
            Ok(Some(oidc))
        }
        (None, None) => Err(config.wrong(
            "oidc.issuer",
            &"there is no `oidc.jwks_file` and no `oidc.jwks_url`",
        )),
        (Some(_), Some(_)) => Err(config.wrong(
            "oidc.jwks_url",
            &"`oidc.jwks_file` says where the keys are already",
        )),
    }
}

/// Looks again every ten minutes, as long as the daemon runs. Keys that cannot be had or used do not
/// take the place of those that are known.
fn refresh(oidc: Arc<Oidc>, address: String) {
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_secs(600));
            let read = fetch(&address).map_err(|error| error.to_string());
            let taken =
                read.and_then(|jwks| oidc.replace_keys(&jwks).map_err(|error| error.to_string()));
            if let Err(error) = taken {
                output::stderr(&format!(
                    "countersign: the keys of the issuer stay: {error}"
                ));
            }
        }
    });
}

fn fetch(address: &str) -> Result<Vec<u8>, ureq::Error> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(10)))
        .max_redirects(0)
        .build()
        .into();
    let mut answer = agent.get(address).call()?;
    let limit = MAX_JWKS as u64;
    answer.body_mut().with_config().limit(limit).read_to_vec()
}

fn is_safe(address: &str) -> bool {
    let is_local = |rest: &str| {
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| {
            let rest = rest.strip_prefix(host);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
        })
    };
    match address.split_once("://") {
        Some(("https", _)) => true,
        Some(("http", rest)) => is_local(rest),
        _ => false,
    }
}

const MAX_JWKS: usize = 1 << 20;
