//! Numbers that belong to people: payment cards, telephones, social security.

use super::run_end;
use crate::span::{CARD, PHONE, SSN, Span};

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = run_end(bytes, at, is_part);
        if end > at && !touches_a_word(bytes, at, end) {
            number(bytes, at, end, spans);
        }
        at = end + 1;
    }
}

/// A run of digits and what people write between them.
fn number(bytes: &[u8], from: usize, to: usize, spans: &mut Vec<Span>) {
    let run = bytes.get(from..to).unwrap_or_default();
    let Some(first) = run.iter().position(|byte| byte.is_ascii_digit()) else {
        return;
    };
    let last = run.iter().rposition(u8::is_ascii_digit).unwrap_or(first);
    // A bracket or a plus in front belongs to the number.
    let lead = run.get(..first).unwrap_or_default();
    let lead = lead
        .iter()
        .rev()
        .take_while(|byte| matches!(byte, b'(' | b'+'));
    let first = first - lead.count();
    let Some(mark) = mark(run.get(first..=last).unwrap_or_default()) else {
        return;
    };
    spans.push(Span {
        start: from + first,
        end: from + last + 1,
        mark,
    });
}

fn mark(number: &[u8]) -> Option<&'static str> {
    let digits: Vec<u8> = number
        .iter()
        .filter_map(digit)
        .take(MOST_DIGITS + 1)
        .collect();
    let groups: Vec<usize> = number
        .split(|byte| !byte.is_ascii_digit())
        .map(<[u8]>::len)
        .filter(|length| *length > 0)
        .take(MOST_DIGITS)
        .collect();
    if (13..=19).contains(&digits.len()) && groups.iter().all(|group| *group >= 2) && luhn(&digits)
    {
        return Some(CARD);
    }
    if groups == [3, 2, 4] && !number.contains(&b'.') {
        return Some(SSN);
    }
    is_phone(number, digits.len(), &groups).then_some(PHONE)
}

fn is_phone(number: &[u8], digits: usize, groups: &[usize]) -> bool {
    let is_international = number.iter().find(|byte| **byte != b'(') == Some(&b'+');
    let enough = if is_international { 7..=15 } else { 9..=15 };
    if !enough.contains(&digits) || is_date(groups, number) || is_address(groups, number) {
        return false;
    }
    if is_international {
        return true;
    }
    let by_dots = number.contains(&b'.');
    let least = if by_dots { 3 } else { 2 };
    groups.len() >= least && groups.iter().all(|group| *group <= 6)
}

/// `2024-01-31`, and what follows of the time.
fn is_date(groups: &[usize], number: &[u8]) -> bool {
    matches!(groups, [4, 2, 2, ..]) && matches!(number.get(4), Some(b'-' | b'.' | b' '))
        || matches!(groups, [2, 2, 4, ..]) && matches!(number.get(2), Some(b'-' | b'.'))
}

/// An address of the internet.
fn is_address(groups: &[usize], number: &[u8]) -> bool {
    groups.len() == 4
        && groups.iter().all(|group| *group <= 3)
        && number
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// The check digit of payment cards.
fn luhn(digits: &[u8]) -> bool {
    if digits.iter().all(|digit| *digit == 0) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, u32::from(*digit)) {
            (1, digit) if digit > 4 => digit * 2 - 9,
            (1, digit) => digit * 2,
            (_, digit) => digit,
        })
        .sum();
    sum.is_multiple_of(10)
}

fn digit(byte: &u8) -> Option<u8> {
    byte.is_ascii_digit().then(|| byte - b'0')
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b' ' | b'(' | b')' | b'+' | b'-' | b'.')
}

/// Whether the digits are part of a name or of a longer number.
fn touches_a_word(bytes: &[u8], from: usize, to: usize) -> bool {
    let is_word =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let starts_with_digit = bytes.get(from).is_some_and(u8::is_ascii_digit);
    let ends_with_digit = to
        .checked_sub(1)
        .and_then(|last| bytes.get(last))
        .is_some_and(u8::is_ascii_digit);
    let before = from.checked_sub(1).and_then(|before| bytes.get(before));
    starts_with_digit && is_word(before) || ends_with_digit && is_word(bytes.get(to))
}

const MOST_DIGITS: usize = 19;
