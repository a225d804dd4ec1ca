//! Secrets that are told by the words before them: `PASSWORD '…'`, `ENV API_KEY …`, `login bob password …`,
//! `the password is …`, `curl -u bob:…`.

use crate::key;
use crate::span::{REDACTED, Span, begins_with_mark};

/// A word, and where it begins.
#[derive(Clone, Copy)]
struct Word<'t> {
    at: usize,
    text: &'t str,
}

pub(super) fn find(text: &str, also: &[String], spans: &mut Vec<Span>) {
    let mut before = [Word { at: 0, text: "" }; 3];
    for word in words(text) {
        if let Some(span) = told(text, before, word, also)
            && !begins_with_mark(text.get(span.start..).unwrap_or_default())
        {
            spans.push(span);
        }
        let [_, first, second] = before;
        before = [first, second, word];
    }
}

/// Whether the words before a word make it a secret.
fn told(text: &str, before: [Word<'_>; 3], word: Word<'_>, also: &[String]) -> Option<Span> {
    let [first, second, last] = before.map(|word| word.text);
    let is_name = |word: &str| {
        !word.starts_with('-') && !word.contains(['=', ':', '<']) && key::is_secret(word, also)
    };
    if USER_FLAGS.contains(&last) {
        let (_, password) = word.text.trim_matches(QUOTES).split_once(':')?;
        let is_number = password.bytes().all(|byte| byte.is_ascii_digit());
        let start = word.at + word.text.find(':')? + 1;
        return (!is_number).then(|| span(start, password.len()));
    }
    let quoted = word.text.starts_with(QUOTES);
    // Looking at a name costs more than looking at the words around it.
    let is_told = (quoted || is_any(second, SETTERS) || is_any(first, LOGINS)) && is_name(last)
        || is_any(last, &["is", "was"]) && is_no_word(word.text) && is_name(second)
        || is_any(second, &["identified"]) && is_any(last, &["by"])
        || second == "sshpass" && last == "-p";
    if !is_told {
        return None;
    }
    let Some(quote) = word.text.chars().next().filter(|_| quoted) else {
        return Some(span(word.at, word.text.len()));
    };
    let inside = text.get(word.at + 1..)?;
    let length = inside.find(quote).unwrap_or(inside.len());
    (length > 0).then(|| span(word.at + 1, length))
}

fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let start = text.as_ptr().addr();
    text.split_ascii_whitespace().map(move |word| Word {
        at: word.as_ptr().addr() - start,
        text: word,
    })
}

/// Letters alone, as in *the password is wrong*, are no secret.
fn is_no_word(text: &str) -> bool {
    let word = text.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    word.chars()
        .skip(1)
        .any(|letter| !letter.is_lowercase() && !matches!(letter, '-' | '\''))
}

fn is_any(word: &str, words: &[&str]) -> bool {
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}

fn span(start: usize, length: usize) -> Span {
    Span {
        start,
        end: start + length,
        mark: REDACTED,
    }
}

const QUOTES: [char; 2] = ['\'', '"'];
const USER_FLAGS: &[&str] = &["-u", "-U", "--user", "--proxy-user"];
const SETTERS: &[&str] = &["env", "setenv", "setx", "arg"];
const LOGINS: &[&str] = &["login", "account", "machine"];
