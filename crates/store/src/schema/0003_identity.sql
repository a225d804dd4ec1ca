-- One row a bearer token. Of its secret only the hash is kept.
CREATE TABLE tokens (
    id              TEXT PRIMARY KEY,
    name            TEXT NOT NULL,
    secret_sha256   BLOB NOT NULL CHECK (length(secret_sha256) = 32),
    role            TEXT NOT NULL CHECK (role IN ('agent', 'approver', 'auditor', 'operator')),
    tenant_id       TEXT,
    session_id      TEXT,
    created_unix_ms INTEGER NOT NULL,
    expires_unix_ms INTEGER,
    revoked_unix_ms INTEGER
) STRICT;

-- Who began a session, for those that were begun over the API: agents see their own only.
CREATE TABLE session_owners (
    tenant_id  TEXT NOT NULL,
    session_id TEXT NOT NULL,
    owner      TEXT NOT NULL,
    PRIMARY KEY (tenant_id, session_id)
) STRICT, WITHOUT ROWID;
