//! Approvals: where each is in its life.
//!
//! A change of state rides on the event that tells of it: both are in one transaction, or neither is.
//! Every change is one conditional statement; whoever comes second changes nothing and is told what
//! came first.

use countersign_approval::audit::Entry;
use countersign_approval::lease::Charge;
use countersign_approval::{
    ApprovalId, Envelope, LeaseId, Nonce, PlanHash, Resolved, State, UnixMs, Verified,
};
use countersign_event::Scope;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Params, Row, TransactionBehavior};

use crate::lease::charge;
use crate::reader::stored;
use crate::{Error, Grant, Reader, Stored};

/// A change of an approval or a lease, with what the audit says about it.
#[derive(Debug)]
pub struct Change {
    kind: Kind,
    audit: Vec<Entry>,
    now: UnixMs,
}

#[derive(Debug)]
enum Kind {
    Note,
    Request(Request),
    Vote {
        id: ApprovalId,
        after: usize,
    },
    Resolve {
        after: usize,
        id: ApprovalId,
        to: State,
        ends: Option<UnixMs>,
    },
    Consume {
        verified: Verified,
        owner: String,
    },
    Move {
        id: ApprovalId,
        from: State,
        to: State,
    },
    Grant(Grant),
    Use(Vec<Charge>),
    Revoke(LeaseId),
}

#[derive(Debug)]
struct Request {
    id: ApprovalId,
    nonce: Nonce,
    plan_hash: PlanHash,
    decide_by: Option<UnixMs>,
}

/// An approval as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Its name.
    pub id: ApprovalId,
    /// The token that is consumed once.
    pub nonce: Nonce,
    /// Its session.
    pub scope: Scope,
    /// The event that asked for it.
    pub seq: u64,
    /// The hash of its plan.
    pub plan_hash: PlanHash,
    /// Where it is in its life.
    pub state: State,
    /// When it was made.
    pub issued: UnixMs,
    /// Until when people may decide.
    pub decide_by: Option<UnixMs>,
    /// When it was decided.
    pub decided: Option<UnixMs>,
    /// Until when it may start.
    pub ends: Option<UnixMs>,
    /// The process that took its one use.
    pub owner: Option<String>,
}

/// An approval with the event that asked for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Requested {
    /// The approval.
    pub approval: Approval,
    /// The event.
    pub event: Stored,
}

/// Why a change was not made. Its event was not recorded either.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefused {
    /// The approval is elsewhere in its life.
    #[error("the approval is `{0}`")]
    State(State),
    /// The time is over.
    #[error("the time of the approval is over")]
    TooLate,
    /// Its one use was taken, whatever its row says.
    #[error("the nonce of the approval was spent")]
    Spent,
    /// Another vote came first: what this one leads to has to be counted again.
    #[error("another vote came first")]
    Outpaced,
    /// There is no such approval or lease.
    #[error("there is no such approval")]
    Unknown,
    /// The lease is used up, over or taken back.
    #[error("the lease does not cover another call")]
    LeaseOver,
    /// There is a lease of this name.
    #[error("the lease was granted already")]
    Granted,
}

impl Change {
    /// Adds to the audit and changes nothing else.
    pub fn note(entry: Entry, now: UnixMs) -> Self {
        Self::new(Kind::Note, vec![entry], now)
    }

    /// A new approval.
    pub fn request(envelope: &Envelope, entry: Entry, now: UnixMs) -> Self {
        let request = Request {
            id: envelope.id(),
            nonce: envelope.nonce(),
            plan_hash: envelope.plan().hash(),
            decide_by: envelope.clocks().decision_ends(),
        };
        Self::new(Kind::Request(request), vec![entry], now)
    }

    /// A vote that decides nothing yet, or comes too late to; `after` as many others as it was counted
    /// with.
    pub fn vote(id: ApprovalId, after: usize, entry: Entry, now: UnixMs) -> Self {
        Self::new(Kind::Vote { id, after }, vec![entry], now)
    }

    /// The vote that decides, and what it decides; `after` as many others as it was counted with.
    pub fn resolve(
        resolved: &Resolved,
        envelope: &Envelope,
        after: usize,
        entries: Vec<Entry>,
        now: UnixMs,
    ) -> Self {
        let (to, ends) = match resolved {
            Resolved::Granted(granted) => {
                let ends = envelope.clocks().execution_ends(granted.decided_at());
                (State::Approved, Some(ends))
            }
            Resolved::Refused(_) => (State::Denied, None),
        };
        let id = envelope.id();
        let kind = Kind::Resolve {
            id,
            to,
            ends,
            after,
        };
        Self::new(kind, entries, now)
    }

    /// The one use. Takes the proof that it may be taken.
    pub fn consume(verified: Verified, owner: String, entry: Entry, now: UnixMs) -> Self {
        Self::new(Kind::Consume { verified, owner }, vec![entry], now)
    }

    /// Any other step; `from` is where the approval must be.
    pub fn step(id: ApprovalId, from: State, to: State, entry: Entry, now: UnixMs) -> Self {
        Self::new(Kind::Move { id, from, to }, vec![entry], now)
    }

    /// A new lease.
    pub fn grant(grant: Grant, entry: Entry, now: UnixMs) -> Self {
        Self::new(Kind::Grant(grant), vec![entry], now)
    }

    /// One use of a lease, and of those that it is a part of: all of them count it, or none does.
    pub fn use_lease(charges: Vec<Charge>, entries: Vec<Entry>, now: UnixMs) -> Self {
        Self::new(Kind::Use(charges), entries, now)
    }

    /// The end of a lease.
    pub fn revoke(lease: LeaseId, entry: Entry, now: UnixMs) -> Self {
        Self::new(Kind::Revoke(lease), vec![entry], now)
    }

    fn new(kind: Kind, audit: Vec<Entry>, now: UnixMs) -> Self {
        Self { kind, audit, now }
    }

    pub(crate) fn now(&self) -> UnixMs {
        self.now
    }

    pub(crate) fn audit(&self) -> &[Entry] {
        &self.audit
    }

    /// Makes the change, if it may be made; comes before the event is written.
    pub(crate) fn apply(
        &self,
        session: i64,
        seq: u64,
        db: &Connection,
    ) -> Result<Result<(), ChangeRefused>, Error> {
        let now = self.observe_clock(db)?;
        match &self.kind {
            Kind::Note => Ok(Ok(())),
            Kind::Grant(grant) => {
                let mut known = db.prepare_cached("SELECT 1 FROM leases WHERE id = ?1")?;
                Ok(match known.exists([grant.id.to_string()])? {
                    true => Err(ChangeRefused::Granted),
                    false => Ok(()),
                })
            }
            Kind::Request(request) => request.insert(session, seq, now, db).map(Ok),
            Kind::Vote { id, after } => match state(*id, db)? {
                Some(_) => counted(*id, *after, db),
                None => Ok(Err(ChangeRefused::Unknown)),
            },
            Kind::Resolve {
                id,
                to,
                ends,
                after,
            } => {
                if let Err(refused) = counted(*id, *after, db)? {
                    return Ok(Err(refused));
                }
                let changed = db.prepare_cached(RESOLVE)?.execute((
                    id.to_string(),
                    to.as_str(),
                    now,
                    ends.map(number),
                ))?;
                changed_one(changed, *id, db)
            }
            Kind::Consume { verified, owner } => consume(verified, owner, now, db),
            Kind::Move { id, from, to } => {
                let changed = db.prepare_cached(MOVE)?.execute((
                    id.to_string(),
                    from.as_str(),
                    to.as_str(),
                    now,
                ))?;
                changed_one(changed, *id, db)
            }
            Kind::Use(charges) => charge(charges, now, db),
            Kind::Revoke(lease) => {
                let changed = db
                    .prepare_cached(REVOKE_LEASE)?
                    .execute((lease.to_string(), now))?;
                Ok(match changed {
                    1 => Ok(()),
                    _ => Err(ChangeRefused::LeaseOver),
                })
            }
        }
    }

    /// What points to the event, once it has its place.
    pub(crate) fn link(&self, event: i64, db: &Connection) -> Result<(), Error> {
        match &self.kind {
            Kind::Vote { id, .. } | Kind::Resolve { id, .. } => {
                db.prepare_cached("INSERT INTO approval_votes (event, approval) VALUES (?1, ?2)")?
                    .insert((event, id.to_string()))?;
            }
            Kind::Grant(grant) => {
                db.prepare_cached(GRANT)?.insert((
                    grant.id.to_string(),
                    event,
                    grant.tenant.as_str(),
                    signed(grant.max_uses),
                    grant.max_spent.map(signed),
                    number(grant.ends),
                ))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Time never goes back, whatever process or clock it came from.
    fn observe_clock(&self, db: &Connection) -> Result<i64, Error> {
        let now = db
            .prepare_cached(OBSERVE)?
            .query_row([number(self.now)], |row| row.get(0))?;
        Ok(now)
    }
}

impl Request {
    fn insert(&self, session: i64, seq: u64, now: i64, db: &Connection) -> Result<(), Error> {
        db.prepare_cached(REQUEST)?.insert((
            self.id.to_string(),
            self.nonce.to_string(),
            session,
            signed(seq),
            self.plan_hash.to_string(),
            now,
            self.decide_by.map(number),
        ))?;
        Ok(())
    }
}

/// INVARIANT: one statement takes the one use, and only from `approved` and in time. The tombstone
/// refuses a nonce whose row was changed back.
fn consume(
    verified: &Verified,
    owner: &str,
    now: i64,
    db: &Connection,
) -> Result<Result<(), ChangeRefused>, Error> {
    let nonce = verified.nonce().to_string();
    if db
        .prepare_cached("SELECT 1 FROM spent_nonces WHERE nonce = ?1")?
        .exists([&nonce])?
    {
        return Ok(Err(ChangeRefused::Spent));
    }
    let ends = number(verified.ends());
    let changed = db
        .prepare_cached(CONSUME)?
        .execute((&nonce, owner, now, ends))?;
    if changed == 1 {
        db.prepare_cached("INSERT INTO spent_nonces (nonce) VALUES (?1)")?
            .execute([&nonce])?;
        return Ok(Ok(()));
    }
    Ok(Err(match state(verified.id(), db)? {
        None => ChangeRefused::Unknown,
        Some(State::Approved) => ChangeRefused::TooLate,
        Some(state) => ChangeRefused::State(state),
    }))
}

/// Forgets approvals that are over since `before`. What was recorded about them stays in the log and in
/// the audit, and their nonces stay spent.
pub(crate) fn prune(before: UnixMs, db: &mut Connection) -> Result<usize, Error> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let before = number(before);
    transaction.execute(BURY, [before])?;
    transaction.execute(FORGET_VOTES, [before])?;
    let forgotten = transaction.execute(FORGET, [before])?;
    transaction.commit()?;
    Ok(forgotten)
}

/// INVARIANT: a vote is recorded with what it leads to after exactly the votes before it, so that of
/// several at the same time one decides.
fn counted(
    id: ApprovalId,
    after: usize,
    db: &Connection,
) -> Result<Result<(), ChangeRefused>, Error> {
    let votes: i64 = db
        .prepare_cached("SELECT count(*) FROM approval_votes WHERE approval = ?1")?
        .query_row([id.to_string()], |row| row.get(0))?;
    Ok(match usize::try_from(votes) == Ok(after) {
        true => Ok(()),
        false => Err(ChangeRefused::Outpaced),
    })
}

fn changed_one(
    changed: usize,
    id: ApprovalId,
    db: &Connection,
) -> Result<Result<(), ChangeRefused>, Error> {
    if changed == 1 {
        return Ok(Ok(()));
    }
    Ok(Err(match state(id, db)? {
        None => ChangeRefused::Unknown,
        Some(State::Pending) => ChangeRefused::TooLate,
        Some(state) => ChangeRefused::State(state),
    }))
}

fn state(id: ApprovalId, db: &Connection) -> Result<Option<State>, Error> {
    let text: Option<String> = db
        .prepare_cached("SELECT state FROM approvals WHERE id = ?1")?
        .query_row([id.to_string()], |row| row.get(0))
        .optional()?;
    text.map(|text| parsed(&text)).transpose()
}

impl Reader {
    /// One approval.
    pub fn approval(&self, id: ApprovalId) -> Result<Option<Approval>, Error> {
        Ok(self.approvals_where("a.id = ?1", [id.to_string()])?.pop())
    }

    /// One approval with the event that asked for it.
    pub fn asked(&self, id: ApprovalId) -> Result<Option<Requested>, Error> {
        self.asked_where("a.id = ?1", id.to_string())
    }

    /// The same for the approval with this nonce.
    pub fn asked_by_nonce(&self, nonce: Nonce) -> Result<Option<Requested>, Error> {
        self.asked_where("a.nonce = ?1", nonce.to_string())
    }

    fn asked_where(&self, condition: &str, value: String) -> Result<Option<Requested>, Error> {
        self.with(|db| {
            let sql = format!(
                "SELECT e.id, e.line, e.sealed, k.erased_unix_ms IS NOT NULL, {COLUMNS}
                 LEFT JOIN events e ON e.session = a.session AND e.seq = a.seq
                 LEFT JOIN session_keys k ON k.session = a.session WHERE {condition}"
            );
            let mut statement = db.prepare_cached(&sql)?;
            let mut rows = statement.query([value])?;
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            // What was erased is not told, not even by somebody who remembers it.
            if row.get(3)? {
                return Err(Error::Erased);
            }
            if row.get_ref(0)? == ValueRef::Null {
                return Err(Error::damaged(
                    0,
                    "the event that asked for approval is gone",
                ));
            }
            Ok(Some(Requested {
                event: stored(row)?,
                approval: approval(row, 4)?,
            }))
        })
    }

    /// Every approval in a state, oldest first.
    pub fn approvals_in(&self, state: State) -> Result<Vec<Approval>, Error> {
        self.approvals_where("a.state = ?1", [state.as_str()])
    }

    /// Every approval of a session, oldest first.
    pub fn session_approvals(&self, scope: &Scope) -> Result<Vec<Approval>, Error> {
        let session = (scope.tenant.as_str(), scope.session.as_str());
        self.approvals_where("s.tenant_id = ?1 AND s.session_id = ?2", session)
    }

    /// Those that may still be decided or used. The cost does not grow with those that are over.
    pub fn open_approvals(&self, scope: &Scope) -> Result<Vec<Approval>, Error> {
        let session = (scope.tenant.as_str(), scope.session.as_str());
        let condition = "a.state IN ('pending', 'approved')
             AND s.tenant_id = ?1 AND s.session_id = ?2";
        self.approvals_where(condition, session)
    }

    /// The newest approvals of any state, newest first.
    pub fn newest_approvals(&self, count: usize) -> Result<Vec<Approval>, Error> {
        let mut newest = self.approvals_where(
            "a.rowid IN (SELECT rowid FROM approvals ORDER BY issued_unix_ms DESC, rowid DESC LIMIT CAST(?1 AS INTEGER))",
            [count.to_string()],
        )?;
        newest.reverse();
        Ok(newest)
    }

    /// The events that carry the votes on an approval, in their order.
    pub fn votes(&self, id: ApprovalId) -> Result<Vec<Stored>, Error> {
        self.with(|db| {
            let mut statement = db.prepare_cached(
                "SELECT e.id, e.line, e.sealed FROM approval_votes v JOIN events e ON e.id = v.event
                 WHERE v.approval = ?1 ORDER BY v.event",
            )?;
            let rows = statement.query_map([id.to_string()], stored)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The latest time that was ever seen.
    pub fn latest_time(&self) -> Result<UnixMs, Error> {
        self.with(|db| {
            let sql = "SELECT latest_unix_ms FROM clock";
            Ok(time(db.query_row(sql, [], |row| row.get(0))?))
        })
    }

    fn approvals_where(
        &self,
        condition: &str,
        values: impl Params,
    ) -> Result<Vec<Approval>, Error> {
        self.with(|db| {
            let sql =
                format!("SELECT {COLUMNS} WHERE {condition} ORDER BY a.issued_unix_ms, a.rowid");
            let mut statement = db.prepare_cached(&sql)?;
            let mut rows = statement.query(values)?;
            let mut approvals = Vec::new();
            while let Some(row) = rows.next()? {
                approvals.push(approval(row, 0)?);
            }
            Ok(approvals)
        })
    }
}

/// The columns of an approval, from one of the row's on.
fn approval(row: &Row<'_>, first: usize) -> Result<Approval, Error> {
    let text = |column: usize| row.get::<_, String>(first + column);
    let when = |column: usize| {
        let ms = row.get::<_, Option<i64>>(first + column);
        ms.map(|ms| ms.map(time))
    };
    Ok(Approval {
        id: parsed(&text(0)?)?,
        nonce: parsed(&text(1)?)?,
        scope: Scope::new(text(2)?, text(3)?).map_err(|error| Error::damaged(0, error))?,
        seq: u64::try_from(row.get::<_, i64>(first + 4)?).unwrap_or_default(),
        plan_hash: parsed(&text(5)?)?,
        state: parsed(&text(6)?)?,
        issued: time(row.get(first + 7)?),
        decide_by: when(8)?,
        decided: when(9)?,
        ends: when(10)?,
        owner: row.get(first + 11)?,
    })
}

/// FAIL-CLOSED: a row that this program did not write is damage, not an approval.
pub(crate) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, Error> {
    text.parse()
        .map_err(|error| Error::damaged(0, format!("a stored approval: {error}")))
}

pub(crate) fn number(time: UnixMs) -> i64 {
    signed(time.get())
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn time(ms: i64) -> UnixMs {
    UnixMs::new(u64::try_from(ms).unwrap_or_default())
}

const COLUMNS: &str = "a.id, a.nonce, s.tenant_id, s.session_id, a.seq, a.plan_hash, a.state,
    a.issued_unix_ms, a.decide_by_unix_ms, a.decided_unix_ms, a.ends_unix_ms, a.owner
    FROM approvals a JOIN sessions s ON s.id = a.session";
const REQUEST: &str =
    "INSERT INTO approvals (id, nonce, session, seq, plan_hash, state, issued_unix_ms,
    decide_by_unix_ms) VALUES (?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?7)";
const RESOLVE: &str = "UPDATE approvals SET state = ?2, decided_unix_ms = ?3, ends_unix_ms = ?4
    WHERE id = ?1 AND state = 'pending' AND (decide_by_unix_ms IS NULL OR decide_by_unix_ms > ?3)";
const CONSUME: &str = "UPDATE approvals SET state = 'consumed', owner = ?2
    WHERE nonce = ?1 AND state = 'approved' AND ends_unix_ms > ?3 AND ends_unix_ms = ?4";
const MOVE: &str =
    "UPDATE approvals SET state = ?3, settled_unix_ms = ?4 WHERE id = ?1 AND state = ?2";
const GRANT: &str = "INSERT INTO leases (id, event, tenant_id, max_uses, uses, max_spent, spent,
    ends_unix_ms) VALUES (?1, ?2, ?3, ?4, 0, ?5, 0, ?6)";
const REVOKE_LEASE: &str =
    "UPDATE leases SET revoked_unix_ms = ?2 WHERE id = ?1 AND revoked_unix_ms IS NULL";
const OBSERVE: &str = "UPDATE clock SET latest_unix_ms = max(latest_unix_ms, ?1) WHERE id = 1
    RETURNING latest_unix_ms";
/// What is over, and since when.
macro_rules! over {
    () => {
        "state NOT IN ('pending', 'approved', 'consumed', 'started')
         AND coalesce(settled_unix_ms, decided_unix_ms, issued_unix_ms) <= ?1"
    };
}
const BURY: &str = concat!(
    "INSERT OR IGNORE INTO spent_nonces (nonce) SELECT nonce FROM approvals WHERE ",
    over!()
);
const FORGET_VOTES: &str = concat!(
    "DELETE FROM approval_votes WHERE approval IN (SELECT id FROM approvals WHERE ",
    over!(),
    ")"
);
const FORGET: &str = concat!("DELETE FROM approvals WHERE ", over!());
