//! The configuration of the daemon: a file, the environment and flags, in one table.
//!
//! What is said later goes before: defaults, the file, the environment, flags. A key that nobody knows
//! and a value that cannot be honoured are errors. There is no place for a secret in it: files and
//! commands that give one are named.

mod keys;
mod near;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use toml_edit::{Document, Item, TableLike};

use self::keys::Kind;
pub(crate) use self::keys::{KEYS, Key};
use self::near::{misspelt, near};
use crate::errors::{Code, Failure};
use crate::input;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File(String, usize),
    Environment(String),
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(file, line) => write!(f, "{file}:{line}"),
            Self::Environment(name) => f.write_str(name),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// What is set, and by whom.
#[derive(Debug, Default)]
pub(crate) struct Config {
    values: BTreeMap<&'static str, (Vec<String>, Origin)>,
}

impl Config {
    /// Defaults, the file, the environment of this process. Flags are added with [`Config::flag`].
    pub(crate) fn of_process(file: Option<&Path>) -> Result<Self, Failure> {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        misspelt(names)?;
        Self::read(file, &|name| std::env::var(name).ok())
    }

    fn read(
        file: Option<&Path>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        let mut config = Self::default();
        for key in KEYS {
            if let Some(default) = key.default {
                config.set(key, vec![default.to_owned()], Origin::Default)?;
            }
        }
        if let Some(file) = file {
            config.read_file(file)?;
        }
        for key in KEYS {
            let name = variable(key.name);
            if let Some(text) = environment(&name) {
                let values = match key.kind {
                    Kind::List => text.split(',').map(|part| part.trim().to_owned()).collect(),
                    _ => vec![text],
                };
                config.set(key, values, Origin::Environment(name))?;
            }
        }
        Ok(config)
    }

    /// What somebody said on the command line, if they did.
    pub(crate) fn flag(&mut self, name: &str, values: Vec<String>) -> Result<(), Failure> {
        match KEYS.iter().find(|key| key.name == name) {
            Some(key) if !values.is_empty() => self.set(key, values, Origin::Flag),
            _ => Ok(()),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.0.first().map(String::as_str)
    }

    pub(crate) fn list(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], |(values, _)| values)
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    pub(crate) fn count(&self, name: &str) -> u64 {
        let text = self.text(name);
        text.and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// A value with what set it, for the message that it cannot be honoured.
    pub(crate) fn wrong(&self, name: &str, problem: &dyn fmt::Display) -> Failure {
        let origin = self.values.get(name).map(|(_, origin)| origin);
        let origin = origin.map_or(String::new(), |origin| format!(" ({origin})"));
        Failure::new(Code::Settings, format!("`{name}`{origin}: {problem}"))
    }

    /// Every key that nothing sets, in the order of the table.
    pub(crate) fn unset(&self) -> impl Iterator<Item = &'static Key> {
        KEYS.iter()
            .filter(|key| !self.values.contains_key(key.name))
    }

    /// Every value that is set, in the order of the table.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static Key, &[String], &Origin)> {
        KEYS.iter().filter_map(|key| {
            let (values, origin) = self.values.get(key.name)?;
            Some((key, values.as_slice(), origin))
        })
    }

    fn set(
        &mut self,
        key: &'static Key,
        values: Vec<String>,
        origin: Origin,
    ) -> Result<(), Failure> {
        let fits = match key.kind {
            Kind::Text | Kind::List => values.iter().all(|value| !value.is_empty()),
            Kind::Flag => values
                .iter()
                .all(|value| matches!(value.as_str(), "true" | "false")),
            Kind::Count => values.iter().all(|value| value.parse::<u32>().is_ok()),
        };
        self.values.insert(key.name, (values, origin));
        match fits {
            true => Ok(()),
            false => Err(self.wrong(
                key.name,
                &match key.kind {
                    Kind::Text | Kind::List => "an empty text says nothing",
                    Kind::Flag => "expected true or false",
                    Kind::Count => "expected a whole number that is not negative",
                },
            )),
        }
    }

    fn read_file(&mut self, file: &Path) -> Result<(), Failure> {
        let shown = file.display().to_string();
        let bytes = input::file(&shown, MAX_BYTES)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let line = |at: Option<usize>| {
            let before = at.and_then(|at| text.get(..at)).unwrap_or_default();
            before.matches('\n').count() + 1
        };
        let document = Document::parse(text.as_str()).map_err(|error| {
            let at = line(error.span().map(|span| span.start));
            Failure::new(Code::Settings, format!("{shown}:{at}: {}", error.message()))
        })?;
        let mut open: Vec<(String, &dyn TableLike)> = vec![(String::new(), document.as_table())];
        while let Some((prefix, table)) = open.pop() {
            for (name, item) in table.iter() {
                let name = format!("{prefix}{name}");
                let at = line(item.span().map(|span| span.start));
                if let (Some(table), true) = (item.as_table_like(), is_section(&name)) {
                    open.push((format!("{name}."), table));
                    continue;
                }
                let Some(key) = KEYS.iter().find(|key| key.name == name) else {
                    let text = format!("{shown}:{at}: there is no key `{name}`{}", near(&name));
                    return Err(Failure::new(Code::Settings, text));
                };
                let values = values(item, key).ok_or_else(|| {
                    let text = format!("{shown}:{at}: `{name}` takes {}", key.kind.takes());
                    Failure::new(Code::Settings, text)
                })?;
                self.set(key, values, Origin::File(shown.clone(), at))?;
            }
        }
        Ok(())
    }
}

fn values(item: &Item, key: &Key) -> Option<Vec<String>> {
    match key.kind {
        Kind::Text => Some(vec![item.as_str()?.to_owned()]),
        Kind::Flag => Some(vec![item.as_bool()?.to_string()]),
        Kind::Count => Some(vec![item.as_integer()?.to_string()]),
        Kind::List => {
            let array = item.as_array()?;
            array
                .iter()
                .map(|value| value.as_str().map(str::to_owned))
                .collect()
        }
    }
}

fn is_section(name: &str) -> bool {
    let prefix = format!("{name}.");
    KEYS.iter().any(|key| key.name.starts_with(&prefix))
}

/// The variable that sets a key: `tls.cert` is `COUNTERSIGN_TLS_CERT`.
pub(crate) fn variable(name: &str) -> String {
    format!(
        "COUNTERSIGN_{}",
        name.replace('.', "_").to_ascii_uppercase()
    )
}

const MAX_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, variables: &[(&str, &str)]) -> Result<Config, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("countersign.toml");
        std::fs::write(&file, text).unwrap();
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Config::read(Some(&file), &find)
    }

    #[test]
    fn what_is_said_later_goes_before() {
        let text = "listen = \"127.0.0.1:1\"\npolicy = [\"a\", \"b\"]\n\n[tls]\ncert = \"c.pem\"\n";
        let mut config = read(text, &[("COUNTERSIGN_THREADS", "8")]).unwrap();
        assert_eq!(config.text("listen"), Some("127.0.0.1:1"));
        assert_eq!(config.list("policy"), ["a", "b"]);
        assert_eq!(config.text("tls.cert"), Some("c.pem"));
        assert_eq!(
            (config.count("threads"), config.count("max_connections")),
            (8, 1024)
        );
        config
            .flag("listen", vec!["127.0.0.1:2".to_owned()])
            .unwrap();
        config.flag("threads", Vec::new()).unwrap();
        let origins: Vec<String> = config
            .shown()
            .filter(|(key, _, _)| ["listen", "policy", "threads", "tls.cert"].contains(&key.name))
            .map(|(_, _, origin)| origin.to_string())
            .collect();
        assert_eq!(origins[0], "flag");
        assert!(origins[1].ends_with("countersign.toml:2"), "{origins:?}");
        assert_eq!(origins[2], "COUNTERSIGN_THREADS");
        assert!(origins[3].ends_with("countersign.toml:5"), "{origins:?}");
    }

    #[test]
    fn what_nobody_knows_is_an_error() {
        let check = |text: &str, expect: &str| {
            let found = read(text, &[]).unwrap_err().message().to_owned();
            assert!(found.contains(expect), "{text}: {found}");
        };
        check("lisen = \"x\"", "there is no key `lisen`; `listen`?");
        check(
            "[tls]\ncertificate_of_the_server = \"x\"",
            "countersign.toml:2: there is no key",
        );
        check("[rates]\ntoken = 1", "there is no key `rates`");
        check("threads = \"many\"", "`threads` takes a whole number");
        check("listen = 5", "`listen` takes a text");
        check("[telemetrie]\nfile = \"x\"", "`telemetrie`; `telemetry`?");
        check(
            "[telemetry]\notlp_headers = \"a: b\"",
            "`telemetry.otlp_headers`; `telemetry.otlp_headers_file`?",
        );
        check("threads = -1", "expected a whole number");
        check("listen = ", "countersign.toml:1");
        let names = |name: &str| misspelt([name.to_owned()].into_iter());
        let wrong = names("COUNTERSIGN_LISTN").unwrap_err();
        assert!(wrong.message().ends_with("`COUNTERSIGN_LISTEN`?"));
        for other in [
            "COUNTERSIGN_LISTEN",
            "COUNTERSIGN_TOKEN",
            "COUNTERSIGN_FULL",
            "LISTN",
        ] {
            assert!(names(other).is_ok(), "{other}");
        }
        let wrong = read("", &[("COUNTERSIGN_NO_AUTH", "perhaps")]).unwrap_err();
        assert!(
            wrong.message().contains("COUNTERSIGN_NO_AUTH"),
            "{}",
            wrong.message()
        );
    }
}
