//! Frames with bytes changed at random: read or refused, never misread.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

use countersign_canon::{Json, Limits, Numbers, Reason};
use countersign_mcp::{Frame, FrameLimits, Kind, Method, splice};

const SEEDS: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"a":[1,2.5,{"b":null}]},"_meta":{"t":1}}}"#,
    r#"{"method":"tools\/call","id":"\u0061b","params":{"_meta":{},"arguments":{"\ud83d\ude00":true},"name":"x"},"jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","id":-7,"result":{"content":[{"type":"text","text":"é"}],"isError":false}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}"#,
];
const PIECES: &[&str] = &[
    "\"method\":",
    "\"Method\":",
    "\"name\":\"evil\",",
    "\"id\":2,",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "1e999",
    "-0",
    "null",
    " ",
    "\n",
    "\u{feff}",
    "tools/call",
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn what_is_read_means_the_same_to_the_strict_reader() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..100_000 {
        let mut bytes = SEEDS[random.below(SEEDS.len())].as_bytes().to_vec();
        for _ in 0..1 + random.below(3) {
            mutate(&mut bytes, &mut random);
        }
        match check(&bytes) {
            true => read += 1,
            false => refused += 1,
        }
    }
    assert!(read > 5_000 && refused > 5_000, "{read} {refused}");
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(4) {
        0 => bytes[at] = random.below(256) as u8,
        1 => drop(bytes.remove(at)),
        2 => {
            let piece = PIECES[random.below(PIECES.len())].bytes();
            bytes.splice(at..at, piece);
        }
        _ => {
            let end = (at + random.below(20)).min(bytes.len());
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
    }
}

fn check(bytes: &[u8]) -> bool {
    let limits = Limits {
        max_bytes: 1 << 20,
        max_depth: 64,
        numbers: Numbers::Exact,
    };
    let strict = Json::admit(bytes, &limits);
    let frame = match Frame::read(bytes.to_vec(), &FrameLimits::default()) {
        Ok(frame) => frame,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    assert_eq!(frame.bytes(), bytes);
    let message = match strict {
        Ok(message) => message,
        // Numbers are looked at when they are admitted.
        Err(error) if *error.reason() == Reason::NumberOutOfRange => return true,
        Err(error) => panic!("{error}: {}", String::from_utf8_lossy(bytes)),
    };
    assert_eq!(message.get("jsonrpc").and_then(Json::as_str), Some("2.0"));
    let method = message.get("method").and_then(Json::as_str);
    let (Kind::Request {
        method: found,
        params,
        ..
    }
    | Kind::Notification {
        method: found,
        params,
        ..
    }) = frame.kind()
    else {
        assert_eq!(method, None);
        return true;
    };
    assert_eq!(Method::of(method.unwrap()), *found);
    let part = |name| message.get("params").and_then(|params| params.get(name));
    assert_eq!(
        frame.text(params.name).as_deref(),
        part("name").and_then(Json::as_str)
    );
    let arguments = params
        .arguments
        .map(|span| Json::admit(frame.part(span), &limits).unwrap());
    assert_eq!(arguments.as_ref(), part("arguments"));
    if let Some(rewritten) = splice::with_arguments(&frame, &Json::object([("k", Json::Null)])) {
        let again = Json::admit(&rewritten, &limits).unwrap();
        let again_arguments = again
            .get("params")
            .and_then(|params| params.get("arguments"));
        assert_eq!(again_arguments, Some(&Json::object([("k", Json::Null)])));
        assert_eq!(again.get("id"), message.get("id"));
        assert_eq!(again.get("method"), message.get("method"));
    }
    true
}
