//! Finds out who calls.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::http::header::{AUTHORIZATION, COOKIE, HeaderMap};
use countersign_canon::Hash;
use countersign_store::TokenRow;
use countersign_web::only;
use subtle::ConstantTimeEq as _;

use crate::problem::{Kind, Problem};
use crate::rate::{Buckets, Rate};
use crate::token::{digest, is_secret, parts, random};
use crate::{Caller, Oidc};

/// Finds out who calls, from tokens and cookies.
pub(crate) struct Doorkeeper {
    /// Everybody is let in as the operator.
    open: bool,
    /// Whose tokens are taken beside our own.
    oidc: Option<Arc<Oidc>>,
    tokens: RwLock<Tokens>,
    /// What a browser's cookie is called here.
    cookie: String,
    /// Codes that work once, by their hash.
    codes: Mutex<HashMap<[u8; 32], Code>>,
    /// Browsers that came in with a code, by the hash of their cookie.
    cookies: Mutex<HashMap<[u8; 32], Visit>>,
    failures: Buckets<IpAddr>,
}

struct Tokens {
    by_id: Arc<HashMap<String, TokenRow>>,
    loaded: Option<Instant>,
}

struct Code {
    caller: Caller,
    ends: Instant,
}

struct Visit {
    caller: Caller,
    /// The token that the browser came in with: the visit ends with it.
    token: Option<String>,
    ends: Instant,
}

/// What a request shows.
enum Shown<'a> {
    Nothing,
    Bearer(&'a str),
    Cookie(&'a str),
}

impl Doorkeeper {
    /// `house` is what tells this daemon from others on the same host: a browser keeps cookies by host,
    /// whatever the port is.
    pub(crate) fn new(open: bool, oidc: Option<Arc<Oidc>>, is_secure: bool, house: &[u8]) -> Self {
        let house = Hash::of(house).to_string();
        let house = house.get(..8).unwrap_or_default();
        Self {
            open,
            oidc,
            // SECURITY: no other host and no page without TLS can set a cookie of the first name.
            cookie: match is_secure {
                true => format!("{SECURE}countersign-{house}"),
                false => format!("countersign-{house}"),
            },
            tokens: RwLock::new(Tokens {
                by_id: Arc::default(),
                loaded: None,
            }),
            codes: Mutex::default(),
            cookies: Mutex::default(),
            failures: Buckets::new(Some(FAILURES)),
        }
    }

    /// Learns which tokens there are.
    pub(crate) fn learn(&self, rows: Vec<TokenRow>) {
        let by_id = rows.into_iter().map(|row| (row.id.clone(), row));
        let tokens = Tokens {
            by_id: Arc::new(by_id.collect()),
            loaded: Some(Instant::now()),
        };
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Whether asking again for tokens could help with this request. Who guesses does not make us ask.
    pub(crate) fn is_behind(&self, headers: &HeaderMap, peer: IpAddr) -> bool {
        let Ok(Shown::Bearer(text)) = shown(headers, &self.cookie) else {
            return false;
        };
        self.is_new(text, peer)
    }

    /// Whether asking again for tokens could help with this one.
    pub(crate) fn is_new(&self, text: &str, peer: IpAddr) -> bool {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let is_unknown = parts(text).is_some_and(|(id, _)| !tokens.by_id.contains_key(id));
        let is_stale = tokens.loaded.is_none_or(|at| at.elapsed() > STALE);
        (is_unknown || is_stale) && self.failures.is_open(&peer, Instant::now())
    }

    /// Who calls.
    ///
    /// FAIL-CLOSED: tokens that were not read for a while may have been taken back meanwhile.
    pub(crate) fn caller(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
        now_unix_ms: u64,
    ) -> Result<Caller, Problem> {
        if self.open {
            return Ok(Caller::nobody());
        }
        let now = Instant::now();
        let shown = shown(headers, &self.cookie)?;
        if matches!(shown, Shown::Nothing) {
            let text = "send `Authorization: Bearer TOKEN`";
            return Err(Problem::new(Kind::Unauthenticated, text));
        }
        let found = match shown {
            Shown::Nothing => None,
            Shown::Bearer(text) => self.bearer(text, now_unix_ms)?,
            Shown::Cookie(text) => self.visitor(text, now, now_unix_ms)?,
        };
        found.ok_or_else(|| self.wrong(peer, "the token is unknown, over or taken back"))
    }

    /// Whoever guesses is slowed down. Others at the same address are not: who has a token comes in.
    pub(crate) fn wrong(&self, peer: IpAddr, text: &str) -> Problem {
        match self.failures.take(peer, Instant::now()) {
            Ok(()) => Problem::new(Kind::Unauthenticated, text),
            Err(wait) => {
                let text = "too many wrong tokens came from this address";
                Problem::new(Kind::RateLimited, text).retry_after(wait)
            }
        }
    }

    /// A code that lets one browser in, once, as this caller.
    pub(crate) fn code(&self, caller: Caller) -> Option<String> {
        let code = random::<32>()?;
        let ends = Instant::now() + CODE_TIME;
        let mut codes = lock(&self.codes);
        codes.retain(|_, code| code.ends > Instant::now());
        if codes.len() >= MAX_CODES {
            return None;
        }
        codes.insert(digest(&code), Code { caller, ends });
        Some(code)
    }

    /// Takes a code; gives the cookie of the browser that brought it.
    pub(crate) fn enter(&self, code: &str, peer: IpAddr) -> Result<String, Problem> {
        let now = Instant::now();
        let found = lock(&self.codes).remove(&digest(code));
        let Some(code) = found.filter(|code| code.ends > now) else {
            return Err(self.wrong(peer, "the link was used already, or is too old"));
        };
        self.visit(code.caller, None, VISIT_TIME)
    }

    /// Takes a token; gives the cookie of the browser that brought it.
    pub(crate) fn trade(
        &self,
        token: &str,
        peer: IpAddr,
        now_unix_ms: u64,
    ) -> Result<String, Problem> {
        let caller = self.bearer(token, now_unix_ms)?;
        let caller =
            caller.ok_or_else(|| self.wrong(peer, "the token is unknown, over or taken back"))?;
        self.visit(caller, Some(token.to_owned()), VISIT_TIME)
    }

    /// Lets a browser in for so long whose person the issuer has named; gives its cookie.
    pub(crate) fn welcome(&self, caller: Caller, time: Duration) -> Result<String, Problem> {
        self.visit(caller, None, time.min(VISIT_TIME))
    }

    /// Lets a browser go.
    pub(crate) fn leave(&self, headers: &HeaderMap) {
        if let Ok(Shown::Cookie(text)) = shown(headers, &self.cookie) {
            lock(&self.cookies).remove(&digest(text));
        }
    }

    /// The cookie as a browser is told to keep it; without a value it is to be forgotten.
    pub(crate) fn set_cookie(&self, value: Option<&str>) -> String {
        // SECURITY: no page of another origin makes the browser send it, and no script reads it.
        self.cookie_text("", "Strict", value, VISIT_TIME)
    }

    /// The same for the cookie of a browser that is on its way to the issuer and back. It has to be sent
    /// when the issuer's page leads here.
    pub(crate) fn set_errand(&self, value: Option<&str>) -> String {
        self.cookie_text(ERRAND, "Lax", value, ERRAND_TIME)
    }

    /// The errand that a browser is back from.
    pub(crate) fn errand<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        cookie(headers, &format!("{}{ERRAND}", self.cookie))
    }

    fn cookie_text(&self, kind: &str, site: &str, value: Option<&str>, time: Duration) -> String {
        let secure = match self.cookie.starts_with(SECURE) {
            true => "; Secure",
            false => "",
        };
        let seconds = value.map_or(0, |_| time.as_secs());
        let (name, value) = (&self.cookie, value.unwrap_or_default());
        format!(
            "{name}{kind}={value}; Path=/; HttpOnly; SameSite={site}; Max-Age={seconds}{secure}"
        )
    }

    fn visit(
        &self,
        caller: Caller,
        token: Option<String>,
        time: Duration,
    ) -> Result<String, Problem> {
        let now = Instant::now();
        let no_randomness = || Problem::new(Kind::Overloaded, "the system gave no randomness");
        let cookie = random::<32>().ok_or_else(no_randomness)?;
        let csrf = random::<16>().ok_or_else(no_randomness)?;
        let caller = Caller {
            csrf: Some(csrf),
            ..caller
        };
        let mut cookies = lock(&self.cookies);
        cookies.retain(|_, visit| visit.ends > now);
        if cookies.len() >= MAX_VISITS {
            return Err(Problem::new(Kind::Overloaded, "too many browsers are here"));
        }
        let ends = now + time;
        let visit = Visit {
            caller,
            token,
            ends,
        };
        cookies.insert(digest(&cookie), visit);
        Ok(cookie)
    }

    fn bearer(&self, text: &str, now_unix_ms: u64) -> Result<Option<Caller>, Problem> {
        if let (Some(oidc), true) = (&self.oidc, text.contains('.')) {
            return Ok(oidc.caller(text, now_unix_ms).ok());
        }
        let (tokens, loaded) = {
            let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
            (Arc::clone(&tokens.by_id), tokens.loaded)
        };
        if loaded.is_none_or(|at| at.elapsed() > STALE) {
            return Err(Problem::new(Kind::Busy, "the tokens cannot be read"));
        }
        let Some((id, secret)) = parts(text) else {
            return Ok(None);
        };
        // Who guesses an id learns nothing from the time that it takes.
        let row = tokens.get(id);
        let kept = row.map_or([0; 32], |row| row.secret_sha256);
        let is_right = is_secret(secret, &kept);
        let row = row.filter(|row| {
            let is_over = row.expires_unix_ms.is_some_and(|end| end <= now_unix_ms);
            is_right && !is_over && row.revoked_unix_ms.is_none()
        });
        Ok(row.and_then(Caller::of))
    }

    fn visitor(
        &self,
        cookie: &str,
        now: Instant,
        now_unix_ms: u64,
    ) -> Result<Option<Caller>, Problem> {
        let found = lock(&self.cookies).get(&digest(cookie)).map(|visit| {
            let caller = (visit.ends > now).then(|| visit.caller.clone());
            (caller, visit.token.clone())
        });
        match found {
            Some((Some(caller), Some(token))) => {
                let still = self.bearer(&token, now_unix_ms)?;
                Ok(still.map(|_| caller))
            }
            Some((caller, _)) => Ok(caller),
            None => Ok(None),
        }
    }
}

/// A page that uses a browser's cookie must show that it is ours: a foreign page cannot read the token
/// that it has to send along.
pub(crate) fn check_csrf(caller: &Caller, headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(CSRF).map_or(&b""[..], |value| value.as_bytes());
    check_token(caller, given)
}

/// The same, of a token that came in a form.
pub(crate) fn check_token(caller: &Caller, given: &[u8]) -> Result<(), Problem> {
    let Some(expected) = &caller.csrf else {
        return Ok(());
    };
    match bool::from(given.ct_eq(expected.as_bytes())) {
        true => Ok(()),
        false => {
            let text = "send the `csrf_token` of /v1/me in the header `countersign-csrf`";
            Err(Problem::new(Kind::Csrf, text))
        }
    }
}

/// A form must come from a page of this very place, as far as the browser says where it comes from.
pub(crate) fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let foreign = || Problem::new(Kind::Csrf, "the form is not of this place");
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return Err(foreign());
    }
    match (text("origin"), text("host")) {
        (None, _) => Ok(()),
        (Some(origin), Some(host)) => {
            let named = origin.split_once("://").map(|(_, authority)| authority);
            match named.is_some_and(|named| named.eq_ignore_ascii_case(host)) {
                true => Ok(()),
                false => Err(foreign()),
            }
        }
        (Some(_), None) => Err(foreign()),
    }
}

fn shown<'h>(headers: &'h HeaderMap, cookie: &str) -> Result<Shown<'h>, Problem> {
    let twice = |_| Problem::new(Kind::Unauthenticated, "the header cannot be read");
    if let Some(value) = only(headers, &AUTHORIZATION).map_err(twice)? {
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        return match scheme.eq_ignore_ascii_case("bearer") {
            true => Ok(Shown::Bearer(token.trim())),
            false => Err(Problem::new(
                Kind::Unauthenticated,
                "only bearer tokens are known",
            )),
        };
    }
    Ok(self::cookie(headers, cookie).map_or(Shown::Nothing, Shown::Cookie))
}

/// The cookie of this name, if there is exactly one.
fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(COOKIE).iter();
    let mut ours = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='));
    match (ours.next(), ours.next()) {
        (Some(cookie), None) => Some(cookie),
        _ => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) const CSRF: &str = "countersign-csrf";
/// What browsers keep only if it came by TLS, for one host and every path.
const SECURE: &str = "__Host-";
/// Stands behind the name of the cookie of those who are at the issuer.
const ERRAND: &str = "-errand";
/// How long somebody may take to sign in at the issuer.
pub(crate) const ERRAND_TIME: Duration = Duration::from_secs(600);
/// How long a browser stays in.
const VISIT_TIME: Duration = Duration::from_secs(12 * 3600);
const CODE_TIME: Duration = Duration::from_secs(600);
const MAX_CODES: usize = 64;
const MAX_VISITS: usize = 1024;
/// How old what is known of tokens may be.
const STALE: Duration = Duration::from_secs(10);
/// Wrong tokens of one address: thirty, then one in two seconds.
const FAILURES: Rate = Rate {
    per_second: 0.5,
    burst: 30.0,
};
