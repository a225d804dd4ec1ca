//! Spans as the OpenTelemetry protocol has them: as JSON, and as protocol buffers.
//!
//! Written by hand: the messages are few, and what goes into them comes from a record whose fields have
//! classes. With a library in between, anything could.

use countersign_canon::Json;

use crate::span::{Ending, Kind, Span};

mod wire;

use wire::Message;

/// A request to export spans, as JSON: a line of the file, or a body.
pub fn to_json(spans: &[Span]) -> Json {
    let spans = spans.iter().map(json_span).collect::<Vec<_>>();
    let resource = RESOURCE
        .iter()
        .map(|(key, text)| pair(key, &Json::from(*text)));
    let scope = Json::object([("name", Json::from(NAME)), ("version", Json::from(VERSION))]);
    let scoped = Json::object([("scope", scope), ("spans", Json::Array(spans))]);
    let resource = Json::object([("attributes", Json::Array(resource.collect()))]);
    let whole = Json::object([
        ("resource", resource),
        ("scopeSpans", Json::Array(vec![scoped])),
    ]);
    Json::object([("resourceSpans", Json::Array(vec![whole]))])
}

/// The same as protocol buffers.
pub fn to_protobuf(spans: &[Span]) -> Vec<u8> {
    let mut scope = Message::default();
    scope.text(1, NAME);
    scope.text(2, VERSION);
    let mut scoped = Message::default();
    scoped.message(1, &scope);
    for span in spans {
        scoped.message(2, &wire_span(span));
    }
    let mut resource = Message::default();
    for (key, text) in RESOURCE {
        resource.message(1, &wire_pair(key, &Json::from(*text)));
    }
    let mut whole = Message::default();
    whole.message(1, &resource);
    whole.message(2, &scoped);
    let mut request = Message::default();
    request.message(1, &whole);
    request.into_bytes()
}

fn json_span(span: &Span) -> Json {
    let attributes = span
        .attributes
        .fields()
        .map(|(key, value)| pair(key, value));
    let mut members = vec![
        ("traceId", Json::from(span.trace_id())),
        ("spanId", Json::from(span.span_id())),
        ("name", Json::from(span.name())),
        ("kind", Json::from(kind(span))),
        (
            "startTimeUnixNano",
            Json::from(nanos(span.start_unix_ms).to_string()),
        ),
        (
            "endTimeUnixNano",
            Json::from(nanos(span.end_unix_ms).to_string()),
        ),
        ("attributes", Json::Array(attributes.collect())),
        ("flags", Json::from(u64::from(span.place.flags))),
    ];
    if let Some(parent) = span.parent_id() {
        members.push(("parentSpanId", Json::from(parent)));
    }
    if let Some(code) = status(span) {
        members.push(("status", Json::object([("code", Json::from(code))])));
    }
    match span.attributes.dropped().len() {
        0 => {}
        dropped => members.push(("droppedAttributesCount", Json::from(dropped as u64))),
    }
    Json::object(members)
}

fn wire_span(span: &Span) -> Message {
    let mut message = Message::default();
    message.bytes(1, &span.place.trace);
    message.bytes(2, &span.id);
    if let Some(parent) = &span.place.parent {
        message.bytes(4, parent);
    }
    message.text(5, &span.name());
    message.varint(6, kind(span));
    message.fixed64(7, nanos(span.start_unix_ms));
    message.fixed64(8, nanos(span.end_unix_ms));
    for (key, value) in span.attributes.fields() {
        message.message(9, &wire_pair(key, value));
    }
    message.varint(10, span.attributes.dropped().len() as u64);
    if let Some(code) = status(span) {
        let mut status = Message::default();
        status.varint(3, code);
        message.message(15, &status);
    }
    message.fixed32(16, u32::from(span.place.flags));
    message
}

fn pair(key: &str, value: &Json) -> Json {
    Json::object([("key", Json::from(key)), ("value", any(value))])
}

fn any(value: &Json) -> Json {
    match (value, value.as_i64()) {
        (Json::Bool(flag), _) => Json::object([("boolValue", Json::Bool(*flag))]),
        (Json::String(text), _) => Json::object([("stringValue", Json::from(text.as_str()))]),
        (Json::Array(values), _) => {
            let values = values.iter().map(any).collect::<Vec<_>>();
            let values = Json::object([("values", Json::Array(values))]);
            Json::object([("arrayValue", values)])
        }
        (_, Some(number)) => Json::object([("intValue", Json::from(number.to_string()))]),
        (other, None) => Json::object([("stringValue", Json::from(text(other)))]),
    }
}

fn wire_pair(key: &str, value: &Json) -> Message {
    let mut pair = Message::default();
    pair.text(1, key);
    pair.message(2, &wire_any(value));
    pair
}

fn wire_any(value: &Json) -> Message {
    let mut message = Message::default();
    match (value, value.as_i64()) {
        (Json::Bool(flag), _) => message.chosen(2, u64::from(*flag)),
        (Json::String(text), _) => message.bytes(1, text.as_bytes()),
        (Json::Array(values), _) => {
            let mut array = Message::default();
            for value in values {
                array.message(1, &wire_any(value));
            }
            message.message(5, &array);
        }
        // Negative numbers have the bits of their complement.
        (_, Some(number)) => message.chosen(3, number.cast_unsigned()),
        (other, None) => message.bytes(1, text(other).as_bytes()),
    }
    message
}

/// What is no single value is told as its text.
fn text(value: &Json) -> String {
    String::from_utf8(value.to_sorted_ascii()).unwrap_or_default()
}

fn kind(span: &Span) -> u64 {
    match span.kind {
        Kind::Internal => 1,
        Kind::Client => 3,
    }
}

fn status(span: &Span) -> Option<u64> {
    match span.ending {
        Ending::Unset => None,
        Ending::Good => Some(1),
        Ending::Failed => Some(2),
    }
}

fn nanos(unix_ms: u64) -> u64 {
    unix_ms.saturating_mul(1_000_000)
}

const NAME: &str = "countersign";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const RESOURCE: &[(&str, &str)] = &[("service.name", NAME), ("service.version", VERSION)];
