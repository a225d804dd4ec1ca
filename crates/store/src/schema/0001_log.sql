-- One row a chain. The two ids are columns of their own: no text joins them.
CREATE TABLE sessions (
    id         INTEGER PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    session_id TEXT NOT NULL,
    UNIQUE (tenant_id, session_id)
) STRICT;

-- One row an event. `id` is the global order; `line` is the exact JCS text of the envelope with its
-- hash; `sealed` is the ciphertext that the line commits to.
CREATE TABLE events (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    line    TEXT NOT NULL,
    sealed  BLOB,
    UNIQUE (session, seq)
) STRICT;

-- The data key of each session, encrypted by a master key; empty once erased.
CREATE TABLE session_keys (
    session        INTEGER PRIMARY KEY,
    master         TEXT NOT NULL,
    wrapped        BLOB NOT NULL,
    erased_unix_ms INTEGER
) STRICT;

-- Master keys that wrap nothing any more. A process that has not noticed a rotation is refused.
CREATE TABLE retired_master_keys (
    id TEXT PRIMARY KEY
) STRICT;

CREATE TRIGGER events_keep_content BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_keep_rows BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER sessions_keep_content BEFORE UPDATE ON sessions
BEGIN SELECT RAISE(ABORT, 'sessions are append-only'); END;
CREATE TRIGGER sessions_keep_rows BEFORE DELETE ON sessions
BEGIN SELECT RAISE(ABORT, 'sessions are append-only'); END;
CREATE TRIGGER session_keys_stay_erased BEFORE UPDATE ON session_keys
WHEN old.erased_unix_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'an erased session stays erased'); END;
-- `INSERT OR REPLACE` deletes without asking the triggers above.
CREATE TRIGGER sessions_replace_nothing BEFORE INSERT ON sessions
WHEN EXISTS (SELECT 1 FROM sessions WHERE id = new.id
             OR (tenant_id = new.tenant_id AND session_id = new.session_id))
BEGIN SELECT RAISE(ABORT, 'sessions are append-only'); END;
CREATE TRIGGER session_keys_replace_nothing BEFORE INSERT ON session_keys
WHEN EXISTS (SELECT 1 FROM session_keys WHERE session = new.session)
BEGIN SELECT RAISE(ABORT, 'session keys are erased, not replaced'); END;
CREATE TRIGGER session_keys_stay_with_their_session BEFORE UPDATE OF session ON session_keys
BEGIN SELECT RAISE(ABORT, 'a session key stays with its session'); END;
CREATE TRIGGER session_keys_keep_rows BEFORE DELETE ON session_keys
BEGIN SELECT RAISE(ABORT, 'session keys are erased, not deleted'); END;
