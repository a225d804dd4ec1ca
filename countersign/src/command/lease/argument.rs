//! What an argument may be, as it is written on the command line.

use std::str::FromStr;

use countersign_approval::lease::{Constraint, HostSet, IntegerRange, PathRoot, SafePrefix, Term};
use countersign_canon::{Json, Limits};

/// `NAME=KIND:VALUE`, `NAME?=KIND:VALUE` if a call may also come without it, or `NAME=absent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) name: String,
    /// `None`: the argument must be absent.
    pub(super) term: Option<Term>,
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rule) = text.split_once('=').ok_or("NAME=KIND:VALUE is needed")?;
        let (name, may_be_absent) = match name.strip_suffix('?') {
            Some(name) => (name, true),
            None => (name, false),
        };
        if name.is_empty() {
            return Err("the argument has no name".to_owned());
        }
        let term = match rule {
            "absent" => None,
            rule => Some(Term {
                constraint: constraint(rule)?,
                may_be_absent,
            }),
        };
        Ok(Self {
            name: name.to_owned(),
            term,
        })
    }
}

fn constraint(rule: &str) -> Result<Constraint, String> {
    let (kind, value) = rule.split_once(':').ok_or("KIND:VALUE is needed")?;
    let wrong = |error: &dyn std::fmt::Display| error.to_string();
    Ok(match kind {
        "exact" => Constraint::Exact(json(value)?),
        "one_of" => match json(value)? {
            Json::Array(values) => Constraint::OneOf(values),
            _ => return Err("one_of needs a JSON list".to_owned()),
        },
        "path_under" => Constraint::PathUnder(PathRoot::new(value).map_err(|error| wrong(&error))?),
        "host_in" => {
            let hosts = value.split(',').map(str::trim);
            Constraint::HostIn(HostSet::new(hosts).map_err(|error| wrong(&error))?)
        }
        "range" => Constraint::Range(range(value)?),
        "prefix" => Constraint::Prefix(SafePrefix::new(value).map_err(|error| wrong(&error))?),
        _ => {
            return Err(
                "the kinds are exact, one_of, range, path_under, host_in and prefix".to_owned(),
            );
        }
    })
}

fn json(text: &str) -> Result<Json, String> {
    Json::admit(text.as_bytes(), &Limits::event())
        .map_err(|error| format!("the value is JSON, so a text is written in quotes: {error}"))
}

fn range(text: &str) -> Result<IntegerRange, String> {
    let ends = text.split_once("..").and_then(|(min, max)| {
        let ends: (Option<i64>, Option<i64>) = (min.parse().ok(), max.parse().ok());
        ends.0.zip(ends.1)
    });
    let (min, max) = ends.ok_or("a range is two whole numbers, as in 1..500")?;
    IntegerRange::new(min, max).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Option<(Constraint, bool)>) {
        let argument: Argument = text.parse().unwrap();
        let term = argument.term.map(|it| (it.constraint, it.may_be_absent));
        (argument.name, term)
    }

    #[test]
    fn every_kind_is_read() {
        let range = IntegerRange::new(-1, 500).unwrap();
        let check = |text, name: &str, constraint, absent| {
            let expected = (name.to_owned(), Some((constraint, absent)));
            assert_eq!(read(text), expected);
        };
        check("n=range:-1..500", "n", Constraint::Range(range), false);
        check(
            "t?=exact:\"a=b:c\"",
            "t",
            Constraint::Exact("a=b:c".into()),
            true,
        );
        check(
            "t=one_of:[1,\"a\"]",
            "t",
            Constraint::OneOf(vec![1_u64.into(), "a".into()]),
            false,
        );
        check(
            "p=path_under:/srv/out",
            "p",
            Constraint::PathUnder(PathRoot::new("/srv/out").unwrap()),
            false,
        );
        check(
            "h=host_in:a.example, b.example",
            "h",
            Constraint::HostIn(HostSet::new(["a.example", "b.example"]).unwrap()),
            false,
        );
        check(
            "b=prefix:feature/",
            "b",
            Constraint::Prefix(SafePrefix::new("feature/").unwrap()),
            false,
        );
        assert_eq!(read("x=absent"), ("x".to_owned(), None));
    }

    #[test]
    fn what_is_not_plain_is_refused() {
        for text in [
            "",
            "n",
            "=exact:1",
            "n=exact",
            "n=exact:word",
            "n=exact:1 2",
            "n=one_of:1",
            "n=range:5..1",
            "n=range:1.0..2",
            "n=range:1-2",
            "n=prefix:",
            "n=path_under:relative",
            "n=path_under:/a/../b",
            "n=host_in:*.example.com",
            "n=host_in:",
            "n=regex:.*",
        ] {
            assert!(text.parse::<Argument>().is_err(), "{text}");
        }
    }
}
