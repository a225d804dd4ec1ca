//! Notices over a real connection.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

use countersign_notify::{
    Hook, ID, Notice, Receiver, Rejected, SIGNATURE, Secret, Sender, TIMESTAMP,
};

struct Request {
    id: String,
    timestamp: u64,
    signature: String,
    body: Vec<u8>,
}

/// Reads one request and answers with this status.
fn serve(status: &str, listener: &TcpListener) -> Request {
    let (mut stream, _) = listener.accept().unwrap();
    let request = read(&stream);
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).unwrap();
    request
}

fn read(stream: &TcpStream) -> Request {
    let mut lines = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        if line == "\r\n" {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let value = |name: &str| {
        let line = head.iter().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        });
        line.unwrap_or_else(|| panic!("no {name} in {head:?}"))
    };
    let mut body = vec![0; value("content-length").parse().unwrap()];
    lines.read_exact(&mut body).unwrap();
    assert!(head[0].starts_with("POST /hook "), "{head:?}");
    Request {
        id: value(ID),
        timestamp: value(TIMESTAMP).parse().unwrap(),
        signature: value(SIGNATURE),
        body,
    }
}

fn notice() -> Notice {
    Notice {
        approval: "apr_1".to_owned(),
        short_code: "46cca48b".to_owned(),
        tool: "pay".to_owned(),
        state: "pending".to_owned(),
        at_unix_ms: 1,
        decide_by_unix_ms: Some(2),
        execute_by_unix_ms: None,
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

#[test]
fn o03_a_notice_arrives_signed_and_a_second_time_it_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let secret = Secret::new(&[7; 32]).unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let sender = Sender::start(Hook::new(&address, secret.clone()).unwrap()).unwrap();
    sender.notify(notice());
    // The first answer is a failure, so it is tried again, under the same name.
    let first = serve("503 Service Unavailable", &listener);
    let second = serve("204 No Content", &listener);
    assert_eq!((&first.id, &first.body), (&second.id, &second.body));
    let mut receiver = Receiver::new(secret);
    let mut accept = |request: &Request, now: u64| {
        let Request {
            id,
            timestamp,
            signature,
            body,
        } = request;
        receiver.accept(id, *timestamp, signature, body, now)
    };
    assert_eq!(accept(&second, now() + 301), Err(Rejected::Time));
    assert_eq!(accept(&second, now()), Ok(()));
    assert_eq!(accept(&second, now()), Err(Rejected::Replayed));
    assert_eq!(accept(&first, now()), Err(Rejected::Replayed));
    let forged = Request {
        body: b"{}".to_vec(),
        ..second
    };
    assert_eq!(accept(&forged, now()), Err(Rejected::Signature));
    assert_eq!(
        String::from_utf8(first.body).unwrap(),
        format!(
            r#"{{"approval_id":"apr_1","at_ms":1,"decide_by_ms":2,"execute_by_ms":null,"notice_id":"{}","plan_short_code":"46cca48b","state":"pending","tool_name":"pay"}}"#,
            first.id
        )
    );
}

#[test]
fn a_receiver_that_does_not_answer_holds_nobody_up_and_the_queue_has_an_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let secret = Secret::new(&[7; 32]).unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let sender = Sender::start(Hook::new(&address, secret).unwrap()).unwrap();
    // The first one is taken from the queue and waits for an answer.
    sender.notify(notice());
    let (stream, _) = listener.accept().unwrap();
    let _request = read(&stream);
    for _ in 0..256 {
        sender.notify(notice());
    }
    assert_eq!(sender.counts().dropped, 0);
    sender.notify(notice());
    assert_eq!(sender.counts().dropped, 1);
    // Nobody listens any more, and the sender does not try all of them for ever.
    drop((stream, listener));
    drop(sender);
}

#[test]
fn notices_do_not_travel_in_clear() {
    let hook = |address: &str| Hook::new(address, Secret::new(&[7; 32]).unwrap());
    for good in [
        "https://example.com/hook",
        "http://localhost:1/hook",
        "http://[::1]:1/hook",
    ] {
        assert!(hook(good).is_ok(), "{good}");
    }
    for bad in ["http://example.com/hook", "ftp://localhost/", "hook", ""] {
        assert!(hook(bad).is_err(), "{bad}");
    }
}
