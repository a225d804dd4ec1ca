//! The servers behind a door, from a file.
//!
//! SECURITY: secrets stand in files of their own, or come from a command; there is no place for one
//! in here.

mod section;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum as _;
use toml_edit::Document;

use super::rules::{Mode, Own, Refusals, UnknownMethods};
use crate::errors::{Code, Failure};
use section::Section;

/// What the file says.
#[derive(Default)]
pub(super) struct Config {
    pub(super) listen: Option<SocketAddr>,
    pub(super) allow_hosts: Vec<String>,
    pub(super) allow_origins: Vec<String>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) servers: Vec<Server>,
}

/// A server, and what is said about it alone.
pub(super) struct Server {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) own: Own,
}

/// Where a server is.
pub(super) enum Place {
    Address {
        url: String,
        /// Headers that the server gets with every request.
        headers: Vec<(String, Secret)>,
    },
    Program {
        command: Vec<String>,
        env: Vec<(String, String)>,
        secrets: Vec<(String, Secret)>,
        folder: Option<PathBuf>,
    },
}

/// Where a secret is.
pub(super) enum Secret {
    File(PathBuf),
    Command(Vec<String>),
}

impl Config {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::new(Code::Config, format!("`{shown}`: {error}")))?;
        // Paths in the file are seen from where it is.
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder)
            .map_err(|message| Failure::new(Code::Config, format!("`{shown}`, {message}")))
    }

    fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let document = Document::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            format!("{}: {}", section::line(text, at), error.message())
        })?;
        let root = Section::root(text, document.as_table());
        root.only(&ROOT)?;
        let listen = root.string("listen")?;
        let listen = listen.map(|address| {
            let wrong = |_| root.wrong("listen", "is not an address such as 127.0.0.1:7300");
            address.parse().map_err(wrong)
        });
        let servers = root.table("servers")?;
        let servers = servers.ok_or("line 1: there are no servers; write [servers.NAME]")?;
        let servers = servers.tables()?.into_iter();
        let servers = servers.map(|(name, section)| Server::read(name, &section, folder));
        Ok(Self {
            listen: listen.transpose()?,
            allow_hosts: root.strings("allow_hosts")?.unwrap_or_default(),
            allow_origins: root.strings("allow_origins")?.unwrap_or_default(),
            token_file: root.string("token_file")?.map(|path| folder.join(path)),
            servers: servers.collect::<Result<_, _>>()?,
        })
    }
}

impl Server {
    fn read(name: &str, section: &Section<'_>, folder: &Path) -> Result<Self, String> {
        section.only(&SERVER)?;
        if !is_name(name) {
            return Err(section.here("a name has 1 to 100 letters, digits, `-`, `_` or `.`"));
        }
        let path = |path: String| folder.join(path);
        let policies = section.strings("policies")?;
        let own = Own {
            manifest: section.string("manifest")?.map(path),
            policies: policies.map(|all| all.into_iter().map(path).collect()),
            acs: section.string("acs")?.map(path),
            mode: section.choice("mode", |text| Mode::from_str(text, false))?,
            refusals: section.choice("refusals", |text| Refusals::from_str(text, false))?,
            unknown_methods: section.choice("unknown_methods", |text| {
                UnknownMethods::from_str(text, false)
            })?,
            hide_undeclared: section.boolean("hide_undeclared")?,
            hold_wait: section.seconds("hold_wait")?,
            response_time: section.seconds("response_time")?,
        };
        if own.hide_undeclared == Some(true) && own.manifest.is_none() {
            return Err(section.wrong("hide_undeclared", "needs a `manifest`"));
        }
        Ok(Self {
            name: name.to_owned(),
            place: Place::read(section, folder)?,
            own,
        })
    }
}

impl Place {
    fn read(section: &Section<'_>, folder: &Path) -> Result<Self, String> {
        let (url, command) = (section.string("url")?, section.strings("command")?);
        match (url, command) {
            (Some(url), None) => {
                for key in ["env", "secrets", "folder"] {
                    section.absent(key, "is for servers with a `command`")?;
                }
                let headers = secrets(section, "headers", folder)?;
                Ok(Self::Address { url, headers })
            }
            (None, Some(command)) if !command.is_empty() => {
                section.absent("headers", "is for servers with a `url`")?;
                let env = match section.table("env")? {
                    Some(env) => env.all_strings()?,
                    None => Vec::new(),
                };
                Ok(Self::Program {
                    command,
                    env,
                    secrets: secrets(section, "secrets", folder)?,
                    folder: section.string("folder")?.map(|path| folder.join(path)),
                })
            }
            _ => Err(section.here("a server has either a `url` or a `command`")),
        }
    }
}

impl Secret {
    /// The secret itself, without the line end behind it.
    pub(super) fn reveal(&self, name: &str) -> Result<String, Failure> {
        let failed =
            |message: String| Failure::new(Code::Config, format!("the secret `{name}`: {message}"));
        let bytes = match self {
            Self::File(path) => std::fs::read(path)
                .map_err(|error| failed(format!("`{}`: {error}", path.display())))?,
            Self::Command(words) => run(words).map_err(failed)?,
        };
        let text = String::from_utf8(bytes).map_err(|_| failed("it is not text".to_owned()))?;
        let text = text.trim_end_matches(['\r', '\n']);
        match text.is_empty() {
            true => Err(failed("it is empty".to_owned())),
            false => Ok(text.to_owned()),
        }
    }
}

fn run(words: &[String]) -> Result<Vec<u8>, String> {
    let (program, arguments) = words.split_first().ok_or("there is no command")?;
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("`{program}` cannot be run: {error}"))?;
    // What it says may hold the secret: only its end is told.
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("`{program}` failed: {}", output.status)),
    }
}

/// Tables such as `{ NAME = { file = "…" } }` or `{ NAME = { command = ["…"] } }`.
fn secrets(
    section: &Section<'_>,
    key: &str,
    folder: &Path,
) -> Result<Vec<(String, Secret)>, String> {
    let Some(section) = section.table(key)? else {
        return Ok(Vec::new());
    };
    let read = |(name, one): (&str, Section<'_>)| {
        one.only(&["file", "command"])?;
        let secret = match (one.string("file")?, one.strings("command")?) {
            (Some(file), None) => Secret::File(folder.join(file)),
            (None, Some(command)) if !command.is_empty() => Secret::Command(command),
            _ => return Err(one.here("a secret has either a `file` or a `command`")),
        };
        Ok((name.to_owned(), secret))
    };
    section.tables()?.into_iter().map(read).collect()
}

pub(super) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= 100 && name.bytes().all(plain)
}

const ROOT: [&str; 5] = [
    "listen",
    "allow_hosts",
    "allow_origins",
    "token_file",
    "servers",
];
const SERVER: [&str; 15] = [
    "url",
    "headers",
    "command",
    "env",
    "secrets",
    "folder",
    "manifest",
    "policies",
    "acs",
    "mode",
    "refusals",
    "unknown_methods",
    "hide_undeclared",
    "hold_wait",
    "response_time",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let error = Config::parse(text, Path::new("/etc/door")).err();
        assert_eq!(error.as_deref(), Some(expect), "{text}");
    }

    #[test]
    fn servers_are_read_with_what_is_theirs_alone() {
        let text = r#"
            listen = "127.0.0.1:0"
            token_file = "token"
            [servers.files]
            command = ["server", "--root", "/srv"]
            env = { LEVEL = "debug" }
            secrets = { KEY = { file = "key" }, TOKEN = { command = ["pass", "show", "t"] } }
            manifest = "files.yaml"
            refusals = "result"
            hide_undeclared = true
            hold_wait = 5
            [servers.web]
            url = "https://mcp.example.com/mcp"
            headers = { Authorization = { file = "/run/web" } }
            mode = "observe"
            response_time = 30
        "#;
        let config = Config::parse(text, Path::new("/etc/door")).unwrap();
        assert_eq!(
            config.token_file.as_deref(),
            Some(Path::new("/etc/door/token"))
        );
        let [files, web] = &config.servers[..] else {
            panic!("{}", config.servers.len());
        };
        assert_eq!(
            files.own.manifest.as_deref(),
            Some(Path::new("/etc/door/files.yaml"))
        );
        assert_eq!((files.own.hold_wait, web.own.hold_wait), (Some(5), None));
        assert!(matches!(files.own.refusals, Some(Refusals::Result)));
        assert!(matches!(web.own.mode, Some(Mode::Observe)));
        assert_eq!(web.own.response_time, Some(30));
        let Place::Program { env, secrets, .. } = &files.place else {
            panic!("a program");
        };
        assert_eq!(env, &[("LEVEL".to_owned(), "debug".to_owned())]);
        let [(_, Secret::File(key)), (_, Secret::Command(pass))] = &secrets[..] else {
            panic!("two secrets");
        };
        assert_eq!((key.as_path(), pass.len()), (Path::new("/etc/door/key"), 3));
        let Place::Address { headers, .. } = &web.place else {
            panic!("an address");
        };
        assert!(matches!(&headers[..], [(name, Secret::File(_))] if name == "Authorization"));
    }

    #[test]
    fn what_is_not_understood_is_said_with_its_line() {
        check(
            "[servers.a]\nurl = \"http://x/\"\nmanifst = \"m\"",
            "line 3: unknown key `manifst` in [servers.a], did you mean `manifest`?",
        );
        check(
            "lisen = \"x\"\n[servers]",
            "line 1: unknown key `lisen`, did you mean `listen`?",
        );
        check("", "line 1: there are no servers; write [servers.NAME]");
        check(
            "[servers.a]",
            "line 1: [servers.a]: a server has either a `url` or a `command`",
        );
        check(
            "[servers.a]\nurl = \"http://x/\"\ncommand = [\"y\"]",
            "line 1: [servers.a]: a server has either a `url` or a `command`",
        );
        check(
            "[servers.a]\ncommand = [\"y\"]\nsecrets = { K = \"hunter2\" }",
            "line 3: `K` in [servers.a.secrets] must be a table",
        );
        check(
            "[servers.a]\nurl = \"http://x/\"\nheaders = { K = { value = \"hunter2\" } }",
            "line 3: unknown key `value` in [servers.a.headers.K], expected one of `file`, `command`",
        );
        check(
            "[servers.a]\nurl = \"http://x/\"\nrefusals = \"errors\"",
            "line 3: `refusals` in [servers.a] cannot be `errors`",
        );
        check(
            "[servers.a]\nurl = \"http://x/\"\nhold_wait = -1",
            "line 3: `hold_wait` in [servers.a] must be a number of seconds",
        );
        check(
            "[servers.\"../x\"]\nurl = \"http://x/\"",
            "line 1: [servers.../x]: a name has 1 to 100 letters, digits, `-`, `_` or `.`",
        );
        check(
            "[servers.a]\nurl = 1",
            "line 2: `url` in [servers.a] must be a text",
        );
        check(
            "[servers.a]\nurl = \"http://x/\"\nfolder = \"/\"",
            "line 3: `folder` in [servers.a] is for servers with a `command`",
        );
        check("[servers", "line 1: unclosed table, expected `]`");
    }
}
