//! Runs of characters that nobody writes by hand: long hexadecimal numbers, and letters that change
//! between cases and digits as random ones do.

use super::run_end;
use crate::span::{Span, TOKEN};

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    hex(text.as_bytes(), spans);
    mixed(text.as_bytes(), spans);
}

fn hex(bytes: &[u8], spans: &mut Vec<Span>) {
    each_run(
        bytes,
        |byte| byte.is_ascii_hexdigit(),
        |start, end| {
            if end - start >= SHORTEST_HEX {
                spans.push(Span {
                    start,
                    end,
                    mark: TOKEN,
                });
            }
        },
    );
}

fn mixed(bytes: &[u8], spans: &mut Vec<Span>) {
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-' | b'=');
    each_run(bytes, is_part, |start, end| {
        if looks_random(bytes.get(start..end).unwrap_or_default()) {
            spans.push(Span {
                start,
                end,
                mark: TOKEN,
            });
        }
    });
}

fn each_run(bytes: &[u8], is_part: impl Fn(u8) -> bool + Copy, mut then: impl FnMut(usize, usize)) {
    let mut at = 0;
    while at < bytes.len() {
        let end = run_end(bytes, at, is_part);
        if end > at {
            then(at, end);
        }
        at = end + 1;
    }
}

fn looks_random(run: &[u8]) -> bool {
    if run.len() < SHORTEST_MIXED {
        return false;
    }
    let mut seen = [0_usize; 4];
    let mut changes = 0;
    let mut before = None;
    for byte in run {
        let kind = kind(*byte);
        if let Some(count) = seen.get_mut(kind) {
            *count += 1;
        }
        changes += usize::from(before.is_some_and(|before| before != kind));
        before = Some(kind);
    }
    let [lower, upper, digits, other] = seen;
    // Words joined by dashes or slashes change kind at each of them.
    let changes = changes.saturating_sub(2 * other);
    let has_all = lower > 0 && upper > 0 && digits > 0 && other * 8 <= run.len();
    // The secret halves of cloud keys have this length and no mark of their own.
    let is_cloud_key = run.len() == CLOUD_KEY && changes * 4 >= run.len();
    // One case and digits, as in base32.
    let is_one_case = (lower == 0) != (upper == 0) && other == 0 && digits > 3;
    has_all && (is_cloud_key || changes * 5 >= run.len() * 2)
        || is_one_case && run.len() >= SHORTEST_ONE_CASE && changes * 3 >= run.len()
}

fn kind(byte: u8) -> usize {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    }
}

const SHORTEST_HEX: usize = 32;
const CLOUD_KEY: usize = 40;
const SHORTEST_MIXED: usize = 24;
const SHORTEST_ONE_CASE: usize = 32;
