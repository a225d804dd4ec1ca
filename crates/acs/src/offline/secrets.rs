//! Secrets and personal data, by their form.
//!
//! Forms with a check digit (cards, IBAN) count only if it is right; others are told by their
//! alphabet, length and prefix. What has no form, such as a name or a plain password, is not found.

use std::collections::BTreeMap;

use countersign_canon::{Json, Object};
use regex_lite::Regex;

use super::texts;

/// Whether what has the form is one.
type Check = fn(&str) -> bool;

/// The forms, compiled.
pub(super) struct Secrets {
    forms: Vec<(&'static str, Regex, Check)>,
}

impl Secrets {
    pub(super) fn new() -> Self {
        let forms = FORMS.iter().filter_map(|(kind, pattern, is_one)| {
            let form = Regex::new(pattern).ok()?;
            Some((*kind, form, *is_one))
        });
        Self {
            forms: forms.collect(),
        }
    }

    /// `{found, count, kinds: {kind: count}, places: [{at, kind}]}`, and `redacted` if asked for.
    pub(super) fn look(&self, value: &Json, redact: bool) -> Json {
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        let mut places = Vec::new();
        let mut count: u64 = 0;
        texts::each(value, &mut |text| {
            for (kind, _) in self.find(text.text) {
                *kinds.entry(kind).or_default() += 1;
                count += 1;
                if places.len() < MOST_PLACES {
                    places.push(Json::object([
                        ("at", Json::from(text.at.as_str())),
                        ("kind", kind.into()),
                    ]));
                }
            }
        });
        let kinds = kinds.into_iter().map(|(kind, count)| (kind, count.into()));
        let mut members = vec![
            ("found", Json::from(count > 0)),
            ("count", count.into()),
            ("kinds", Json::object(kinds)),
            ("places", Json::Array(places)),
        ];
        if redact {
            members.push(("redacted", self.redacted(value)));
        }
        Json::object(members)
    }

    /// What is found in a text, from left to right, without overlaps.
    fn find(&self, text: &str) -> Vec<(&'static str, std::ops::Range<usize>)> {
        let mut found: Vec<(&'static str, std::ops::Range<usize>)> = Vec::new();
        for (kind, form, is_one) in &self.forms {
            for one in form.find_iter(text).filter(|one| is_one(one.as_str())) {
                let free = found
                    .iter()
                    .all(|(_, other)| one.end() <= other.start || one.start() >= other.end);
                if free {
                    found.push((kind, one.range()));
                }
            }
        }
        found.sort_by_key(|(_, range)| range.start);
        found
    }

    fn redacted(&self, value: &Json) -> Json {
        match value {
            Json::String(text) => Json::String(self.cleaned(text)),
            Json::Array(elements) => {
                Json::Array(elements.iter().map(|one| self.redacted(one)).collect())
            }
            Json::Object(members) => {
                let cleaned = members.iter();
                let cleaned = cleaned.map(|(key, value)| (self.cleaned(key), self.redacted(value)));
                Json::Object(cleaned.collect::<Object>())
            }
            other => other.clone(),
        }
    }

    fn cleaned(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (kind, range) in self.find(text) {
            out.push_str(text.get(done..range.start).unwrap_or_default());
            out.push('[');
            out.push_str(kind);
            out.push(']');
            done = range.end;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        out
    }
}

/// The longest forms first: what one has taken, the next does not take again.
const FORMS: &[(&str, &str, Check)] = &[
    (
        "private_key",
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?s:.{0,8192}?)(-----END [A-Z ]{0,30}PRIVATE KEY-----|$)",
        always,
    ),
    (
        "jwt",
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        always,
    ),
    ("aws_key", r"\b(AKIA|ASIA)[A-Z0-9]{16}\b", always),
    ("github_token", r"\bgh[pousr]_[A-Za-z0-9]{36,}\b", always),
    ("github_token", r"\bgithub_pat_[A-Za-z0-9_]{40,}\b", always),
    ("slack_token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", always),
    ("google_key", r"\bAIza[A-Za-z0-9_-]{35}", always),
    (
        "stripe_key",
        r"\b[rs]k_(live|test)_[A-Za-z0-9]{16,}",
        always,
    ),
    ("openai_key", r"\bsk-[A-Za-z0-9_-]{20,}", always),
    ("anthropic_key", r"\bsk-ant-[A-Za-z0-9_-]{20,}", always),
    (
        "url_credentials",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,128}:[^\s/@]{1,128}@",
        always,
    ),
    ("bearer", r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{16,}=*", always),
    (
        "password",
        r#"(?i)\b(password|passwd|pwd|secret|api[_-]?key|access[_-]?token)["']?\s*[:=]\s*["']?[^\s"',;]{6,}"#,
        always,
    ),
    (
        "email",
        r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*\.[A-Za-z]{2,24}\b",
        always,
    ),
    (
        "iban",
        r"\b[A-Z]{2}[0-9]{2}([ ]?[A-Z0-9]{4}){2,7}([ ]?[A-Z0-9]{1,3})?\b",
        is_iban,
    ),
    ("card", r"\b[0-9]([ -]?[0-9]){12,18}\b", is_card),
    ("us_ssn", r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b", is_ssn),
    (
        "phone",
        r"\+[0-9]{1,3}([ .-]?\(?[0-9]{1,4}\)?){2,5}\b",
        |text| (8..=15).contains(&digits(text).count()),
    ),
];

fn always(_: &str) -> bool {
    true
}

fn digits(text: &str) -> impl DoubleEndedIterator<Item = u32> {
    text.chars().filter_map(|c| c.to_digit(10))
}

/// The check digit of payment cards (Luhn), and not one digit repeated.
fn is_card(text: &str) -> bool {
    let count = digits(text).count();
    let sum: u32 = digits(text)
        .rev()
        .enumerate()
        .map(|(index, digit)| match index % 2 {
            0 => digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    let first = digits(text).next();
    (13..=19).contains(&count)
        && first.is_some_and(|first| (2..=6).contains(&first))
        && sum.is_multiple_of(10)
        && digits(text).any(|digit| Some(digit) != first)
}

/// ISO 13616: the first four characters behind the rest, letters as numbers, modulo 97.
fn is_iban(text: &str) -> bool {
    let text: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    if !(15..=34).contains(&text.len()) {
        return false;
    }
    let (head, rest) = text.split_at(4);
    let rest = rest.iter().chain(head);
    let sum = rest.fold(0, |sum: u32, c| match c.to_digit(36) {
        Some(digit @ 0..=9) => (sum * 10 + digit) % 97,
        Some(letter) => (sum * 100 + letter) % 97,
        None => 0,
    });
    sum == 1
}

/// Numbers that were never given out are none.
fn is_ssn(text: &str) -> bool {
    let mut parts = text.split('-');
    let (area, group, serial) = (parts.next(), parts.next(), parts.next());
    area.is_some_and(|area| !["000", "666"].contains(&area) && !area.starts_with('9'))
        && group != Some("00")
        && serial != Some("0000")
}

const MOST_PLACES: usize = 256;
