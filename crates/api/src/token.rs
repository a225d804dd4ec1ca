//! Bearer tokens: `cst_<id>_<secret>`. The id is public; of the secret only a hash is kept.

use countersign_event::{SessionId, TenantId};
use countersign_store::TokenRow;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::Role;

/// What a new token is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What people call it.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The only tenant that it reaches.
    pub tenant: Option<TenantId>,
    /// The only session that it reaches.
    pub session: Option<SessionId>,
    /// When it ends by itself.
    pub expires_unix_ms: Option<u64>,
}

/// Why there is no such token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Its name says nothing, or too much.
    #[error("a token has a name of 1 to 100 characters")]
    Name,
    /// Agents and approvers belong to somebody.
    #[error("a token for an {0} needs a tenant")]
    Tenant(Role),
    /// Only agents work in a session.
    #[error("only a token for an agent can be for one session")]
    Session,
    /// It would be over at once.
    #[error("the token would be over at once")]
    Over,
    /// There is nothing that nobody can guess.
    #[error("the system gave no randomness")]
    Randomness,
}

impl NewToken {
    /// Makes the token: the text that its bearer shows, which nobody else will ever see, and what is
    /// kept of it.
    pub fn issue(self, now_unix_ms: u64) -> Result<(String, TokenRow), TokenError> {
        if !(1..=100).contains(&self.name.chars().count()) {
            return Err(TokenError::Name);
        }
        if self.role.needs_tenant() && self.tenant.is_none() {
            return Err(TokenError::Tenant(self.role));
        }
        if self.session.is_some() && self.role != Role::Agent {
            return Err(TokenError::Session);
        }
        if self.expires_unix_ms.is_some_and(|end| end <= now_unix_ms) {
            return Err(TokenError::Over);
        }
        let id = random::<8>().ok_or(TokenError::Randomness)?;
        let secret = random::<32>().ok_or(TokenError::Randomness)?;
        let row = TokenRow {
            id: id.clone(),
            name: self.name,
            secret_sha256: digest(&secret),
            role: self.role.as_str().to_owned(),
            tenant: self.tenant,
            session: self.session,
            created_unix_ms: now_unix_ms,
            expires_unix_ms: self.expires_unix_ms,
            revoked_unix_ms: None,
        };
        Ok((format!("{PREFIX}{id}_{secret}"), row))
    }
}

/// The id and the secret of a token that somebody shows.
pub(crate) fn parts(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let fits = id.len() == 16 && secret.len() == 64 && is_hex(id) && is_hex(secret);
    fits.then_some((id, secret))
}

/// Whether this is the secret. Takes as long whatever is wrong with it.
pub(crate) fn is_secret(secret: &str, kept: &[u8; 32]) -> bool {
    digest(secret).ct_eq(kept).into()
}

pub(crate) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Hexadecimal digits that nobody can guess.
pub(crate) fn random<const N: usize>() -> Option<String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok()?;
    Some(base16ct::lower::encode_string(&bytes))
}

const PREFIX: &str = "cst_";

#[cfg(test)]
mod tests {
    use super::*;

    fn agent() -> NewToken {
        NewToken {
            name: "crawler".to_owned(),
            role: Role::Agent,
            tenant: Some(TenantId::new("acme").unwrap()),
            session: None,
            expires_unix_ms: None,
        }
    }

    #[test]
    fn a_token_is_recognised_by_its_hash_alone() {
        let (text, row) = agent().issue(1).unwrap();
        let (id, secret) = parts(&text).unwrap();
        assert_eq!(id, row.id);
        assert!(is_secret(secret, &row.secret_sha256));
        let other = agent().issue(1).unwrap().0;
        assert!(!is_secret(parts(&other).unwrap().1, &row.secret_sha256));
        assert!(!format!("{row:?}").contains(secret));
    }

    #[test]
    fn tokens_that_would_reach_too_far_are_not_made() {
        let check = |token: NewToken, error| assert_eq!(token.issue(10).unwrap_err(), error);
        let mut nameless = agent();
        nameless.name.clear();
        check(nameless, TokenError::Name);
        let mut everywhere = agent();
        everywhere.tenant = None;
        check(everywhere.clone(), TokenError::Tenant(Role::Agent));
        everywhere.role = Role::Approver;
        check(everywhere, TokenError::Tenant(Role::Approver));
        let mut over = agent();
        over.expires_unix_ms = Some(10);
        check(over, TokenError::Over);
        let mut auditor = agent();
        auditor.role = Role::Auditor;
        auditor.session = Some(SessionId::new("s").unwrap());
        check(auditor, TokenError::Session);
    }

    #[test]
    fn what_is_no_token_is_not_looked_up() {
        for text in ["", "cst_", "cst_1_2", "Bearer x", "cst_0123456789abcdef_zz"] {
            assert_eq!(parts(text), None, "{text}");
        }
    }
}
