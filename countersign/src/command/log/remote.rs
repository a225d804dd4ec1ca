//! Listening to a daemon.

use std::io::{BufRead as _, BufReader};
use std::thread::sleep;
use std::time::Duration;

use countersign_store::Stored;

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::{input, output};

/// Prints what a daemon streams, and goes on where it was when the connection breaks.
pub(super) fn follow(
    server: &str,
    token_file: &str,
    query: &str,
    print: impl Fn(&Stored) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let token = input::file(token_file, MAX_TOKEN)?;
    let token = String::from_utf8_lossy(&token).trim().to_owned();
    let mut last: Option<u64> = None;
    let mut connected = false;
    loop {
        match listen(server, &token, query, &mut last, &mut connected, &print) {
            Ok(()) => {}
            // Whoever was there may come back; who was never there, or does not let us in, does not.
            Err(Broken::Connection(_)) if connected => {}
            Err(Broken::Connection(text)) => return Err(Failure::new(Code::NoDaemon, text)),
            Err(Broken::Refused(failure)) => return Err(failure),
        }
        sleep(AGAIN);
    }
}

enum Broken {
    Connection(String),
    Refused(Failure),
}

fn listen(
    server: &str,
    token: &str,
    query: &str,
    last: &mut Option<u64>,
    connected: &mut bool,
    print: &impl Fn(&Stored) -> Result<(), Failure>,
) -> Result<(), Broken> {
    let address = format!("{}/v1/stream", server.trim_end_matches('/'));
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let mut request = agent
        .get(&address)
        .query("q", query)
        .header("Authorization", format!("Bearer {token}"));
    if let Some(last) = last {
        request = request.header("Last-Event-ID", last.to_string());
    }
    let answer = request.call();
    let mut answer = answer.map_err(|error| Broken::Connection(format!("`{server}`: {error}")))?;
    if answer.status() != 200 {
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        let code = match answer.status().as_u16() {
            401 => Code::Unauthenticated,
            403 => Code::Forbidden,
            _ => Code::Parameter,
        };
        let text = format!(
            "`{server}` answers {}: {}",
            answer.status(),
            text.trim_end()
        );
        return Err(Broken::Refused(Failure::new(code, text)));
    }
    *connected = true;
    let mut kind = String::new();
    for line in BufReader::new(answer.body_mut().as_reader()).lines() {
        let line = line.map_err(|error| Broken::Connection(error.to_string()))?;
        if let Some(id) = line.strip_prefix("id: ") {
            *last = id.parse().ok().or(*last);
        } else if let Some(name) = line.strip_prefix("event: ") {
            kind = name.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            if kind == "gap" {
                output::stderr(&format!("countersign: events are missing here: {data}"));
                continue;
            }
            let event = Stored {
                id: last.unwrap_or_default(),
                line: data.as_bytes().to_vec(),
                ciphertext: None,
            };
            print(&event).map_err(Broken::Refused)?;
        }
    }
    Ok(())
}

const MAX_TOKEN: usize = 4096;
const AGAIN: Duration = Duration::from_secs(1);
