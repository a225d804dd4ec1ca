-- One row an approval: where it is in its life. What it is about is sealed in the event that asked for
-- it; who decided is in the events that `approval_votes` points to.
CREATE TABLE approvals (
    id               TEXT PRIMARY KEY,
    nonce            TEXT NOT NULL UNIQUE,
    session          INTEGER NOT NULL,
    seq              INTEGER NOT NULL,
    plan_hash        TEXT NOT NULL,
    state            TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired',
                         'cancelled', 'superseded', 'expired_unused', 'consumed', 'not_started',
                         'started', 'executed', 'failed', 'unknown')),
    issued_unix_ms   INTEGER NOT NULL,
    decide_by_unix_ms INTEGER,
    decided_unix_ms  INTEGER,
    ends_unix_ms     INTEGER,
    owner            TEXT,
    settled_unix_ms  INTEGER
) STRICT;
CREATE INDEX approvals_by_state ON approvals (state, issued_unix_ms);

-- The events that carry the votes on an approval, in their order.
CREATE TABLE approval_votes (
    event    INTEGER PRIMARY KEY,
    approval TEXT NOT NULL
) STRICT;
CREATE INDEX approval_votes_by_approval ON approval_votes (approval, event);

-- Nonces whose one use was taken. A row stays when its approval is pruned.
CREATE TABLE spent_nonces (
    nonce TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- One row a lease; its terms are sealed in the event that granted it.
CREATE TABLE leases (
    id              TEXT PRIMARY KEY,
    event           INTEGER NOT NULL,
    tenant_id       TEXT NOT NULL,
    max_uses        INTEGER NOT NULL,
    uses            INTEGER NOT NULL,
    max_spent       INTEGER,
    spent           INTEGER NOT NULL,
    ends_unix_ms    INTEGER NOT NULL,
    revoked_unix_ms INTEGER
) STRICT;

-- The audit, line by line. The file beside the database is a copy of it.
CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    line   TEXT NOT NULL
) STRICT;

-- The latest time that was ever seen, so that a clock which is set back gains nobody anything.
CREATE TABLE clock (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    latest_unix_ms INTEGER NOT NULL
) STRICT;
INSERT INTO clock (id, latest_unix_ms) VALUES (1, 0);

CREATE TRIGGER approvals_keep_identity BEFORE UPDATE OF id, nonce, session, seq, plan_hash ON approvals
BEGIN SELECT RAISE(ABORT, 'an approval stays what it is'); END;
CREATE TRIGGER approvals_end_once BEFORE UPDATE ON approvals
WHEN old.state NOT IN ('pending', 'approved', 'consumed', 'started')
BEGIN SELECT RAISE(ABORT, 'an approval that is over stays over'); END;
CREATE TRIGGER approvals_replace_nothing BEFORE INSERT ON approvals
WHEN EXISTS (SELECT 1 FROM approvals WHERE id = new.id OR nonce = new.nonce)
  OR EXISTS (SELECT 1 FROM spent_nonces WHERE nonce = new.nonce)
BEGIN SELECT RAISE(ABORT, 'an approval is made once'); END;
CREATE TRIGGER spent_nonces_keep_content BEFORE UPDATE ON spent_nonces
BEGIN SELECT RAISE(ABORT, 'spent nonces are append-only'); END;
CREATE TRIGGER spent_nonces_keep_rows BEFORE DELETE ON spent_nonces
BEGIN SELECT RAISE(ABORT, 'spent nonces are append-only'); END;
CREATE TRIGGER audit_keep_content BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_keep_rows BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_follows BEFORE INSERT ON audit
WHEN new.number != (SELECT coalesce(max(number), 0) + 1 FROM audit)
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER clock_goes_forward BEFORE UPDATE ON clock
WHEN new.latest_unix_ms < old.latest_unix_ms
BEGIN SELECT RAISE(ABORT, 'the clock goes forward only'); END;
