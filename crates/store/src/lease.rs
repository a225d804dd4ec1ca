//! Leases: how far each is used up.

use countersign_approval::lease::Charge;
use countersign_approval::{LeaseId, UnixMs};
use countersign_event::Scope;
use rusqlite::{Connection, Params, Row};

use crate::approval::{parsed, signed, time};
use crate::reader::stored;
use crate::{ChangeRefused, Error, Reader, Stored};

/// A lease as the store counts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Its name.
    pub id: LeaseId,
    /// Whose it is.
    pub tenant: String,
    /// How often it covers a call.
    pub max_uses: u64,
    /// How much it may spend in all.
    pub max_spent: Option<u64>,
    /// When it ends.
    pub ends: UnixMs,
}

/// A lease as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct LeaseRow {
    /// What was granted.
    pub grant: Grant,
    /// The event that granted it.
    pub event: Stored,
    /// How often it was used.
    pub uses: u64,
    /// How much it has spent.
    pub spent: u64,
    /// When it was taken back.
    pub revoked: Option<UnixMs>,
}

/// INVARIANT: one conditional statement per lease counts the use, and all of them do or none does.
pub(crate) fn charge(
    charges: &[Charge],
    now: i64,
    db: &Connection,
) -> Result<Result<(), ChangeRefused>, Error> {
    db.execute_batch("SAVEPOINT charge")?;
    let mut update = db.prepare_cached(USE_LEASE)?;
    let mut covered = !charges.is_empty();
    for charge in charges {
        let amount = signed(charge.amount());
        covered &= update.execute((charge.lease().to_string(), amount, now))? == 1;
    }
    if covered {
        db.execute_batch("RELEASE charge")?;
        return Ok(Ok(()));
    }
    db.execute_batch("ROLLBACK TO charge; RELEASE charge")?;
    Ok(Err(ChangeRefused::LeaseOver))
}

impl Reader {
    /// Every lease, oldest first, whatever became of it.
    pub fn all_leases(&self) -> Result<Vec<LeaseRow>, Error> {
        self.leases_where("true", ())
    }

    /// Every lease of a tenant, oldest first, whatever became of it.
    pub fn leases(&self, tenant: &str) -> Result<Vec<LeaseRow>, Error> {
        self.leases_where("l.tenant_id = ?1", [tenant])
    }

    /// Every lease of a session, oldest first, whatever became of it.
    pub fn session_leases(&self, scope: &Scope) -> Result<Vec<LeaseRow>, Error> {
        self.leases_where(
            "e.session =
             (SELECT id FROM sessions WHERE tenant_id = ?1 AND session_id = ?2)",
            (scope.tenant.as_str(), scope.session.as_str()),
        )
    }

    /// One lease.
    pub fn lease(&self, id: LeaseId) -> Result<Option<LeaseRow>, Error> {
        Ok(self.leases_where("l.id = ?1", [id.to_string()])?.pop())
    }

    fn leases_where(&self, condition: &str, values: impl Params) -> Result<Vec<LeaseRow>, Error> {
        self.with(|db| {
            let sql = format!("{LEASES} WHERE {condition} ORDER BY l.event");
            let mut statement = db.prepare_cached(&sql)?;
            let mut rows = statement.query(values)?;
            let mut leases = Vec::new();
            while let Some(row) = rows.next()? {
                leases.push(lease(row)?);
            }
            Ok(leases)
        })
    }
}

fn lease(row: &Row<'_>) -> Result<LeaseRow, Error> {
    let count = |column: usize| {
        row.get::<_, i64>(column)
            .map(|count| u64::try_from(count).unwrap_or_default())
    };
    Ok(LeaseRow {
        grant: Grant {
            id: parsed(&row.get::<_, String>(3)?)?,
            tenant: row.get(4)?,
            max_uses: count(5)?,
            max_spent: row
                .get::<_, Option<i64>>(7)?
                .map(|most| u64::try_from(most).unwrap_or_default()),
            ends: time(row.get(9)?),
        },
        event: stored(row)?,
        uses: count(6)?,
        spent: count(8)?,
        revoked: row.get::<_, Option<i64>>(10)?.map(time),
    })
}

const USE_LEASE: &str = "UPDATE leases SET uses = uses + 1, spent = spent + ?2
    WHERE id = ?1 AND revoked_unix_ms IS NULL AND ends_unix_ms > ?3 AND uses < max_uses
    AND (max_spent IS NULL OR ?2 <= max_spent - spent)";
const LEASES: &str =
    "SELECT e.id, e.line, e.sealed, l.id, l.tenant_id, l.max_uses, l.uses, l.max_spent,
    l.spent, l.ends_unix_ms, l.revoked_unix_ms FROM leases l JOIN events e ON e.id = l.event";
