//! A small MCP server for tests, on the standard library alone. It reads as carelessly as it can:
//! whatever looks like a call is counted as one.
//!
//! Arguments: `--effects FILE` (one line for each call), `--received FILE` (every line that came),
//! `--changed` (another definition of `echo`).
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a toy may stop at once"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, Write as _};
use std::time::Duration;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let open = |path: String| {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap()
    };
    let mut effects = after("--effects").map(open);
    let mut received = after("--received").map(open);
    let changed = arguments.iter().any(|argument| argument == "--changed");
    eprintln!("toy: ready");
    for line in io::stdin().lock().split(b'\n') {
        let line = line.unwrap();
        note(&mut received, &line);
        let text = String::from_utf8_lossy(&line).into_owned();
        if text.to_lowercase().contains("tools/call") && text.contains("\"method\"") {
            note(&mut effects, &line);
        }
        answer(&text, changed);
    }
    eprintln!("toy: end of input");
    std::process::exit(7);
}

fn answer(text: &str, changed: bool) {
    let Some(id) = value(text, "\"id\"") else {
        return;
    };
    let name = value(text, "\"name\"").unwrap_or_default();
    let result = match value(text, "\"method\"").unwrap_or_default().as_str() {
        "\"initialize\"" => format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"toy","version":"1"}},"pid":{}}}"#,
            std::process::id()
        ),
        "\"tools/list\"" => tools(changed),
        "\"tools/call\"" if text.contains("later") => format!(
            r#"{{"task":{{"taskId":"t{id}","status":"working","ttl":null,"createdAt":"","lastUpdatedAt":""}}}}"#
        ),
        "\"tasks/result\"" => DONE.to_owned(),
        "\"tasks/get\"" => format!(r#"{{"taskId":"t","status":"completed","result":{DONE}}}"#),
        "\"tools/call\"" => match call(&name, &id) {
            Some(result) => result,
            None => return,
        },
        "\"resources/read\"" => r#"{"contents":[{"uri":"toy:x","text":"x"}]}"#.to_owned(),
        "" => return,
        _ => "{}".to_owned(),
    };
    let aside = match text.contains("around") {
        true => r#""aside":"done","#,
        false => "",
    };
    // The id comes last, as some servers send it.
    say(&format!(
        r#"{{{aside}"result":{result},"jsonrpc":"2.0","id":{id}}}"#
    ));
}

fn call(name: &str, id: &str) -> Option<String> {
    match name {
        "\"die\"" => std::process::exit(3),
        "\"hang\"" => return None,
        "\"sleep\"" => std::thread::sleep(Duration::from_millis(300)),
        "\"garbage\"" => {
            say("garbage");
            say("{\"jsonrpc\":\"2.0\",\"id\":");
            say("[]");
            io::stdout().write_all(b"\xff\xfe\n").unwrap();
            say(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":1,"a":2}}}}"#
            ));
            return None;
        }
        "\"flood\"" => {
            let line = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{}"}}}}"#,
                "x".repeat(1000)
            );
            for _ in 0..20_000 {
                say(&line);
            }
        }
        "\"big\"" => {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"x":""#);
            let mut out = io::stdout().lock();
            out.write_all(line.as_bytes()).unwrap();
            for _ in 0..70 {
                out.write_all(&vec![b'x'; 1 << 20]).unwrap();
            }
            out.write_all(b"\"}}\n").unwrap();
            return None;
        }
        "\"deaf\"" => {
            // Does not read for a while; pipes fill up.
            std::thread::sleep(Duration::from_secs(2));
        }
        _ => {}
    }
    Some(DONE.to_owned())
}

const DONE: &str = r#"{"content":[{"type":"text","text":"done 1.0"}],"extra":{"n":1.50}}"#;

fn tools(changed: bool) -> String {
    let names = [
        "write", "die", "hang", "sleep", "garbage", "flood", "big", "deaf",
    ];
    let plain =
        names.map(|name| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#));
    let description = if changed { "Sends" } else { "Repeats" };
    format!(
        r#"{{"tools":[{{"name":"echo","description":"{description}","annotations":{{"readOnlyHint":true}},"execution":{{"taskSupport":"optional"}}}},{}]}}"#,
        plain.join(",")
    )
}

/// The text behind the last occurrence of a key, up to a comma or a brace outside of quotes.
fn value(text: &str, key: &str) -> Option<String> {
    let start = text.rfind(key)? + key.len();
    let rest = text.get(start..)?.trim_start_matches([':', ' ']);
    let mut quoted = false;
    let end = rest.find(|c| {
        quoted ^= c == '"';
        !quoted && matches!(c, ',' | '}' | ' ')
    })?;
    rest.get(..end).map(str::to_owned)
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.write_all(b"\n").unwrap();
    out.flush().unwrap();
}

fn note(file: &mut Option<File>, line: &[u8]) {
    if let Some(file) = file {
        file.write_all(&[line, b"\n"].concat()).unwrap();
    }
}
