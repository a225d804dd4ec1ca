//! A forbidden action, sent through a door that is really open.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::command::serve::Plan;
use crate::errors::{Code, Failure};
use crate::folder::Scratch;

pub(super) mod mcp;

/// Opens the HTTP door with the configured policies, and a data folder of its own.
pub(super) fn http(plan: &Plan) -> Result<String, Failure> {
    let folder = Scratch::new("doctor")?;
    let mut daemon = Daemon::start(plan, folder.path())?;
    let (address, token) = daemon.opened()?;
    let stranger = ask(address, "GET /v1/me", None, "")?;
    if !stranger.starts_with("HTTP/1.1 401") {
        return Err(refused_not("a caller without a token"));
    }
    let answer = ask(address, "POST /v1/actions", Some(&token), FORBIDDEN)?;
    // Without a manifest what nobody knows is held: nothing of it runs either.
    let is_stopped = ["denied", "held"]
        .iter()
        .any(|state| answer.contains(&format!("\"state\":\"{state}\"")));
    match is_stopped && !answer.contains("\"permit\"") {
        true => Ok("refuses forbidden actions and callers without a token".to_owned()),
        false => Err(refused_not("a forbidden action")),
    }
}

/// Whether a daemon of ours answers there.
pub(super) fn is_daemon(address: SocketAddr) -> bool {
    ask(address, "GET /healthz", None, "").is_ok_and(|answer| answer.contains("\"ok\""))
}

fn ask(
    address: SocketAddr,
    what: &str,
    token: Option<&str>,
    body: &str,
) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::new(Code::NoDaemon, error.to_string());
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let head = format!(
        "{what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n{body}",
        token.unwrap_or_default(),
        body.len()
    );
    stream.write_all(head.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    Ok(answer)
}

/// This program as a door with the configured policies, and a data folder of its own.
fn door(plan: &Plan, folder: &Path, arguments: &[&str]) -> Result<Command, Failure> {
    let mut command = Command::new(program()?);
    // The environment would bring the configuration back in.
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"COUNTERSIGN_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).arg("--data").arg(folder);
    let files = plan.files();
    if let Some(manifest) = files.manifest {
        command.arg("--manifest").arg(manifest);
    }
    for (flag, paths) in [("--policy", files.enforced), ("--shadow", files.shadow)] {
        for path in paths {
            command.arg(flag).arg(path);
        }
    }
    command.stdout(Stdio::piped());
    Ok(command)
}

fn program() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe();
    program.map_err(|error| Failure::new(Code::NoDaemon, error.to_string()))
}

/// A daemon that ends with us.
struct Daemon(Child);

impl Daemon {
    fn start(plan: &Plan, folder: &Path) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::new(Code::NoDaemon, error.to_string());
        let mut command = door(plan, folder, &["serve", "--listen", "127.0.0.1:0"])?;
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command.spawn().map(Self).map_err(failed)
    }

    /// Where it is, and its first token.
    fn opened(&mut self) -> Result<(SocketAddr, String), Failure> {
        let silent = || Failure::new(Code::NoDaemon, "the daemon does not start");
        let mut token = String::new();
        let out = self.0.stdout.take().ok_or_else(silent)?;
        BufReader::new(out)
            .read_line(&mut token)
            .map_err(|_| silent())?;
        let token = token
            .trim_end()
            .rsplit(' ')
            .next()
            .unwrap_or_default()
            .to_owned();
        let mut said = BufReader::new(self.0.stderr.take().ok_or_else(silent)?);
        let mut line = String::new();
        said.read_line(&mut line).map_err(|_| silent())?;
        let address = line
            .split("://")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let address = address.and_then(|address| address.parse().ok());
        match address {
            Some(address) if !token.is_empty() => Ok((address, token)),
            _ => Err(Failure::new(Code::NoDaemon, line.trim_end().to_owned())),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It keeps nothing that anybody needs.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn refused_not(what: &str) -> Failure {
    Failure::new(Code::Doctor, format!("{what} was not refused"))
}

/// Nobody declares a tool of this name.
const FORBIDDEN: &str = r#"{"session_id":"canary","tool_name":"countersign.canary.forbidden","args":{"command":"rm -rf /"}}"#;
const PATIENCE: Duration = Duration::from_secs(10);
