-- How far the Merkle tree has come: leaf n is the event with the id n + 1. `relaxed` is 1 once a
-- process has acknowledged events before they were on the disk.
CREATE TABLE tree (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    size    INTEGER NOT NULL,
    relaxed INTEGER NOT NULL
) STRICT;
INSERT INTO tree (id, size, relaxed) VALUES (1, 0, 0);

-- One row a tile of up to 256 hashes. `id` is its level times 2^48 plus its number.
CREATE TABLE tiles (
    id     INTEGER PRIMARY KEY,
    hashes BLOB NOT NULL
) STRICT;

-- What was signed, by the size of the tree. The note has the signature of the log; those of witnesses
-- come later.
CREATE TABLE checkpoints (
    size INTEGER PRIMARY KEY,
    note TEXT NOT NULL
) STRICT;
CREATE TABLE cosignatures (
    size INTEGER NOT NULL,
    line TEXT NOT NULL,
    PRIMARY KEY (size, line)
) STRICT, WITHOUT ROWID;

-- Where the chains of sessions ended, for each checkpoint in whose batch they had events.
CREATE TABLE session_heads (
    session INTEGER NOT NULL,
    size    INTEGER NOT NULL,
    count   INTEGER NOT NULL,
    head    BLOB NOT NULL,
    PRIMARY KEY (session, size)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER tree_grows BEFORE UPDATE ON tree
WHEN new.size < old.size OR new.relaxed < old.relaxed
BEGIN SELECT RAISE(ABORT, 'the tree is append-only'); END;
CREATE TRIGGER tree_stays BEFORE DELETE ON tree
BEGIN SELECT RAISE(ABORT, 'the tree is append-only'); END;
CREATE TRIGGER tiles_grow BEFORE UPDATE ON tiles
WHEN new.id != old.id OR substr(new.hashes, 1, length(old.hashes)) != old.hashes
BEGIN SELECT RAISE(ABORT, 'the tree is append-only'); END;
CREATE TRIGGER tiles_keep_rows BEFORE DELETE ON tiles
BEGIN SELECT RAISE(ABORT, 'the tree is append-only'); END;
CREATE TRIGGER tiles_replace_nothing BEFORE INSERT ON tiles
WHEN EXISTS (SELECT 1 FROM tiles WHERE id = new.id)
BEGIN SELECT RAISE(ABORT, 'the tree is append-only'); END;
CREATE TRIGGER checkpoints_keep_content BEFORE UPDATE ON checkpoints
BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;
CREATE TRIGGER checkpoints_keep_rows BEFORE DELETE ON checkpoints
BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;
CREATE TRIGGER checkpoints_follow BEFORE INSERT ON checkpoints
WHEN new.size <= (SELECT coalesce(max(size), 0) FROM checkpoints)
  OR new.size > (SELECT size FROM tree)
BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;
CREATE TRIGGER session_heads_keep_content BEFORE UPDATE ON session_heads
BEGIN SELECT RAISE(ABORT, 'session heads are append-only'); END;
CREATE TRIGGER session_heads_keep_rows BEFORE DELETE ON session_heads
BEGIN SELECT RAISE(ABORT, 'session heads are append-only'); END;
