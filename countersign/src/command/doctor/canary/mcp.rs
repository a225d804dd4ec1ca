//! The same through the doors for MCP: a server behind each notes what reaches it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use super::{Daemon, PATIENCE, Scratch, door, program, refused_not};
use crate::command::serve::Plan;
use crate::errors::{Code, Failure};

/// Through `countersign mcp`, over its pipes.
pub(in crate::command::doctor) fn stdio(plan: &Plan) -> Result<String, Failure> {
    let folder = Scratch::new("doctor")?;
    let mut command = door(plan, folder.path(), &["mcp", "--hold-wait", "0"])?;
    serve_behind(&mut command, folder.path())?;
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    let mut door = Daemon(command.spawn().map_err(|error| silent(&error))?);
    let (stdin, stdout) = (door.0.stdin.take(), door.0.stdout.take());
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
        return Err(silent(&"it has no pipes"));
    };
    let answers = lines(stdout);
    for frame in [INITIALIZE, INITIALIZED, LIST, FORBIDDEN] {
        stdin
            .write_all(format!("{frame}\n").as_bytes())
            .map_err(|error| silent(&error))?;
    }
    loop {
        let answer = answers.recv_timeout(PATIENCE);
        let answer = answer.map_err(|_| silent(&"it does not answer"))?;
        if answer.contains("\"id\":3") {
            return judged(&answer, folder.path());
        }
    }
}

/// Through `countersign mcp serve`.
pub(in crate::command::doctor) fn http(plan: &Plan) -> Result<String, Failure> {
    let folder = Scratch::new("doctor")?;
    let arguments = [
        "mcp",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--hold-wait",
        "0",
    ];
    let mut command = door(plan, folder.path(), &arguments)?;
    serve_behind(&mut command, folder.path())?;
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut door = Daemon(command.spawn().map_err(|error| silent(&error))?);
    let stderr = door.0.stderr.take();
    let mut said = BufReader::new(stderr.ok_or_else(|| silent(&"it has no pipes"))?);
    let address = loop {
        let mut line = String::new();
        if said.read_line(&mut line).unwrap_or(0) == 0 {
            return Err(silent(&"it does not start"));
        }
        let place = line.split("http://").nth(1);
        let address = place.and_then(|place| place.split('/').next()?.parse().ok());
        if let Some(address) = address {
            break address;
        }
    };
    let greeting = post(address, "", INITIALIZE)?;
    let session = greeting.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("mcp-session-id").then_some(value)
    });
    let session = session.ok_or_else(|| silent(&"it opens no session"))?;
    let session = format!("Mcp-Session-Id: {session}\r\n");
    post(address, &session, INITIALIZED)?;
    post(address, &session, LIST)?;
    judged(&post(address, &session, FORBIDDEN)?, folder.path())
}

/// The action was answered with a refusal, and nothing of it reached the server.
fn judged(answer: &str, folder: &Path) -> Result<String, Failure> {
    let is_refused = answer.contains("\"error\"") || answer.contains("\"isError\":true");
    match is_refused && !effects(folder).exists() {
        true => Ok("refuses a forbidden call before the server sees it".to_owned()),
        false => Err(refused_not("a forbidden call")),
    }
}

/// A server that offers what is forbidden, and writes down what it is told to do.
fn serve_behind(command: &mut Command, folder: &Path) -> Result<(), Failure> {
    command.arg("--").arg(program()?).arg("demo-server");
    command.arg(effects(folder)).arg(TOOL);
    Ok(())
}

fn effects(folder: &Path) -> std::path::PathBuf {
    folder.join("effects")
}

/// Lines as they come, so that nobody waits for one for ever.
fn lines(out: ChildStdout) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

fn post(address: SocketAddr, headers: &str, body: &str) -> Result<String, Failure> {
    let mut stream =
        TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| silent(&error))?;
    let text = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.write_all(text.as_bytes()))
        .map_err(|error| silent(&error))?;
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    read.map_err(|error| silent(&error))?;
    Ok(answer)
}

fn silent(error: &dyn ToString) -> Failure {
    Failure::new(Code::NoDaemon, format!("the door: {}", error.to_string()))
}

/// Nobody allows a tool of this name.
const TOOL: &str = "countersign.canary.forbidden";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"doctor","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
const FORBIDDEN: &str = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"countersign.canary.forbidden","arguments":{"command":"rm -rf /"}}}"#;
