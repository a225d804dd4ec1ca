//! Signing in at the issuer: the authorization code flow of OpenID Connect, with PKCE.
//!
//! A browser is sent to the issuer with a question that nobody can guess (state, nonce, the hash of a
//! verifier) and a cookie that says which question is its own. It comes back with a code; whoever brings
//! both gets in, once. Everything that is kept here has an end, in time and in number.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_canon::{Json, Limits, Numbers};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use url::form_urlencoded::Serializer;

use crate::api::lock;
use crate::caller::Caller;
use crate::doorkeeper::ERRAND_TIME;
use crate::oidc::{Oidc, OidcError};
use crate::rate::{Buckets, Rate};
use crate::token::{digest, random};
use crate::work::Workers;

/// How people sign in at the issuer.
#[derive(Clone)]
pub struct SignIn {
    /// What this daemon is called there.
    pub client_id: String,
    /// What is asked for; `openid` is among it.
    pub scope: String,
    /// How browsers reach this daemon, if that is not how they called it.
    pub public_url: Option<String>,
    /// How long somebody stays in.
    pub visit: Duration,
    /// Asks the issuer.
    pub issuer: Arc<dyn Issuer>,
}

/// The issuer, as far as it has to be asked. Whoever puts the daemon together has the network.
pub trait Issuer: Send + Sync {
    /// The address of the page where people sign in.
    fn authorize_url(&self) -> Result<String, String>;

    /// What the issuer answers to this form, in JSON.
    fn redeem(&self, form: &str) -> Result<Vec<u8>, String>;

    /// Reads the keys of the issuer again.
    fn renew_keys(&self) -> Result<(), String>;
}

/// Browsers that are at the issuer, by the hash of their cookie.
pub(crate) struct Errands {
    open: Mutex<HashMap<[u8; 32], Errand>>,
    begun: Buckets<IpAddr>,
    /// The issuer may be slow, and others have nothing to do with that.
    pub(crate) workers: Workers,
}

/// A question to the issuer.
pub(crate) struct Errand {
    pub(crate) state: String,
    pub(crate) nonce: String,
    verifier: String,
    /// Where the issuer sends the browser back to.
    pub(crate) back: String,
    /// The page that somebody wanted to see.
    pub(crate) next: String,
    ends: Instant,
}

impl Default for Errands {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            begun: Buckets::new(Some(BEGUN)),
            workers: Workers::new(WORKERS, Duration::from_secs(5)),
        }
    }
}

impl Errands {
    /// Whether this address may begin another one, or how long it has to wait.
    pub(crate) fn take(&self, peer: IpAddr) -> Result<(), Duration> {
        self.begun.take(peer, Instant::now())
    }

    /// Keeps an errand; gives the cookie of its browser.
    pub(crate) fn begin(&self, errand: Errand) -> Option<String> {
        let cookie = random::<32>()?;
        let now = Instant::now();
        let mut open = lock(&self.open);
        open.retain(|_, errand| errand.ends > now);
        // Who begins many of them loses the oldest, and keeps nobody from beginning one.
        if open.len() >= MOST {
            let oldest = open.iter().min_by_key(|(_, errand)| errand.ends);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                open.remove(&oldest);
            }
        }
        open.insert(digest(&cookie), errand);
        Some(cookie)
    }

    /// Takes the errand of a browser that is back. It is over, whatever comes of it.
    pub(crate) fn end(&self, cookie: &str) -> Option<Errand> {
        let errand = lock(&self.open).remove(&digest(cookie))?;
        (errand.ends > Instant::now()).then_some(errand)
    }
}

impl Errand {
    /// A question that nobody can guess.
    pub(crate) fn new(back: String, next: String) -> Option<Self> {
        Some(Self {
            state: random::<32>()?,
            nonce: random::<32>()?,
            verifier: random::<32>()?,
            back,
            next,
            ends: Instant::now() + ERRAND_TIME,
        })
    }

    pub(crate) fn is_state(&self, given: &str) -> bool {
        given.as_bytes().ct_eq(self.state.as_bytes()).into()
    }

    /// Where the browser is sent with the question.
    pub(crate) fn question(&self, sign_in: &SignIn, page: &str) -> Option<String> {
        let mut address = url::Url::parse(page).ok()?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()));
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &sign_in.client_id)
            .append_pair("redirect_uri", &self.back)
            .append_pair("scope", &sign_in.scope)
            .append_pair("state", &self.state)
            .append_pair("nonce", &self.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Some(address.into())
    }

    /// Whom the issuer names for this code. Waits for the issuer.
    pub(crate) fn answer(
        &self,
        code: &str,
        sign_in: &SignIn,
        oidc: &Oidc,
        now_unix_ms: u64,
    ) -> Result<Caller, String> {
        let form = Serializer::new(String::new())
            .append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &self.back)
            .append_pair("client_id", &sign_in.client_id)
            .append_pair("code_verifier", &self.verifier)
            .finish();
        let answer = sign_in.issuer.redeem(&form)?;
        let answer = Json::admit(&answer, &ANSWER)
            .map_err(|_| "the issuer's answer cannot be read".to_owned())?;
        let token = answer.get("id_token").and_then(Json::as_str);
        let token = token.ok_or("the issuer's answer has no `id_token`")?;
        let named = || oidc.signed_in(token, &sign_in.client_id, &self.nonce, now_unix_ms);
        let caller = match named() {
            // The issuer may have new keys since they were read.
            Err(OidcError::NoKey) => {
                sign_in.issuer.renew_keys()?;
                named()
            }
            caller => caller,
        };
        caller.map_err(|error| error.to_string())
    }
}

/// As many browsers may be at the issuer at once.
const MOST: usize = 1024;
/// As many threads wait for the issuer.
const WORKERS: usize = 4;
/// Errands of one address: sixty, then one in a second.
const BEGUN: Rate = Rate {
    per_second: 1.0,
    burst: 60.0,
};

const ANSWER: Limits = Limits {
    max_bytes: 256 << 10,
    max_depth: 16,
    numbers: Numbers::Double,
};
