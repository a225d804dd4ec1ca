//! How fast an event line is checked, admitted and hashed. Run it by hand:
//! `cargo test --release -p countersign-canon --test suite throughput -- --ignored --nocapture`

use std::hint::black_box;
use std::time::{Duration, Instant};

use countersign_canon::jcs::{self, Cursor};
use countersign_canon::{Hash, Json, Limits};

#[test]
#[ignore = "prints measurements, asserts nothing"]
fn throughput() {
    let limits = Limits::event();
    for (name, text) in [("event line", event_line()), ("tool output", tool_output())] {
        println!("{name}, {} bytes", text.len());
        measure("Hash::of", &text, Hash::of);
        measure("jcs::check", &text, |text| {
            jcs::check(text, &limits).unwrap()
        });
        measure("Json::admit", &text, |text| {
            drop(Json::admit(text, &limits).unwrap())
        });
        let value = Json::admit(&text, &limits).unwrap();
        measure("to_jcs", &text, |_| value.to_jcs().unwrap());
        measure("to_sorted_ascii", &text, |_| value.to_sorted_ascii());
    }
    let line = event_line();
    measure("Cursor, key by key", &line, read_event);
}

fn read_event(text: &[u8]) -> Option<i64> {
    let mut cursor = Cursor::new(text, 128).ok()?;
    cursor.open_object().ok()?;
    cursor.expect_key("event_type").ok()?;
    cursor.string().ok()?;
    cursor.expect_key("hash").ok()?;
    cursor.string().ok()?;
    cursor.expect_key("payload").ok()?;
    cursor.value().ok()?;
    cursor.expect_key("prev_hash").ok()?;
    cursor.optional_string().ok()?;
    cursor.expect_key("seq").ok()?;
    let seq = cursor.integer().ok()?;
    for key in ["session_id", "tenant_id"] {
        cursor.expect_key(key).ok()?;
        cursor.string().ok()?;
    }
    cursor.expect_key("ts_unix_ms").ok()?;
    cursor.integer().ok()?;
    cursor.close_object().ok()?;
    cursor.finish().ok()?;
    Some(seq)
}

/// The best of several rounds, in bytes per nanosecond.
fn measure<T>(name: &str, text: &[u8], mut step: impl FnMut(&[u8]) -> T) {
    let repeat = (20_000_000 / text.len()).max(1);
    let best = (0..7)
        .map(|_| time(repeat, || drop(black_box(step(black_box(text))))))
        .min()
        .unwrap();
    let speed = (repeat * text.len()) as f64 / best.as_nanos() as f64;
    println!("  {name:<20} {speed:6.2} GB/s");
}

fn time(repeat: usize, mut step: impl FnMut()) -> Duration {
    let start = Instant::now();
    (0..repeat).for_each(|_| step());
    start.elapsed()
}

fn event_line() -> Vec<u8> {
    let hash = Hash::of(b"x");
    let digest = hash.to_digest();
    let sealed = Json::object([
        ("ciphertext", Json::from(digest.to_string())),
        (
            "commitments",
            Json::object([("/args", Json::from(digest.to_string()))]),
        ),
    ]);
    let payload = Json::object([
        ("call_id", Json::from("c1")),
        ("sealed", sealed),
        ("tool_name", Json::from("fs.read")),
    ]);
    let event = Json::object([
        ("event_type", Json::from("TOOL_CALL_PROPOSED")),
        ("hash", Json::from(hash.to_string())),
        ("payload", payload),
        ("prev_hash", Json::from(hash.to_string())),
        ("seq", Json::from(12u32)),
        ("session_id", Json::from("s")),
        ("tenant_id", Json::from("t")),
        ("ts_unix_ms", Json::from(1_700_000_000_000u64)),
    ]);
    event.to_jcs().unwrap()
}

/// Text with the escapes and the foreign letters of everyday output.
fn tool_output() -> Vec<u8> {
    let line = "\tlet greeting = \"Grüße aus Zürich\"; // says hello in a line of usual length\n";
    Json::object([("output", Json::from(line.repeat(1000)))])
        .to_jcs()
        .unwrap()
}
