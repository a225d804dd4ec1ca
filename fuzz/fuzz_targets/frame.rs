//! Any bytes as a frame: read or refused; what is read stays as it was, and a rewriting changes the
//! arguments and nothing else.
#![no_main]

use countersign_canon::{Json, Limits, Numbers};
use countersign_mcp::{Frame, FrameLimits, Kind, Line, Lines, splice};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = FrameLimits {
        max_bytes: 1 << 16,
        max_depth: 32,
    };
    check_framing(bytes);
    let frame = match Frame::read(bytes.to_vec(), &limits) {
        Ok(frame) => frame,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(frame.bytes(), bytes);
    // The strict reader agrees, apart from numbers that no double holds.
    let strict = Limits {
        max_bytes: limits.max_bytes,
        max_depth: limits.max_depth,
        numbers: Numbers::Exact,
    };
    let Ok(message) = Json::admit(bytes, &strict) else {
        return;
    };
    let Kind::Request {
        id, method, params, ..
    } = frame.kind()
    else {
        return;
    };
    let given = message.get("params").and_then(|params| params.get("name"));
    let given = given.and_then(Json::as_str);
    assert_eq!(frame.text(params.name).as_deref(), given);
    let new = Json::object([("k", Json::from("v"))]);
    let Some(rewritten) = splice::with_arguments(&frame, &new) else {
        return;
    };
    let again = Frame::read(rewritten, &limits);
    let Ok(again) = again else {
        return assert!(bytes.len() + 32 > limits.max_bytes);
    };
    let Kind::Request {
        id: same_id,
        method: same_method,
        params: places,
        ..
    } = again.kind()
    else {
        panic!("a request became something else");
    };
    assert_eq!((same_id, same_method), (id, method));
    assert_eq!(
        places.arguments.map(|place| again.part(place)),
        Some(&br#"{"k":"v"}"#[..])
    );
    assert_eq!(again.text(places.name).as_deref(), given);
});

/// However a stream is cut, the lines are the same.
fn check_framing(bytes: &[u8]) {
    let cut = |size: usize| {
        let mut lines = Lines::new(64);
        let mut found = Vec::new();
        for chunk in bytes.chunks(size) {
            lines.feed(chunk, |line| found.push(line));
        }
        found.extend(lines.finish());
        found.into_iter().map(|line| match line {
            Line::Whole(line) => Some(line),
            Line::TooLong { .. } => None,
        })
    };
    assert!(cut(1).eq(cut(usize::MAX)));
}
