//! Every change to a database is found, if anybody could read the difference.
//!
//! `COUNTERSIGN_MUTATIONS` sets how many are tried.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, ToSql, params};

use crate::forge::{forge, payload, set};
use crate::log::{Event, Hidden};
use crate::mutations::mutations;
use crate::random::Random;
use crate::stored::{Stored, drop_triggers, log};

#[test]
fn every_flipped_bit_that_can_be_read_is_found() {
    let (sessions, events) = log();
    let stored = Stored::of(&sessions, &events);
    let original = stored.bytes();
    let before = everything(&stored.path()).unwrap();
    let mut random = Random::seeded(1);
    let mut found = 0;
    let mut unread = 0;
    for _ in 0..mutations() / 10 {
        let bit = random.below(original.len() * 8);
        let mut flipped = original.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        stored.replace(&flipped);
        let report = stored.verify_opened(&Hidden);
        if everything(&stored.path()).as_ref() != Ok(&before) {
            assert!(!report.is_good(), "bit {bit} can be read and was not found");
            found += 1;
        } else {
            // Nobody reads this bit. Damage to the file is reported all the same.
            assert_eq!(
                report.is_good(),
                is_intact(&stored.path()),
                "bit {bit}: {:?}",
                report.failure
            );
            unread += 1;
        }
    }
    assert!(found > unread && unread > 0, "{found} {unread}");
}

#[test]
fn every_statement_that_changes_something_is_found() {
    let (sessions, events) = log();
    let stored = Stored::of(&sessions, &events);
    drop_triggers(&stored.open());
    let original = stored.bytes();
    let before = everything(&stored.path()).unwrap();
    let mut random = Random::seeded(2);
    let mut kinds = vec![0; STATEMENTS.len()];
    let mut found = 0;
    while found < mutations() / 10 {
        stored.replace(&original);
        let kind = random.below(STATEMENTS.len());
        let done = {
            let mut db = stored.open();
            let transaction = db.transaction().unwrap();
            let rows = Rows {
                db: &transaction,
                events: &events,
            };
            let done = STATEMENTS[kind](&mut random, &rows);
            // A constraint may refuse the change, which is as well.
            transaction.commit().is_ok() && done.is_ok()
        };
        if !done || everything(&stored.path()).as_ref() == Ok(&before) {
            continue;
        }
        let report = stored.verify_opened(&Hidden);
        assert!(!report.is_good(), "statement {kind} was not found");
        assert!(
            !stored.verify().is_good(),
            "statement {kind} was not found without keys"
        );
        kinds[kind] += 1;
        found += 1;
    }
    let share = found / STATEMENTS.len() / 20;
    assert!(kinds.iter().all(|count| *count > share), "{kinds:?}");
}

/// What a statement may look at.
struct Rows<'a> {
    db: &'a Connection,
    events: &'a [(usize, Event)],
}

impl Rows<'_> {
    fn any(&self, random: &mut Random) -> i64 {
        1 + random.below(self.events.len()) as i64
    }

    /// An event that another one of its session follows.
    fn followed(&self, random: &mut Random) -> i64 {
        loop {
            let row = self.any(random);
            let (owner, _) = &self.events[row as usize - 1];
            if self.events[row as usize..]
                .iter()
                .any(|(other, _)| other == owner)
            {
                return row;
            }
        }
    }

    fn event(&self, row: i64) -> &Event {
        &self.events[row as usize - 1].1
    }

    fn session(&self, random: &mut Random) -> i64 {
        1 + self.events[random.below(self.events.len())].0 as i64
    }

    fn update(&self, column: &str, value: impl ToSql, row: i64) -> rusqlite::Result<usize> {
        self.db.execute(
            &format!("UPDATE events SET {column} = ?1 WHERE id = ?2"),
            params![value, row],
        )
    }

    fn update_line(&self, line: &[u8], row: i64) -> rusqlite::Result<usize> {
        self.update("line", String::from_utf8_lossy(line), row)
    }
}

type Statement = fn(&mut Random, &Rows<'_>) -> rusqlite::Result<usize>;

const STATEMENTS: &[Statement] = &[
    // The line: a byte, the line of another row, or an event whose own hash is right.
    |random, rows| {
        let row = rows.any(random);
        let mut line = rows.event(row).line.clone();
        let at = random.below(line.len());
        line[at] = random.pick(b"0123456789abcdef{}\",: Z");
        rows.update_line(&line, row)
    },
    |random, rows| rows.update_line(&rows.event(rows.any(random)).line.clone(), rows.any(random)),
    |random, rows| {
        let row = rows.followed(random);
        let forged = forge(&rows.event(row).line, |event| match random.below(4) {
            0 => set(event, "ts_unix_ms", random.next() >> 20),
            1 => set(event, "seq", random.next() >> 60),
            2 => set(event, "tenant_id", "t2"),
            _ => set(payload(event), "call_id", "c0"),
        });
        rows.update_line(&forged, row)
    },
    // The columns beside the line.
    |random, rows| rows.update("seq", random.below(60) as i64 - 5, rows.any(random)),
    |random, rows| rows.update("session", random.below(6) as i64 - 1, rows.any(random)),
    |random, rows| rows.update("id", random.below(200) as i64 - 50, rows.any(random)),
    // The ciphertext.
    |random, rows| rows.update("sealed", None::<Vec<u8>>, rows.any(random)),
    |random, rows| {
        let row = rows.any(random);
        let mut ciphertext = rows.event(row).ciphertext.clone().unwrap_or_default();
        match random.below(3) {
            0 => ciphertext.push(0),
            1 => drop(ciphertext.pop()),
            _ => ciphertext
                .iter_mut()
                .take(1 + random.below(40))
                .last()
                .map_or((), |byte| *byte ^= 1),
        }
        rows.update("sealed", ciphertext, row)
    },
    |random, rows| {
        rows.update(
            "sealed",
            rows.event(rows.any(random)).ciphertext.clone(),
            rows.any(random),
        )
    },
    // The names of sessions.
    |random, rows| {
        let column = random.pick(&["tenant_id", "session_id"]);
        let value = random.pick(&[
            "upper(# )",
            "# || ' '",
            "# || '/'",
            "''",
            "'t1'",
            "'s1'",
            "# || char(0)",
        ]);
        let sql = format!(
            "UPDATE sessions SET {column} = {} WHERE id = ?1",
            value.replace('#', column)
        );
        rows.db.execute(&sql, [rows.session(random)])
    },
    |random, rows| {
        let (one, two) = (rows.session(random), rows.session(random));
        rows.db.execute(
            "UPDATE sessions SET session_id = 'tmp' WHERE id = ?1",
            [one],
        )?;
        let name = format!("s{two}");
        rows.db.execute(
            "UPDATE sessions SET session_id = ?1 WHERE id = ?2",
            params![format!("s{one}"), two],
        )?;
        rows.db.execute(
            "UPDATE sessions SET session_id = ?1 WHERE id = ?2",
            params![name, one],
        )
    },
    |random, rows| {
        let to = random.below(12) as i64 - 2;
        rows.db.execute(
            "UPDATE sessions SET id = ?1 WHERE id = ?2",
            [to, rows.session(random)],
        )
    },
    // Rows that are gone; the events after them may close the ranks.
    |random, rows| {
        rows.db
            .execute("DELETE FROM events WHERE id = ?1", [rows.followed(random)])
    },
    |random, rows| {
        let row = rows.followed(random);
        rows.db.execute("DELETE FROM events WHERE id = ?1", [row])?;
        rows.db
            .execute("UPDATE events SET id = -id WHERE id > ?1", [row])?;
        rows.db
            .execute("UPDATE events SET id = -id - 1 WHERE id < 0", [])
    },
    |random, rows| {
        rows.db
            .execute("DELETE FROM sessions WHERE id = ?1", [rows.session(random)])
    },
    // Rows that nobody recorded.
    |random, rows| {
        let sql = "INSERT INTO events (session, seq, line, sealed)
                   SELECT session, seq + ?2, line, sealed FROM events WHERE id = ?1";
        rows.db.execute(sql, [rows.any(random), 100])
    },
    |random, rows| {
        let sql = "INSERT INTO events (session, seq, line, sealed)
                   SELECT ?2, seq, line, sealed FROM events WHERE id = ?1";
        rows.db
            .execute(sql, [rows.any(random), 10 + random.below(3) as i64])
    },
    |random, rows| {
        let name = format!("new{}", random.below(9));
        rows.db.execute(
            "INSERT INTO sessions (tenant_id, session_id) VALUES ('t1', ?1)",
            [name],
        )
    },
    // Two rows that trade places, in whole or in part, within one session.
    |random, rows| {
        let (one, two) = same_session(random, rows);
        let columns = random.pick(&[&["line"][..], &["sealed"], &["line", "sealed"]]);
        for column in columns {
            let read = format!("SELECT {column} FROM events WHERE id = ?1");
            let value = |row| {
                rows.db
                    .query_row(&read, [row], |row| row.get::<_, Value>(0))
            };
            let (first, second) = (value(one)?, value(two)?);
            rows.update(column, second, one)?;
            rows.update(column, first, two)?;
        }
        Ok(1)
    },
    |random, rows| {
        let (one, two) = same_session(random, rows);
        rows.update("id", -1, one)?;
        rows.update("id", one, two)?;
        rows.update("id", two, -1)
    },
];

fn same_session(random: &mut Random, rows: &Rows<'_>) -> (i64, i64) {
    loop {
        let (one, two) = (rows.any(random), rows.any(random));
        if one != two && rows.events[one as usize - 1].0 == rows.events[two as usize - 1].0 {
            return (one, two);
        }
    }
}

/// All that queries over events and sessions can see: by scan, by index and by look-up.
fn everything(path: &Path) -> Result<Vec<Vec<Value>>, String> {
    let seen = || -> rusqlite::Result<Vec<Vec<Value>>> {
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut seen = Vec::new();
        for sql in [
            "SELECT *, typeof(line), typeof(sealed), typeof(seq) FROM events NOT INDEXED ORDER BY id",
            "SELECT id, session, seq FROM events INDEXED BY sqlite_autoindex_events_1 ORDER BY session, seq",
            "SELECT id FROM events ORDER BY id DESC",
            "SELECT count(*) FROM events",
            "SELECT *, typeof(tenant_id), typeof(session_id) FROM sessions NOT INDEXED ORDER BY id",
            "SELECT id FROM sessions INDEXED BY sqlite_autoindex_sessions_1 ORDER BY tenant_id, session_id",
            "SELECT count(*) FROM sessions",
            "SELECT s.id, e.id FROM sessions s CROSS JOIN events e ON e.session = s.id ORDER BY 1, 2",
            "SELECT e.id, s.id FROM events e CROSS JOIN sessions s ON e.session = s.id ORDER BY 1, 2",
        ] {
            let mut statement = db.prepare(sql)?;
            let columns = statement.column_count();
            let rows = statement.query_map([], |row| {
                (0..columns).map(|column| row.get(column)).collect()
            })?;
            for row in rows {
                seen.push(row?);
            }
        }
        let mut by_id = db.prepare("SELECT line FROM events WHERE id = ?1")?;
        let mut by_place = db.prepare("SELECT id FROM events WHERE session = ?1 AND seq = ?2")?;
        let mut by_name =
            db.prepare("SELECT id FROM sessions WHERE tenant_id = ?1 AND session_id = ?2")?;
        for id in 0..70 {
            let lines = by_id.query_map([id], |row| row.get(0))?;
            seen.push(lines.collect::<rusqlite::Result<_>>()?);
        }
        for (session, seq) in (1..4).flat_map(|session| (0..30).map(move |seq| (session, seq))) {
            let ids = by_place.query_map([session, seq], |row| row.get(0))?;
            seen.push(ids.collect::<rusqlite::Result<_>>()?);
        }
        for number in 1..4 {
            let names = [format!("t{number}"), format!("s{number}")];
            let ids = by_name.query_map(names, |row| row.get(0))?;
            seen.push(ids.collect::<rusqlite::Result<_>>()?);
        }
        Ok(seen)
    };
    seen().map_err(|error| error.to_string())
}

fn is_intact(path: &Path) -> bool {
    let intact = || -> rusqlite::Result<String> {
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.query_row("PRAGMA integrity_check", [], |row| row.get(0))
    };
    intact().as_deref() == Ok("ok")
}
