//! The issuer whose tokens are taken beside our own, and where people sign in.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_api::{Issuer, Oidc, OidcSettings, SignIn};
use countersign_canon::{Json, Limits, Numbers};
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::Plan;
use crate::errors::Failure;
use crate::{input, output};

/// What is configured; nothing if there is no issuer.
pub(super) fn keys(plan: &Plan) -> Result<Option<Arc<Oidc>>, Failure> {
    let config = &plan.config;
    let text = |name: &str| config.text(name).map(str::to_owned);
    let Some(issuer) = text("oidc.issuer") else {
        // FAIL-CLOSED: half of what is needed does not mean "without".
        for name in NEED_ISSUER {
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
            let jwks = input::file(&file, MAX_BYTES)?;
            let oidc = Oidc::new(settings, &jwks);
            let oidc = oidc.map_err(|error| config.wrong("oidc.jwks_file", &error))?;
            Ok(Some(Arc::new(oidc)))
        }
        (None, Some(address)) => {
            if !is_safe(&address) {
                return Err(config.wrong("oidc.jwks_url", &SAFE));
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

/// How people sign in; nothing if this daemon is no client of the issuer.
pub(super) fn sign_in(plan: &Plan, oidc: Option<&Arc<Oidc>>) -> Result<Option<SignIn>, Failure> {
    let config = &plan.config;
    let text = |name: &str| config.text(name).map(str::to_owned);
    let (Some(oidc), Some(client_id)) = (oidc, text("oidc.client_id")) else {
        for name in NEED_CLIENT {
            if config.text(name).is_some() {
                return Err(config.wrong(name, &"there is no `oidc.client_id`"));
            }
        }
        return Ok(None);
    };
    let issuer = text("oidc.issuer").unwrap_or_default();
    for (name, address) in [
        ("oidc.issuer", Some(issuer.clone())),
        ("oidc.public_url", text("oidc.public_url")),
    ] {
        if address.is_some_and(|address| !is_safe(&address)) {
            return Err(config.wrong(name, &SAFE));
        }
    }
    let scope = text("oidc.scope").unwrap_or_default();
    if !scope.split(' ').any(|word| word == "openid") {
        return Err(config.wrong("oidc.scope", &"`openid` is not in it"));
    }
    let secret = match text("oidc.client_secret_file") {
        None => None,
        Some(file) => {
            let secret = String::from_utf8(input::file(&file, MAX_BYTES)?);
            let secret = secret.map_err(|error| config.wrong("oidc.client_secret_file", &error))?;
            match secret.trim() {
                "" => return Err(config.wrong("oidc.client_secret_file", &"it is empty")),
                secret => Some(secret.to_owned()),
            }
        }
    };
    let minutes = config.count("oidc.visit_minutes").max(1);
    Ok(Some(SignIn {
        scope,
        public_url: text("oidc.public_url"),
        visit: Duration::from_secs(minutes.saturating_mul(60)),
        issuer: Arc::new(Remote {
            issuer,
            client_id: client_id.clone(),
            secret,
            jwks_url: text("oidc.jwks_url"),
            oidc: Arc::clone(oidc),
            described: Mutex::default(),
        }),
        client_id,
    }))
}

/// The issuer, over the network.
struct Remote {
    issuer: String,
    client_id: String,
    secret: Option<String>,
    jwks_url: Option<String>,
    oidc: Arc<Oidc>,
    /// What it has said of itself, and when.
    described: Mutex<Option<(Instant, Described)>>,
}

/// What an issuer says of itself, as far as it is needed.
#[derive(Clone)]
struct Described {
    authorize: String,
    token: String,
    /// Whether the secret stands in the form, because nothing else is taken.
    secret_in_form: bool,
}

impl Remote {
    fn described(&self) -> Result<Described, String> {
        let mut kept = self
            .described
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((at, described)) = &*kept
            && at.elapsed() < Duration::from_secs(600)
        {
            return Ok(described.clone());
        }
        let place = self.issuer.trim_end_matches('/');
        let address = format!("{place}/.well-known/openid-configuration");
        let text = fetch(&address).map_err(|error| error.to_string())?;
        let described = describe(&text, &self.issuer)?;
        *kept = Some((Instant::now(), described.clone()));
        Ok(described)
    }
}

impl Issuer for Remote {
    fn authorize_url(&self) -> Result<String, String> {
        Ok(self.described()?.authorize)
    }

    fn redeem(&self, form: &str) -> Result<Vec<u8>, String> {
        let described = self.described()?;
        let mut form = form.to_owned();
        let mut request = agent(false)
            .post(&described.token)
            .header("accept", "application/json")
            .header("content-type", "application/x-www-form-urlencoded");
        if let Some(secret) = &self.secret {
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let secret = encoded(secret);
            match described.secret_in_form {
                true => form.push_str(&format!("&client_secret={secret}")),
                false => {
                    let both = format!("{}:{secret}", encoded(&self.client_id));
                    request = request
                        .header("authorization", format!("Basic {}", STANDARD.encode(&both)));
                }
            }
        }
        let told = |error: ureq::Error| format!("the issuer did not answer: {error}");
        let mut answer = request.send(form).map_err(told)?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(MAX_BYTES as u64);
        let body = body.read_to_vec().map_err(told)?;
        match status.is_success() {
            true => Ok(body),
            false => {
                let json = Json::admit(&body, &DOCUMENT).ok();
                let error = json.as_ref().and_then(|json| json.get("error")?.as_str());
                let error = error
                    .filter(|error| error.len() <= 100)
                    .unwrap_or("no reason");
                Err(format!("the issuer answered {status}: {error}"))
            }
        }
    }

    fn renew_keys(&self) -> Result<(), String> {
        let address = self
            .jwks_url
            .as_deref()
            .ok_or("no key of the issuer fits, and its keys are in a file")?;
        let jwks = fetch(address).map_err(|error| error.to_string())?;
        let taken = self.oidc.replace_keys(&jwks);
        taken.map_err(|error| error.to_string())
    }
}

/// SECURITY: a description that names another issuer, or leads to where others can listen, is not
/// followed.
fn describe(text: &[u8], issuer: &str) -> Result<Described, String> {
    let json = Json::admit(text, &DOCUMENT)
        .map_err(|_| "the issuer's description cannot be read".to_owned())?;
    let word = |name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
    if word("issuer").as_deref() != Some(issuer) {
        return Err("the description is of another issuer".to_owned());
    }
    let place = |name: &str| match word(name) {
        Some(address) if is_safe(&address) => Ok(address),
        Some(_) => Err(format!("`{name}` of the issuer: {SAFE}")),
        None => Err(format!("the issuer's description has no `{name}`")),
    };
    let ways = json.get("token_endpoint_auth_methods_supported");
    let ways = ways.and_then(Json::as_array);
    let takes = |way: &str| {
        let ways = ways.unwrap_or_default();
        ways.iter().any(|known| known.as_str() == Some(way))
    };
    Ok(Described {
        authorize: place("authorization_endpoint")?,
        token: place("token_endpoint")?,
        secret_in_form: takes("client_secret_post") && !takes("client_secret_basic"),
    })
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
    let mut answer = agent(true).get(address).call()?;
    let limit = MAX_BYTES as u64;
    answer.body_mut().with_config().limit(limit).read_to_vec()
}

fn agent(status_is_error: bool) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(10)))
        .max_redirects(0)
        .http_status_as_error(status_is_error)
        .build()
        .into()
}

fn is_safe(address: &str) -> bool {
    let Ok(address) = Url::parse(address) else {
        return false;
    };
    let is_plain = address.username().is_empty() && address.password().is_none();
    match (address.scheme(), address.host_str()) {
        ("https", Some(_)) => is_plain,
        ("http", Some(host)) => is_plain && matches!(host, "127.0.0.1" | "localhost" | "[::1]"),
        _ => false,
    }
}

const NEED_ISSUER: [&str; 6] = [
    "oidc.audience",
    "oidc.jwks_file",
    "oidc.jwks_url",
    "oidc.client_id",
    "oidc.client_secret_file",
    "oidc.public_url",
];
const NEED_CLIENT: [&str; 2] = ["oidc.client_secret_file", "oidc.public_url"];
const SAFE: &str = "expected an https address, or http on this machine";
const MAX_BYTES: usize = 1 << 20;

const DOCUMENT: Limits = Limits {
    max_bytes: MAX_BYTES,
    max_depth: 32,
    numbers: Numbers::Double,
};
