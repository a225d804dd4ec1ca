"""Holds `countersign evidence state` against other tools on the same input: psql and a server of PostgreSQL
for row sets, the sqlite3 shell, git for trees, and find with sha256sum for a walk."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BINARY = os.path.abspath(sys.argv[1])


def run(*arguments, cwd=None, env=None, code=0, text=None):
    done = subprocess.run(arguments, cwd=cwd, env=env, input=text, capture_output=True)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout.decode()


def state(*arguments, cwd=None, env=None):
    found = json.loads(run(BINARY, "evidence", "state", *arguments, cwd=cwd, env=env))
    return found["digest"], found["state_digest_coverage"]


def digest(rows):
    lines = sorted(json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n" for row in rows)
    return "sha256:" + hashlib.sha256(b"".join(lines)).hexdigest()


class Server:
    """A server of PostgreSQL in a folder of its own, without a port, under a user who may do nothing."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
        self.bin = found[-1].parent if found else pathlib.Path(shutil.which("pg_ctl")).parent
        self.data = self.folder / "data"
        self.data.mkdir(mode=0o700)
        os.chmod(self.folder, 0o755)
        if os.geteuid() == 0:
            for path in (self.folder, self.data):
                shutil.chown(path, "nobody", "nogroup")
        # The superuser of the server is called as in every other place, whoever runs it.
        self.unprivileged("initdb", "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "-D", self.data)
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c fsync=off"
        self.unprivileged("pg_ctl", "-w", "-D", self.data, "-o", options, "-l", self.folder / "log", "start")

    def unprivileged(self, program, *arguments):
        command = [self.bin / program, *arguments]
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]
        run(*command, cwd=self.folder)

    def psql(self, *arguments):
        where = f"host={self.folder} user=postgres dbname=postgres"
        return run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", where, *arguments)

    def stop(self):
        self.unprivileged("pg_ctl", "-D", self.data, "-m", "immediate", "stop")


TABLE = r"""
CREATE SCHEMA shop; CREATE SEQUENCE s;
CREATE TABLE shop."Or ders" (id bigint, name text, price numeric, weight float8, raw bytea, at timestamptz,
    took interval, open boolean, more jsonb, tags text[]);
INSERT INTO shop."Or ders" VALUES
    (9007199254740993, E'ü\n"x", y', 1.10, 0.1, '\x00ff', '2026-11-15 08:00:00+02', '1 day 2 hours', true, '{"b": 1, "a": null}', '{a,"b c"}'),
    (2, NULL, 123456789012345678901234567890.123, 'NaN', '\x', NULL, NULL, true, NULL, '{}'),
    (2, '', NULL, 1e300, NULL, 'infinity', '-3 minutes', true, '[]', NULL),
    (4, 'closed', 0, 0, NULL, NULL, NULL, false, NULL, NULL);
ALTER DATABASE postgres SET timezone = 'Asia/Tokyo';
ALTER DATABASE postgres SET datestyle = 'German';
"""
FORMS = """SET datestyle = 'ISO, YMD'; SET timezone = 'UTC'; SET intervalstyle = 'iso_8601';"""


def postgres():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = Server(folder)
        try:
            server.psql("-c", TABLE)
            where = f"host={folder} user=postgres dbname=postgres"
            rows = ["db-rowset", "--postgres", where, "--database", "shop", "--schema", "shop", "--table", "Or ders"]
            found, coverage = state(*rows, "--where", "open  AND\n(id > 1)")
            # The same rows by another way: unaligned, with characters that no value has between them.
            text = server.psql("-c", FORMS, "-A", "-F", "\x1f", "-R", "\x1e", "-P", "footer=off", "-P", "null=\x1d",
                               "-c", 'SELECT * FROM shop."Or ders" WHERE open AND id > 1')
            lines = text.rstrip("\n").split("\x1e")
            names, *values = [line.split("\x1f") for line in lines]
            read = [{n: None if v == "\x1d" else v for n, v in zip(names, row)} for row in values]
            assert len(read) == coverage["row_count"] == 3, (read, coverage)
            assert found == digest(read), (found, read)
            assert coverage["isolation_level"] == "repeatable-read"
            assert coverage["snapshot_id"].startswith("pg:"), coverage
            # Nothing changed, nothing differs; a change is seen.
            assert state(*rows, "--where", "open AND (id > 1)")[1]["query_hash"] == coverage["query_hash"]
            server.psql("-c", 'UPDATE shop."Or ders" SET name = \'x\' WHERE id = 9007199254740993')
            assert state(*rows, "--where", "open AND (id > 1)")[0] != found
            # A predicate that wants more than to select is refused, and so is one that would write.
            for predicate in ("true) TO PROGRAM 'id'; --", "nextval('s') > 0"):
                done = subprocess.run([BINARY, "evidence", "state", *rows, "--where", predicate], capture_output=True)
                assert done.returncode == 3, done
        finally:
            server.stop()
    print("row sets of PostgreSQL are what psql reads")


def sqlite():
    with tempfile.TemporaryDirectory() as folder:
        run("sqlite3", "shop.db", "CREATE TABLE o (id INTEGER, name TEXT, price REAL); "
            "INSERT INTO o VALUES (9007199254740993, 'a,\"b', 1.5), (2, NULL, 0.25), (2, '', 1);", cwd=folder)
        found, coverage = state("db-rowset", "shop.db", "--database", "shop", "--table", "o", cwd=folder)
        read = json.loads(run("sqlite3", "-json", "shop.db", "SELECT * FROM o", cwd=folder))
        assert found == digest(read) and coverage["row_count"] == len(read), (found, read)
    print("row sets of SQLite are what sqlite3 reads")


def files():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("a/b.txt", "b"), ("a-c", ""), ("ü", "x\n")):
            path = pathlib.Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        walk = run("find", ".", "-type", "f", "-exec", "sha256sum", "{}", "+", cwd=folder, env={"LC_ALL": "C", "PATH": os.environ["PATH"]})
        lines = [line.split("  ./", 1) for line in walk.splitlines()]
        text = b"".join(b"file\0%s\0%s\n" % (hash.encode(), path.encode()) for hash, path in
                        sorted(lines, key=lambda line: line[1].encode()))
        found, coverage = state("sandbox-fs", ".", "--base-image", "sha256:0", cwd=folder)
        assert found == "sha256:" + hashlib.sha256(text).hexdigest() and coverage["file_count"] == 3
        found, _ = state("git-tree", ".", cwd=folder)
        run("git", "init", "--quiet", ".", cwd=folder)
        run("git", "add", "--all", ".", cwd=folder)
        assert found == "git-sha1:" + run("git", "write-tree", cwd=folder).strip()
    print("files are what find and sha256sum, and git, say")


postgres()
sqlite()
files()
