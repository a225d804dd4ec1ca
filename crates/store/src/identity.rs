//! Who may call, and whose sessions are whose.

use countersign_event::{IdError, Scope, SessionId, TenantId};
use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior};

use crate::{Error, Reader, Store};

/// A bearer token as it is stored: everything but its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Its name in the log and in commands; no secret.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// SHA-256 of the secret.
    pub secret_sha256: [u8; 32],
    /// The role, by name.
    pub role: String,
    /// The only tenant that it reaches.
    pub tenant: Option<TenantId>,
    /// The only session that it reaches.
    pub session: Option<SessionId>,
    /// When it was made.
    pub created_unix_ms: u64,
    /// When it ends by itself.
    pub expires_unix_ms: Option<u64>,
    /// When it was taken back.
    pub revoked_unix_ms: Option<u64>,
}

impl Store {
    /// Keeps a new token. `false` if the most that are kept are there already.
    pub fn add_token(&self, token: TokenRow) -> Result<bool, Error> {
        self.exclusive(move |db| add(&token, db))
    }

    /// Takes a token back; it stays listed. `false` if there is none, or it was taken back before.
    pub fn revoke_token(&self, id: &str, now_unix_ms: u64) -> Result<bool, Error> {
        let id = id.to_owned();
        self.exclusive(move |db| {
            let sql = "UPDATE tokens SET revoked_unix_ms = ?2
                       WHERE id = ?1 AND revoked_unix_ms IS NULL";
            Ok(db.execute(sql, (id, signed(now_unix_ms)))? == 1)
        })
    }

    /// Gives a session that has no event yet an owner. Returns the owner that it has: the given one,
    /// or who came first; `None` if the session was begun by somebody who is not known here.
    pub fn claim_session(&self, scope: &Scope, owner: &str) -> Result<Option<String>, Error> {
        let (scope, owner) = (scope.clone(), owner.to_owned());
        self.exclusive(move |db| claim(&scope, &owner, db))
    }
}

impl Reader {
    /// Every token, oldest first, whatever became of it.
    pub fn tokens(&self) -> Result<Vec<TokenRow>, Error> {
        self.with(|db| {
            if !has_tables(db)? {
                return Ok(Vec::new());
            }
            let mut statement = db.prepare_cached(TOKENS)?;
            let mut rows = statement.query([])?;
            let mut tokens = Vec::new();
            while let Some(row) = rows.next()? {
                tokens.push(token(row)?);
            }
            Ok(tokens)
        })
    }

    /// Who began a session, if it was begun over the API.
    pub fn session_owner(&self, scope: &Scope) -> Result<Option<String>, Error> {
        self.with(|db| match has_tables(db)? {
            true => owner(scope, db),
            false => Ok(None),
        })
    }
}

/// A log that no newer program has written yet has no such tables.
pub(crate) fn has_tables(db: &Connection) -> Result<bool, Error> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name IN ('tokens', 'session_owners')
               AND type = 'table'";
    let count: i64 = db.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(count == 2)
}

fn add(token: &TokenRow, db: &mut Connection) -> Result<bool, Error> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let count: i64 = transaction.query_row("SELECT count(*) FROM tokens", [], |row| row.get(0))?;
    if count >= MAX_TOKENS {
        return Ok(false);
    }
    transaction.execute(
        "INSERT INTO tokens (id, name, secret_sha256, role, tenant_id, session_id,
             created_unix_ms, expires_unix_ms, revoked_unix_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            &token.id,
            &token.name,
            token.secret_sha256,
            &token.role,
            token.tenant.as_ref().map(TenantId::as_str),
            token.session.as_ref().map(SessionId::as_str),
            signed(token.created_unix_ms),
            token.expires_unix_ms.map(signed),
            token.revoked_unix_ms.map(signed),
        ),
    )?;
    transaction.commit()?;
    Ok(true)
}

fn claim(scope: &Scope, wanted: &str, db: &mut Connection) -> Result<Option<String>, Error> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(owner) = owner(scope, &transaction)? {
        return Ok(Some(owner));
    }
    let names = (scope.tenant.as_str(), scope.session.as_str());
    let begun: Option<i64> = transaction
        .query_row(
            "SELECT id FROM sessions WHERE tenant_id = ?1 AND session_id = ?2",
            names,
            |row| row.get(0),
        )
        .optional()?;
    // SECURITY: what others have begun cannot be taken over by being the first to ask.
    if begun.is_some() {
        return Ok(None);
    }
    transaction.execute(
        "INSERT INTO session_owners (tenant_id, session_id, owner) VALUES (?1, ?2, ?3)",
        (names.0, names.1, wanted),
    )?;
    transaction.commit()?;
    Ok(Some(wanted.to_owned()))
}

fn owner(scope: &Scope, db: &Connection) -> Result<Option<String>, Error> {
    let sql = "SELECT owner FROM session_owners WHERE tenant_id = ?1 AND session_id = ?2";
    let names = (scope.tenant.as_str(), scope.session.as_str());
    let mut statement = db.prepare_cached(sql)?;
    Ok(statement.query_row(names, |row| row.get(0)).optional()?)
}

fn token(row: &Row<'_>) -> Result<TokenRow, Error> {
    let id: String = row.get(0)?;
    let foreign = |error: IdError| Error::damaged(0, format!("the token `{id}`: {error}"));
    let tenant: Option<String> = row.get(4)?;
    let session: Option<String> = row.get(5)?;
    let time = |column: usize| {
        let time = row.get::<_, Option<i64>>(column)?;
        Ok::<_, Error>(time.map(|ms| u64::try_from(ms).unwrap_or_default()))
    };
    Ok(TokenRow {
        name: row.get(1)?,
        secret_sha256: row.get(2)?,
        role: row.get(3)?,
        tenant: tenant.map(TenantId::new).transpose().map_err(foreign)?,
        session: session.map(SessionId::new).transpose().map_err(foreign)?,
        created_unix_ms: time(6)?.unwrap_or_default(),
        expires_unix_ms: time(7)?,
        revoked_unix_ms: time(8)?,
        id,
    })
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// All of them are kept in memory by whoever serves.
const MAX_TOKENS: i64 = 10_000;

const TOKENS: &str = "SELECT id, name, secret_sha256, role, tenant_id, session_id,
    created_unix_ms, expires_unix_ms, revoked_unix_ms FROM tokens ORDER BY created_unix_ms, id";
