//! Faults of an MCP door: what should have been stopped reaches the server after all.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use countersign_canon::Json;

use crate::http::{Answer, Request, json};

pub(crate) fn before(fault: &str, request: &mut Request, scratch: &Path) -> Option<Answer> {
    let text = request.text();
    let message = request.json();
    let method = message
        .get("method")
        .and_then(Json::as_str)
        .unwrap_or_default();
    match fault {
        "any-origin" => request.drop_header("origin"),
        "last-name-wins" if text.contains("disk_format") && !message.is_object_of_one_name() => {
            return Some(call("disk_format", &Json::from(4_u64), scratch));
        }
        "passes-methods" if !method.is_empty() && !KNOWN.contains(&method) => {
            let id = message.get("id").cloned().unwrap_or(Json::Null);
            return Some(call("disk_format", &id, scratch));
        }
        "calls-twice" if method == "tools/call" => {
            let id = message.get("id").cloned().unwrap_or(Json::Null);
            drop(call("catalog_list", &id, scratch));
        }
        _ => {}
    }
    None
}

pub(crate) fn after(fault: &str, request: &Request, answer: &mut Answer, scratch: &Path) {
    let (message, said) = (request.json(), answer.json());
    let code = said
        .get("error")
        .and_then(|error| error.get("code")?.as_i64());
    let is_passed = match fault {
        "passes-undeclared" => code == Some(-32000),
        "passes-held" => code == Some(-32001),
        "passes-tainted" => code == Some(-32000) && request.text().contains("mail_send"),
        _ => false,
    };
    let name = message
        .get("params")
        .and_then(|params| params.get("name")?.as_str());
    if let (true, Some(name)) = (is_passed, name) {
        let id = message.get("id").cloned().unwrap_or(Json::Null);
        *answer = call(name, &id, scratch);
    }
}

/// Makes the server behind the door do it.
fn call(tool: &str, id: &Json, scratch: &Path) -> Answer {
    let bin = std::env::var_os("BROKEN_SERVER_PROGRAM").expect("the program under test");
    let mut server = Command::new(bin)
        .arg("demo-server")
        .arg(scratch.join("effects"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let asked = Json::object([
        ("jsonrpc", Json::from("2.0")),
        ("id", id.clone()),
        ("method", Json::from("tools/call")),
        ("params", Json::object([("name", Json::from(tool))])),
    ]);
    let mut stdin = server.stdin.take().unwrap();
    stdin.write_all(&asked.to_sorted()).unwrap();
    stdin.write_all(b"\n").unwrap();
    drop(stdin);
    let mut line = String::new();
    let mut out = BufReader::new(server.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    server.wait().unwrap();
    Answer::new(200, &json(line.trim_end().as_bytes()))
}

trait OneName {
    /// Whether a strict reader took it, and no two of its names differ in case only.
    fn is_object_of_one_name(&self) -> bool;
}

impl OneName for Json {
    fn is_object_of_one_name(&self) -> bool {
        let params = self.get("params").and_then(Json::as_object);
        params.is_some_and(|params| !params.contains_key("Name"))
    }
}

const KNOWN: [&str; 3] = ["initialize", "tools/list", "tools/call"];
