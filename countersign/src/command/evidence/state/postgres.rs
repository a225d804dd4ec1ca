//! Rows of a table of PostgreSQL, read by `psql`.
//!
//! Whoever has such a database has its client, and that client knows passwords, certificates and service
//! files; a driver of our own would bring some twenty crates and a second way to keep secrets.

use std::process::{Command, Stdio};

use countersign_canon::Json;

use super::failed;
use crate::errors::Failure;

/// What was read in one transaction.
pub(super) struct Rows {
    /// Each row as JSON.
    pub(super) rows: Vec<Vec<u8>>,
    /// What the database calls the state that the transaction saw.
    pub(super) snapshot: String,
}

/// Reads `schema.table` where the predicate holds.
pub(super) fn read(
    connection: &str,
    table: (&str, &str),
    predicate: &str,
) -> Result<Rows, Failure> {
    if has_password(connection) {
        return Err(failed(
            "a connection string with a password can be seen by everybody on this machine: use PGPASSWORD, \
             ~/.pgpass or a service file",
        ));
    }
    check(predicate).map_err(failed)?;
    let (schema, table) = (super::rows::quoted(table.0), super::rows::quoted(table.1));
    let copy = format!(
        "COPY (SELECT * FROM {schema}.{table} WHERE (\n{predicate}\n)) TO STDOUT \
         WITH (FORMAT csv, HEADER, FORCE_QUOTE *)"
    );
    let statements = [
        BEGIN,
        FORMS,
        "SELECT pg_current_snapshot()",
        &copy,
        "COMMIT",
    ];
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-A", "-t", "-w", "-v", "ON_ERROR_STOP=1"])
        .args(["-d", connection])
        .args(statements.iter().flat_map(|statement| ["-c", statement]))
        .env("PGCLIENTENCODING", "UTF8")
        .stdin(Stdio::null());
    let output = psql.output();
    let output = output.map_err(|error| failed(format!("cannot run `psql`: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("psql: {}", said.trim())));
    }
    let text = String::from_utf8(output.stdout);
    let text = text.map_err(|_| failed("psql wrote something else than UTF-8"))?;
    let cut = text.split_once('\n').filter(|(first, _)| !first.is_empty());
    let (snapshot, table) = cut.ok_or_else(|| failed("psql named no snapshot"))?;
    Ok(Rows {
        rows: rows(table).ok_or_else(|| failed("psql wrote no table"))?,
        snapshot: format!("pg:{snapshot}"),
    })
}

/// The rows of a table in CSV whose first line has the names of the columns, each as JSON.
fn rows(table: &str) -> Option<Vec<Vec<u8>>> {
    let mut rest = table;
    let mut columns = Vec::new();
    for name in record(&mut rest)? {
        columns.push(name?);
    }
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let values = record(&mut rest)?;
        if values.len() != columns.len() {
            return None;
        }
        let members = columns.iter().map(String::as_str).zip(values);
        let row = Json::object(members.map(|(name, value)| (name, Json::from(value))));
        rows.push(row.to_sorted_ascii());
    }
    Some(rows)
}

/// One record, which may have line ends inside quotes. What is not quoted and empty is null.
fn record(rest: &mut &str) -> Option<Vec<Option<String>>> {
    let mut values = Vec::new();
    loop {
        let value = match rest.strip_prefix('"') {
            Some(inside) => {
                let (value, after) = quoted_value(inside)?;
                *rest = after;
                Some(value)
            }
            None => {
                let end = rest.find([',', '\n'])?;
                let (value, after) = rest.split_at_checked(end)?;
                *rest = after;
                (!value.is_empty()).then(|| value.to_owned())
            }
        };
        values.push(value);
        match rest.strip_prefix(',') {
            Some(after) => *rest = after,
            None => {
                *rest = rest.strip_prefix('\n')?;
                return Some(values);
            }
        }
    }
}

fn quoted_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"')?;
        value.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                value.push('"');
                rest = more;
            }
            None => return Some((value, after)),
        }
    }
}

fn has_password(connection: &str) -> bool {
    let address = connection.split_once("://").map_or("", |(_, rest)| rest);
    let user = address.split(['/', '?']).next().unwrap_or_default();
    let in_address = user
        .split_once('@')
        .is_some_and(|(who, _)| who.contains(':'));
    in_address || connection.to_ascii_lowercase().contains("password")
}

/// SECURITY: a predicate that could end the statement around it could do anything that the connection
/// may. Quotes and brackets must close inside of it; comments, statements and escapes are refused.
fn check(predicate: &str) -> Result<(), String> {
    let refuse = |why: &str| Err(format!("the predicate cannot be used: {why}"));
    let (mut depth, mut quote) = (0_usize, None);
    let mut before = ' ';
    for letter in predicate.chars() {
        match (quote, letter) {
            (_, '\\') => return refuse("it has a backslash"),
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, ';' | '$') => return refuse("it has a semicolon or a dollar sign"),
            (None, '-') if before == '-' => return refuse("it has a comment"),
            (None, '*') if before == '/' => return refuse("it has a comment"),
            (None, '(') => depth += 1,
            (None, ')') if depth == 0 => return refuse("a bracket closes that it did not open"),
            (None, ')') => depth -= 1,
            _ => {}
        }
        before = letter;
    }
    match depth == 0 && quote.is_none() {
        true => Ok(()),
        false => refuse("a bracket or a quote stays open"),
    }
}

/// Nothing is written, and everything is seen as it was at one moment.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
/// Values have one text, whatever the server, the database or the user prefers.
const FORMS: &str = "SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL timezone = 'UTC'; \
    SET LOCAL intervalstyle = 'iso_8601'; SET LOCAL extra_float_digits = 1; \
    SET LOCAL bytea_output = 'hex'; SET LOCAL xmlbinary = 'base64'; \
    SET LOCAL lc_monetary = 'C'; SET LOCAL standard_conforming_strings = on";

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop at once")]
mod tests {
    use super::*;

    #[test]
    fn csv_keeps_nulls_quotes_and_line_ends() {
        let table = "id,\"a b\",note\n\"1\",,\"x\"\n\"2\",\"\",\"say \"\"a\n,b\"\"\"\n";
        let found = rows(table).unwrap();
        let text: Vec<_> = found
            .iter()
            .map(|row| String::from_utf8_lossy(row))
            .collect();
        assert_eq!(
            text,
            [
                r#"{"a b":null,"id":"1","note":"x"}"#,
                r#"{"a b":"","id":"2","note":"say \"a\n,b\""}"#
            ]
        );
        for broken in [
            "",
            "a",
            "a\n\"1",
            "a\n\"1\"",
            "a,b\n\"1\"\n",
            "a\n\"1\"x\n",
            ",\n",
        ] {
            assert!(rows(broken).is_none(), "{broken:?}");
        }
    }

    #[test]
    fn a_predicate_cannot_leave_its_place() {
        for good in [
            "true",
            "state = 'open' AND (a > 1 OR b - 1 < 2)",
            "\"a;b\" = 'x--y'",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "true) TO PROGRAM 'id'",
            "true; DROP TABLE t",
            "true -- x",
            "true /* x */",
            "'open",
            "(true",
            "a = E'\\'' ",
            "a = $$x$$",
            "\"a",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn passwords_do_not_stand_in_connection_strings() {
        for bad in ["host=a password=x", "postgres://u:p@h/d", "PASSWORD = x"] {
            assert!(has_password(bad), "{bad}");
        }
        for good in [
            "service=shop",
            "postgres://u@h:5432/d",
            "host=/tmp dbname=shop",
        ] {
            assert!(!has_password(good), "{good}");
        }
    }
}
