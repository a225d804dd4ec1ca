//! The HTTP binding: one event structured or binary, or many in a batch.

use countersign_canon::{Error, Json};

use super::event::CloudEvent;

/// What to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The headers, the type of the content among them.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The event as the body.
pub fn structured(event: &CloudEvent) -> Result<Request, Error> {
    Ok(Request {
        headers: vec![("content-type".to_owned(), STRUCTURED.to_owned())],
        body: event.to_json().to_jcs()?,
    })
}

/// The data as the body, the attributes as headers.
pub fn binary(event: &CloudEvent) -> Result<Request, Error> {
    let headers = event.attributes().map(|(name, value)| match name {
        "datacontenttype" => ("content-type".to_owned(), header(value)),
        name => (format!("ce-{name}"), header(value)),
    });
    Ok(Request {
        headers: headers.collect(),
        body: event.data().to_jcs()?,
    })
}

/// Some events as one body.
pub fn batch(events: &[CloudEvent]) -> Result<Request, Error> {
    let events = events.iter().map(CloudEvent::to_json).collect();
    Ok(Request {
        headers: vec![("content-type".to_owned(), BATCH.to_owned())],
        body: Json::Array(events).to_jcs()?,
    })
}

/// A value as a header: what may not stand there is percent-encoded.
fn header(value: &Json) -> String {
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Bool(flag) => flag.to_string(),
        Json::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'%' | 0..=0x20 | 0x7f.. => out.push_str(&format!("%{byte:02X}")),
            plain => out.push(char::from(plain)),
        }
    }
    out
}

/// The type of one event as a body.
pub const STRUCTURED: &str = "application/cloudevents+json; charset=UTF-8";
/// The type of some events as a body.
pub const BATCH: &str = "application/cloudevents-batch+json; charset=UTF-8";
