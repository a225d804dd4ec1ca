//! Many connections at once: no error, no lost event, and the log verifies.
//!
//! `COUNTERSIGN_FULL=1` sends 10 000 requests over each of 64 connections.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use countersign_api::Role;
use countersign_canon::Json;
use countersign_verify::database::verify_database;
use countersign_verify::{Expectation, Selection};

use crate::scene::{Scene, json};

const CONNECTIONS: usize = 64;
const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","permissions":{"tools":{"read_file":{"side_effect":"read"}},"budgets":{"max_steps":1000000000,"max_tool_calls":1000000000,"max_wall_time_ms":1000000000}},"loops":{"identical_calls":0,"no_progress_steps":0,"sequence_min":0,"sequence_max":0}}"#;

struct Client {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Client {
    fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, Json) {
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        (status, json(&String::from_utf8(body).unwrap()))
    }

    /// One of each kind in turn; says how many events came of it.
    fn turn(&mut self, number: usize, session: &str) -> u64 {
        let text =
            |json: &Json, name: &str| json.get(name).and_then(Json::as_str).unwrap().to_owned();
        match number % 4 {
            0 => {
                let body = format!(
                    r#"{{"session_id":"{session}","event_type":"MEMORY_WRITE","payload":{{"memory_key":"k{number}"}}}}"#
                );
                assert_eq!(self.ask("POST", "/v1/events", &body).0, 201);
                1
            }
            1 => {
                let body = r#"{"event":{"event_type":"TOOL_CALL_PROPOSED","payload":{"tool_name":"read_file","args":{}}},"snapshot":{}}"#;
                let (status, answer) = self.ask("POST", "/v1/policy/decide", body);
                assert_eq!((status, text(&answer, "outcome").as_str()), (200, "allow"));
                0
            }
            2 => {
                let body = format!(
                    r#"{{"session_id":"{session}","tool_name":"read_file","args":{{"page":{number}}}}}"#
                );
                let (status, action) = self.ask("POST", "/v1/actions", &body);
                assert_eq!((status, text(&action, "state").as_str()), (201, "running"));
                let path = format!("/v1/actions/{}/result", text(&action, "action_id"));
                let body = format!(
                    r#"{{"permit":"{}","content":"x"}}"#,
                    text(&action, "permit")
                );
                assert_eq!(self.ask("POST", &path, &body).0, 201);
                5
            }
            _ => {
                let (status, _) = self.ask("GET", &format!("/v1/sessions/{session}"), "");
                assert_eq!(status, 200);
                0
            }
        }
    }
}

#[test]
fn under_load_nothing_fails_and_nothing_is_lost() {
    let turns = match std::env::var_os("COUNTERSIGN_FULL") {
        Some(_) => 10_000,
        None => 24,
    };
    let scene = Scene::new(Some(MANIFEST));
    let token = scene.token(Role::Agent);
    let expected: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|connection| {
                let mut client = Client {
                    stream: BufReader::new(scene.connect()),
                    token: token.clone(),
                };
                scope.spawn(move || {
                    // Two connections to a session, so that they get in each other's way.
                    let session = format!("s{}", connection / 2);
                    (0..turns)
                        .map(|number| client.turn(number, &session))
                        .sum::<u64>()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(scene.engine.store().reader().last_id().unwrap(), expected);
    let database = countersign_store::Folder::new(scene.folder.path()).database();
    let report = verify_database(
        &database,
        &Selection::default(),
        &Expectation::default(),
        None,
        &mut |_| {},
    );
    assert!(report.is_good(), "{:?}", report.failure);
    assert_eq!(report.events, expected);
}
