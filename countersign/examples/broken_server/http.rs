//! As much HTTP as a proxy in a test needs: one request a connection.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use countersign_canon::{Json, Limits};

#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn drop_header(&mut self, name: &str) {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    }

    pub(crate) fn set_header(&mut self, name: &str, value: &str) {
        self.drop_header(name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path.split('?').next() == Some(path)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Json {
        json(&self.body)
    }

    pub(crate) fn set(&mut self, member: &str, value: Json) {
        let mut json = self.json();
        if let Some(members) = json.as_object_mut() {
            members.insert(member.to_owned(), value);
            self.body = json.to_sorted();
        }
    }

    pub(crate) fn remove(&mut self, member: &str) {
        let mut json = self.json();
        if let Some(members) = json.as_object_mut() {
            members.remove(member);
            self.body = json.to_sorted();
        }
    }

    pub(crate) fn member(&self, name: &str) -> String {
        let json = self.json();
        let text = json.get(name).and_then(Json::as_str);
        text.unwrap_or_default().to_owned()
    }
}

impl Answer {
    pub(crate) fn new(status: u16, json: &Json) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: json.to_sorted(),
        }
    }

    pub(crate) fn json(&self) -> Json {
        json(&self.body)
    }

    pub(crate) fn set_json(&mut self, json: &Json) {
        self.body = json.to_sorted();
    }

    pub(crate) fn edit(&mut self, edit: impl FnOnce(&mut countersign_canon::Object)) {
        let mut json = self.json();
        if let Some(members) = json.as_object_mut() {
            edit(members);
            self.set_json(&json);
        }
    }
}

pub(crate) fn json(body: &[u8]) -> Json {
    let limits = Limits {
        max_bytes: 64 << 20,
        max_depth: 256,
        ..Limits::event()
    };
    Json::admit(body, &limits).unwrap_or(Json::Null)
}

pub(crate) fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let (head, rest) = read_head(stream)?;
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers = headers(lines);
    let body = body(stream, rest, &headers, false);
    Some(Request {
        method,
        path,
        headers,
        body,
    })
}

pub(crate) fn forward(request: &Request, behind: &str) -> Answer {
    let mut stream = TcpStream::connect(behind).unwrap();
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    for (name, value) in &request.headers {
        let ours = [
            "connection",
            "content-length",
            "transfer-encoding",
            "expect",
        ];
        if !ours.contains(&name.to_ascii_lowercase().as_str()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str(&format!(
        "connection: close\r\ncontent-length: {}\r\n\r\n",
        request.body.len()
    ));
    stream.write_all(head.as_bytes()).unwrap();
    // Who refuses a body need not read it to its end.
    let _ = stream.write_all(&request.body);
    let (head, rest) = read_head(&mut stream).expect("the server behind answers");
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let status = status.parse().unwrap();
    let headers = headers(lines);
    let body = body(&mut stream, rest, &headers, true);
    Answer {
        status,
        headers,
        body,
    }
}

pub(crate) fn write_answer(stream: &mut TcpStream, answer: &Answer) {
    let mut head = format!("HTTP/1.1 {} Spoilt\r\n", answer.status);
    for (name, value) in &answer.headers {
        let ours = ["connection", "content-length", "transfer-encoding"];
        if !ours.contains(&name.to_ascii_lowercase().as_str()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str(&format!(
        "connection: close\r\ncontent-length: {}\r\n\r\n",
        answer.body.len()
    ));
    // A client that went away wants no answer.
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&answer.body);
}

fn read_head(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 14];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Some((String::from_utf8_lossy(&bytes).into_owned(), rest));
        }
        match stream.read(&mut part) {
            Ok(length) if length > 0 => bytes.extend_from_slice(&part[..length]),
            _ => return None,
        }
    }
}

fn headers<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

fn body(
    stream: &mut TcpStream,
    mut bytes: Vec<u8>,
    headers: &[(String, String)],
    to_the_end: bool,
) -> Vec<u8> {
    let header = |name: &str| {
        let found = headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    };
    let length = header("content-length").and_then(|length| length.parse::<usize>().ok());
    let chunked = header("transfer-encoding").is_some();
    let mut part = [0; 1 << 14];
    loop {
        let is_enough = match (length, chunked) {
            (Some(length), _) => bytes.len() >= length,
            (None, true) => bytes.ends_with(b"0\r\n\r\n"),
            (None, false) => !to_the_end,
        };
        if is_enough {
            break;
        }
        match stream.read(&mut part) {
            Ok(read) if read > 0 => bytes.extend_from_slice(&part[..read]),
            _ => break,
        }
    }
    match chunked {
        true => joined(&bytes),
        false => bytes,
    }
}

fn joined(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = bytes.get(end + 2..end + 2 + size) else {
            break;
        };
        if size == 0 {
            break;
        }
        out.extend_from_slice(chunk);
        bytes = bytes.get(end + 4 + size..).unwrap_or_default();
    }
    out
}
