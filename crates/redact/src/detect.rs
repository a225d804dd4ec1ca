//! Finding secrets and personal data in text. Each detector reads the text once, and none goes back
//! further than a fixed distance, so the cost is linear whatever the text is.

mod assignment;
mod base64;
mod decoded;
mod digits;
mod email;
mod lines;
mod markup;
mod pem;
mod random;
mod token;
mod url;
mod words;

use decoded::Decoded;

use crate::redactor::Rules;
use crate::span::Span;

/// Everything in the text that is to be replaced.
pub(crate) fn find(text: &str, rules: &Rules) -> Vec<Span> {
    find_at(text, rules, 0)
}

/// The same in a text that was decoded so often.
fn find_at(text: &str, rules: &Rules, depth: usize) -> Vec<Span> {
    let mut spans = in_clear(text, rules);
    if depth < DEEPEST {
        base64::find(text, rules, depth, &mut spans);
        if let Some(decoded) = Decoded::of(text) {
            let found = find_at(&decoded.text, rules, depth + 1);
            spans.extend(found.iter().filter_map(|span| decoded.back(span)));
        }
    }
    spans
}

/// The names of tokens alone, for text that is put together from parts.
pub(crate) fn find_tokens(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    pem::find(text, &mut spans);
    token::find(text, &[], &mut spans);
    spans
}

fn in_clear(text: &str, rules: &Rules) -> Vec<Span> {
    let mut spans = Vec::new();
    lines::find(text, &rules.secret_names, &mut spans);
    markup::find(text, &rules.secret_names, &mut spans);
    words::find(text, &rules.secret_names, &mut spans);
    assignment::find(text, &rules.secret_names, &mut spans);
    pem::find(text, &mut spans);
    url::find(text, &mut spans);
    token::find(text, &rules.secret_prefixes, &mut spans);
    random::find(text, &mut spans);
    if !rules.keep_email {
        email::find(text, &mut spans);
    }
    if !rules.keep_numbers {
        digits::find(text, &mut spans);
    }
    spans
}

/// The end of the run of such bytes that begins at `from`.
fn run_end(bytes: &[u8], from: usize, is_part: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| is_part(**byte)).count()
}

/// The beginning of the run of such bytes that ends at `to`, at most so far back.
fn run_start(bytes: &[u8], to: usize, longest: usize, is_part: impl Fn(u8) -> bool) -> usize {
    let before = bytes.get(..to).unwrap_or_default();
    let run = before.iter().rev().take(longest);
    to - run.take_while(|byte| is_part(**byte)).count()
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// How often a text is decoded.
const DEEPEST: usize = 3;
