//! Tokens that somebody else has signed: JSON web tokens of one issuer.
//!
//! Only signatures that cannot be confused are known (RS256, ES256, EdDSA), each with a key that was made
//! for it; there is no `none` and no shared secret. What a token does not say clearly, it does not say.

use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use countersign_canon::{Hash, Json, Limits, Numbers};
use countersign_event::TenantId;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

use crate::{Caller, Role};

/// Whose tokens are taken, and what in them says who somebody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcSettings {
    /// The issuer, letter by letter.
    pub issuer: String,
    /// Whom the tokens must be for.
    pub audience: String,
    /// The claim that names the role.
    pub role_claim: String,
    /// The claim that names the tenant.
    pub tenant_claim: String,
}

/// Takes tokens of one issuer.
pub struct Oidc {
    settings: OidcSettings,
    keys: RwLock<Arc<Vec<Key>>>,
}

/// Why a token is not taken, or keys are not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    /// The set of keys cannot be read, or has no key that could be used.
    #[error("the set of keys has no key for RS256, ES256 or EdDSA")]
    Keys,
    /// The token is not of the form that is asked for.
    #[error("the token is not a signed JSON web token")]
    Form,
    /// It is signed in a way that is not known here.
    #[error("tokens are signed with RS256, ES256 or EdDSA")]
    Algorithm,
    /// No key fits.
    #[error("no key of the issuer fits the token")]
    NoKey,
    /// The signature does not hold.
    #[error("the signature does not hold")]
    Signature,
    /// A claim is missing or says something else.
    #[error("the claim `{0}` does not let the token in")]
    Claim(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

struct Key {
    id: Option<String>,
    material: Material,
}

enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl Oidc {
    /// Takes tokens of an issuer, signed with these keys (a JSON web key set).
    pub fn new(settings: OidcSettings, jwks: &[u8]) -> Result<Self, OidcError> {
        Ok(Self {
            settings,
            keys: RwLock::new(Arc::new(keys(jwks)?)),
        })
    }

    /// Takes other keys in their place. If they cannot be used, the old ones stay.
    pub fn replace_keys(&self, jwks: &[u8]) -> Result<(), OidcError> {
        let keys = Arc::new(keys(jwks)?);
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    /// Who shows this token.
    pub(crate) fn caller(&self, token: &str, now_unix_ms: u64) -> Result<Caller, OidcError> {
        let claims = self.signed(token)?;
        self.claims(&claims, &self.settings.audience, now_unix_ms / 1000)
    }

    /// Whom the issuer names to this client, in answer to this very question.
    ///
    /// SECURITY: a token that was made for somebody else, or for another question, names nobody.
    pub(crate) fn signed_in(
        &self,
        token: &str,
        client: &str,
        nonce: &str,
        now_unix_ms: u64,
    ) -> Result<Caller, OidcError> {
        let claims = self.signed(token)?;
        let wrong = |name: &str| OidcError::Claim(name.to_owned());
        let text = |name: &str| claims.get(name).map(Json::as_str);
        let caller = self.claims(&claims, client, now_unix_ms / 1000)?;
        let is_answer = text("nonce").flatten().is_some_and(|given| {
            use subtle::ConstantTimeEq as _;
            given.as_bytes().ct_eq(nonce.as_bytes()).into()
        });
        if !is_answer {
            return Err(wrong("nonce"));
        }
        if claims.get("iat").is_none() {
            return Err(wrong("iat"));
        }
        let is_for_many = claims
            .get("aud")
            .and_then(Json::as_array)
            .is_some_and(|many| many.len() > 1);
        match text("azp") {
            None if !is_for_many => Ok(caller),
            Some(Some(party)) if party == client => Ok(caller),
            _ => Err(wrong("azp")),
        }
    }

    /// The issuer, letter by letter.
    pub(crate) fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// What a token says, if a key of the issuer has signed it.
    fn signed(&self, token: &str) -> Result<Json, OidcError> {
        let mut parts = token.split('.');
        let (Some(head), Some(body), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(OidcError::Form);
        };
        let header = object(head)?;
        let text =
            |json: &Json, name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
        // SECURITY: extensions that must be understood are not.
        if header.get("crit").is_some() {
            return Err(OidcError::Form);
        }
        let algorithm = match text(&header, "alg").as_deref() {
            Some("RS256") => Algorithm::Rs256,
            Some("ES256") => Algorithm::Es256,
            Some("EdDSA") => Algorithm::EdDsa,
            _ => return Err(OidcError::Algorithm),
        };
        let signed = token
            .get(..head.len() + 1 + body.len())
            .ok_or(OidcError::Form)?;
        let signature = decode(signature)?;
        self.check(
            algorithm,
            text(&header, "kid"),
            signed.as_bytes(),
            &signature,
        )?;
        object(body)
    }

    fn check(
        &self,
        algorithm: Algorithm,
        id: Option<String>,
        signed: &[u8],
        signature: &[u8],
    ) -> Result<(), OidcError> {
        let keys = Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner));
        let fits = |key: &&Key| {
            key.algorithm() == algorithm && (id.is_none() || key.id.is_none() || key.id == id)
        };
        let mut fitting = keys.iter().filter(fits).peekable();
        if fitting.peek().is_none() {
            return Err(OidcError::NoKey);
        }
        match fitting.any(|key| key.verifies(signed, signature)) {
            true => Ok(()),
            false => Err(OidcError::Signature),
        }
    }

    fn claims(&self, claims: &Json, audience: &str, now: u64) -> Result<Caller, OidcError> {
        let settings = &self.settings;
        let wrong = |name: &str| OidcError::Claim(name.to_owned());
        let text = |name: &str| {
            claims
                .get(name)
                .and_then(Json::as_str)
                .ok_or_else(|| wrong(name))
        };
        if text("iss")? != settings.issuer {
            return Err(wrong("iss"));
        }
        let is_ours = |json: &Json| json.as_str() == Some(audience);
        let is_for_us = match claims.get("aud") {
            Some(Json::Array(many)) => many.iter().any(is_ours),
            Some(one) => is_ours(one),
            None => false,
        };
        if !is_for_us {
            return Err(wrong("aud"));
        }
        let time = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(time) => time.as_u64().map(Some).ok_or_else(|| wrong(name)),
        };
        // A token without an end is not taken.
        let ends = time("exp")?.ok_or_else(|| wrong("exp"))?;
        if ends.saturating_add(LEEWAY) <= now {
            return Err(wrong("exp"));
        }
        for name in ["nbf", "iat"] {
            if time(name)?.is_some_and(|begins| begins > now.saturating_add(LEEWAY)) {
                return Err(wrong(name));
            }
        }
        let subject = text("sub")?;
        let role: Role = text(&settings.role_claim)?
            .parse()
            .map_err(|_| wrong(&settings.role_claim))?;
        let tenant = match claims.get(&settings.tenant_claim).map(Json::as_str) {
            None => None,
            Some(tenant) => {
                let tenant = tenant.and_then(|tenant| TenantId::new(tenant).ok());
                Some(tenant.ok_or_else(|| wrong(&settings.tenant_claim))?)
            }
        };
        if role.needs_tenant() && tenant.is_none() {
            return Err(wrong(&settings.tenant_claim));
        }
        let id = Hash::of_parts(&[settings.issuer.as_bytes(), b"\0", subject.as_bytes()]);
        Ok(Caller {
            id: format!("jwt_{id}"),
            name: subject.to_owned(),
            role,
            tenant,
            session: None,
            csrf: None,
        })
    }
}

impl Key {
    const fn algorithm(&self) -> Algorithm {
        match self.material {
            Material::Rsa { .. } => Algorithm::Rs256,
            Material::P256(_) => Algorithm::Es256,
            Material::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    fn verifies(&self, signed: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::Rsa { n, e } => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
                .is_ok(),
            Material::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(signed, signature)
                .is_ok(),
            Material::Ed25519(point) => UnparsedPublicKey::new(&ED25519, point)
                .verify(signed, signature)
                .is_ok(),
        }
    }
}

/// The keys of a set that can be used here; others are for somebody else.
fn keys(jwks: &[u8]) -> Result<Vec<Key>, OidcError> {
    let set = Json::admit(jwks, &LIMITS).map_err(|_| OidcError::Keys)?;
    let all = set
        .get("keys")
        .and_then(Json::as_array)
        .ok_or(OidcError::Keys)?;
    let keys: Vec<Key> = all.iter().filter_map(key).collect();
    match keys.is_empty() {
        true => Err(OidcError::Keys),
        false => Ok(keys),
    }
}

fn key(json: &Json) -> Option<Key> {
    let text = |name: &str| json.get(name).and_then(Json::as_str);
    let bytes = |name: &str| decode(text(name)?).ok();
    if text("use").is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let (material, algorithm) = match (text("kty")?, text("crv")) {
        ("RSA", _) => (
            Material::Rsa {
                n: bytes("n")?,
                e: bytes("e")?,
            },
            "RS256",
        ),
        ("EC", Some("P-256")) => {
            let point = [&[4], bytes("x")?.as_slice(), bytes("y")?.as_slice()].concat();
            (Material::P256(point), "ES256")
        }
        ("OKP", Some("Ed25519")) => (Material::Ed25519(bytes("x")?), "EdDSA"),
        _ => return None,
    };
    let is_for_it = text("alg").is_none_or(|named| named == algorithm);
    is_for_it.then(|| Key {
        id: text("kid").map(str::to_owned),
        material,
    })
}

fn object(part: &str) -> Result<Json, OidcError> {
    let json = Json::admit(&decode(part)?, &LIMITS).map_err(|_| OidcError::Form)?;
    match json.as_object() {
        Some(_) => Ok(json),
        None => Err(OidcError::Form),
    }
}

fn decode(text: &str) -> Result<Vec<u8>, OidcError> {
    match text.len() <= LIMITS.max_bytes {
        true => URL_SAFE_NO_PAD.decode(text).map_err(|_| OidcError::Form),
        false => Err(OidcError::Form),
    }
}

/// How far clocks may be off, in seconds.
const LEEWAY: u64 = 60;

const LIMITS: Limits = Limits {
    max_bytes: 64 << 10,
    max_depth: 16,
    numbers: Numbers::Double,
};

#[cfg(test)]
mod tests;
