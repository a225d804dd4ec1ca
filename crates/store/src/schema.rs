//! Opening the database file, and its migrations.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::{Durability, Error, Folder};

/// How long a statement waits for another process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// For so long nobody sleeps: falling asleep and being woken takes a quarter of it.
const AS_A_COMMIT: Duration = Duration::from_micros(500);
const AS_SOME_COMMITS: Duration = Duration::from_millis(10);
const BRIEF_PAUSE: Duration = Duration::from_micros(50);
const LONG_PAUSE: Duration = Duration::from_millis(1);
/// The pragma that has the version of the schema.
pub(crate) const VERSION: &str = "user_version";
/// "CSGN" in the file header says whose file this is.
const APPLICATION_ID: i32 = 0x4353_474e;
/// Older versions can corrupt a write-ahead log that two connections check-point at once.
const OLDEST_SQLITE: i32 = 3_051_003;

/// From this level on SQLite waits for the disk before a commit returns.
const SYNCHRONOUS_FULL: i64 = 2;

/// Each entry takes the schema one version up. Entries are never changed, only added.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/0001_log.sql"),
    include_str!("schema/0002_approvals.sql"),
    include_str!("schema/0003_identity.sql"),
    include_str!("schema/0004_tree.sql"),
];

/// The one connection that writes.
pub(crate) fn open_writer(folder: &Folder, durability: Durability) -> Result<Connection, Error> {
    let folder_error = |source| Error::Folder {
        path: folder.path().to_owned(),
        source,
    };
    folder.create().map_err(folder_error)?;
    if !folder.database().exists() {
        folder.create_database().map_err(folder_error)?;
    }
    let path = folder.database();
    let connection = retry_while_busy(|| prepare_writer(&path, durability))?;
    folder.sync().map_err(folder_error)?;
    Ok(connection)
}

/// A connection that cannot write.
pub(crate) fn open_reader(folder: &Folder) -> Result<Connection, Error> {
    let path = folder.database();
    refuse_absent(&path, folder)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(&path, flags);
    let mut connection = opened.map_err(|error| why_closed(error, &path))?;
    settle(&mut connection)?;
    let mut migrations = version(&connection, &path);
    if let (Err(Error::Database(_)), Some(uri)) = (&migrations, folder.frozen_database()) {
        connection = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?;
        settle(&mut connection)?;
        migrations = version(&connection, &path);
    }
    match migrations? {
        0 => Err(Error::NoLog(folder.path().to_owned())),
        _ => Ok(connection),
    }
}

/// A folder that may not be entered is told apart from one that holds no log.
fn refuse_absent(path: &Path, folder: &Folder) -> Result<(), Error> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Err(source) if !matches!(source.kind(), NotFound | NotADirectory) => Err(Error::Denied {
            path: path.to_owned(),
            source,
        }),
        _ => Err(Error::NoLog(folder.path().to_owned())),
    }
}

/// SQLite does not say why it cannot open a file; the system does.
fn why_closed(error: rusqlite::Error, path: &Path) -> Error {
    match fs::File::open(path) {
        Err(source) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => Error::Denied {
            path: path.to_owned(),
            source,
        },
        _ => error.into(),
    }
}

fn prepare_writer(path: &Path, durability: Durability) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags);
    let mut connection = opened.map_err(|error| why_closed(error, path))?;
    refuse_read_only(&connection, path)?;
    settle(&mut connection)?;
    version(&connection, path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", durability.pragma())?;
    // Has a meaning on macOS only, where a plain fsync leaves data in the drive's cache.
    connection.pragma_update(None, "fullfsync", true)?;
    // SECURITY: an erased key must not live on in unused parts of the file.
    connection.pragma_update(None, "secure_delete", true)?;
    migrate(&mut connection, path)?;
    note_durability(&connection)?;
    refuse_foreign_objects(&connection, path)?;
    Ok(connection)
}

/// What every connection has in common.
fn settle(connection: &mut Connection) -> Result<(), Error> {
    wait_for_others(connection, BUSY_TIMEOUT)?;
    // Otherwise the planner looks at the values, and a cached statement is prepared anew whenever it
    // gets other ones: that costs more than to run it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Statements wait for other processes, up to `longest`.
///
/// Whoever writes is done within a millisecond, as a rule. SQLite's own patience begins with a pause of one,
/// in which others come first.
pub(crate) fn wait_for_others(
    connection: &mut Connection,
    longest: Duration,
) -> rusqlite::Result<()> {
    let mut since = Instant::now();
    connection.busy_handler(Some(move |pauses| {
        if pauses == 0 {
            since = Instant::now();
        }
        let waited = since.elapsed();
        let waits = waited < longest;
        if waits {
            pause(waited);
        }
        waits
    }))
}

fn pause(waited: Duration) {
    if waited < AS_A_COMMIT {
        std::thread::yield_now();
    } else if waited < AS_SOME_COMMITS {
        std::thread::sleep(BRIEF_PAUSE);
    } else {
        std::thread::sleep(LONG_PAUSE);
    }
}

/// Checkpoints say what an acknowledgement was worth, so the tree remembers a writer that does not wait
/// for the disk.
fn note_durability(connection: &Connection) -> Result<(), Error> {
    let level: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if level < SYNCHRONOUS_FULL {
        connection.execute("UPDATE tree SET relaxed = 1 WHERE relaxed = 0", [])?;
    }
    Ok(())
}

/// SECURITY: a trigger that somebody added could swallow or change what is written, so nothing is
/// written where the schema holds more than the migrations make.
fn refuse_foreign_objects(connection: &Connection, path: &Path) -> Result<(), Error> {
    let ours = Connection::open_in_memory()?;
    for migration in MIGRATIONS {
        ours.execute_batch(migration)?;
    }
    let ours = objects(&ours)?;
    match objects(connection)?
        .into_iter()
        .find(|object| !ours.contains(object))
    {
        None => Ok(()),
        Some((kind, name, _)) => {
            let problem = format!("has a {kind} `{name}` that this program did not make");
            Err(Error::Foreign {
                path: path.to_owned(),
                problem,
            })
        }
    }
}

/// Everything that the schema holds, but for the statistics of the query planner.
fn objects(connection: &Connection) -> Result<Vec<(String, String, Option<String>)>, Error> {
    let sql = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'
               ORDER BY type, name";
    let mut statement = connection.prepare(sql)?;
    let objects = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(objects.collect::<Result<_, _>>()?)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = version(&transaction, path)?;
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(done) {
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, VERSION, index as i64 + 1)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.commit()?;
    Ok(())
}

/// How many migrations the file has seen; refuses files that are not ours.
fn version(connection: &Connection, path: &Path) -> Result<usize, Error> {
    let foreign = |problem: String| Error::Foreign {
        path: path.to_owned(),
        problem,
    };
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(foreign(format!(
            "needs SQLite 3.51.3 or newer, this is {}",
            rusqlite::version()
        )));
    }
    let not_a_database = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => foreign("is not a database".to_owned()),
        _ => error.into(),
    };
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    // Another process may be making the file right now, all in one transaction. The tables are
    // looked at first: where they are, the rest is too.
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(not_a_database)?;
    let application = number("application_id").map_err(not_a_database)?;
    let version = number(VERSION).map_err(not_a_database)?;
    if tables > 0 && application != i64::from(APPLICATION_ID) {
        return Err(foreign("is a database of another program".to_owned()));
    }
    match usize::try_from(version) {
        Ok(version) if version <= MIGRATIONS.len() => Ok(version),
        _ => Err(foreign(format!(
            "has schema version {version}; this program knows versions up to {}",
            MIGRATIONS.len()
        ))),
    }
}

fn refuse_read_only(connection: &Connection, path: &Path) -> Result<(), Error> {
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        return Err(Error::ReadOnly(path.to_owned()));
    }
    Ok(())
}

/// Several processes may open a new folder at once; the switch to write-ahead logging does not
/// wait for the others by itself.
fn retry_while_busy<T>(mut open: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match open() {
            Err(Error::Busy) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rusqlite::{Connection, ErrorCode};

    use super::{AS_A_COMMIT, AS_SOME_COMMITS, wait_for_others};

    const BEGIN: &str = "BEGIN IMMEDIATE";
    const END: &str = "ROLLBACK";

    #[test]
    fn whoever_waits_gives_up_in_the_end_and_waits_as_long_the_next_time() {
        let (_folder, holder, mut waiter) = two_connections();
        holder.execute_batch(BEGIN).unwrap();
        for longest in [Duration::ZERO, AS_A_COMMIT * 2, AS_SOME_COMMITS * 3] {
            wait_for_others(&mut waiter, longest).unwrap();
            for _ in 0..2 {
                let since = Instant::now();
                let refused = waiter.execute_batch(BEGIN).unwrap_err();
                let code = refused.sqlite_error_code();
                assert_eq!(
                    code,
                    Some(ErrorCode::DatabaseBusy),
                    "{longest:?}: {refused}"
                );
                assert!(since.elapsed() >= longest, "{longest:?}");
            }
        }
        holder.execute_batch(END).unwrap();
        waiter.execute_batch(BEGIN).unwrap();
    }

    #[test]
    fn whoever_waits_goes_on_when_the_other_is_done() {
        let (_folder, holder, mut waiter) = two_connections();
        wait_for_others(&mut waiter, Duration::from_secs(600)).unwrap();
        for held in [AS_A_COMMIT / 2, AS_A_COMMIT * 2, AS_SOME_COMMITS * 3] {
            holder.execute_batch(BEGIN).unwrap();
            std::thread::scope(|scope| {
                let waiter = &mut waiter;
                let waits = scope.spawn(move || waiter.execute_batch(BEGIN));
                std::thread::sleep(held);
                assert!(!waits.is_finished(), "began while another one was writing");
                holder.execute_batch(END).unwrap();
                waits.join().unwrap().unwrap();
            });
            waiter.execute_batch(END).unwrap();
        }
    }

    fn two_connections() -> (tempfile::TempDir, Connection, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let open = || Connection::open(folder.path().join("log.db")).unwrap();
        let (holder, waiter) = (open(), open());
        (folder, holder, waiter)
    }
}
