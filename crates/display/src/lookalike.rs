//! Names that read like other names (UTS 39).

use unicode_script::{Script, UnicodeScript};
use unicode_security::mixed_script::AugmentedScriptSet;
use unicode_security::{MixedScript, skeleton};

use crate::warning::Subject;

/// What is suspicious about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    LooksLike(String),
    MixedScript,
}

/// The suspicious names in a text. ASCII alone is never suspicious.
pub(crate) fn findings(text: &str, is_key: bool) -> Vec<(Subject, &str, Finding)> {
    let mut found = Vec::new();
    if text.is_ascii() {
        return found;
    }
    let is_single = !text.contains(char::is_whitespace);
    let tokens = text.split(is_delimiter).filter(|token| !token.is_ascii());
    for token in tokens.map(|token| token.trim_matches(|c: char| !c.is_alphanumeric())) {
        let subject = match (is_key, is_host(token), is_single) {
            (true, _, _) => Subject::Key,
            (_, true, _) => Subject::Host,
            (_, _, true) => Subject::Identifier,
            _ => Subject::Word,
        };
        let finding = match subject {
            Subject::Word => mixed(token, &['.', '-']),
            _ => looks_like(token).or_else(|| mixed(token, &['.'])),
        };
        found.extend(finding.map(|finding| (subject, token, finding)));
    }
    found
}

/// What two names share that look the same.
pub(crate) fn shape(name: &str) -> String {
    skeleton(name).collect()
}

/// The ASCII text that a reader takes the name for. ASCII characters stand for themselves here: the
/// skeleton alone would turn `m` into `rn`.
fn looks_like(token: &str) -> Option<Finding> {
    let mut like = String::with_capacity(token.len());
    let mut buffer = [0; 4];
    for c in token.chars() {
        match c.is_ascii() {
            true => like.push(c),
            false => like.extend(skeleton(c.encode_utf8(&mut buffer))),
        }
    }
    (like.is_ascii() && like != token).then_some(Finding::LooksLike(like))
}

fn mixed(token: &str, separators: &[char]) -> Option<Finding> {
    token
        .split(separators)
        .any(is_mixed)
        .then_some(Finding::MixedScript)
}

/// Several scripts that are not written together. Latin beside Chinese, Japanese and Korean is.
fn is_mixed(label: &str) -> bool {
    if label.is_ascii() || label.is_single_script() {
        return false;
    }
    let mut others = AugmentedScriptSet::default();
    let foreign = label.chars().filter(|c| c.script() != Script::Latin);
    for c in foreign {
        others.intersect_with(AugmentedScriptSet::for_char(c));
    }
    !(others.hanb || others.jpan || others.kore) || others.is_all()
}

/// A dot between letters or digits.
fn is_host(token: &str) -> bool {
    let mut labels = token.split('.');
    let is_label = |label: &str| label.contains(char::is_alphanumeric);
    labels.clone().count() > 1 && labels.all(is_label)
}

fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, is_key: bool, expect: &[&str]) {
        let found = findings(text, is_key);
        let shown: Vec<String> = found
            .iter()
            .map(|(subject, token, finding)| match finding {
                Finding::LooksLike(like) => format!("{} {token} ~ {like}", subject.as_str()),
                Finding::MixedScript => format!("{} {token} mixed", subject.as_str()),
            })
            .collect();
        assert_eq!(shown, expect, "{text}");
    }

    #[test]
    fn names_that_read_like_others() {
        check("paypal.com", false, &[]);
        check(
            "p\u{430}ypal.com",
            false,
            &["host p\u{430}ypal.com ~ paypal.com"],
        );
        check(
            "https://user@p\u{430}ypal.com:443/x?y=\u{43e}ne",
            false,
            &[
                "host p\u{430}ypal.com ~ paypal.com",
                "identifier \u{43e}ne ~ one",
            ],
        );
        check(
            "see p\u{430}ypal.com now",
            false,
            &["host p\u{430}ypal.com ~ paypal.com"],
        );
        check(
            "\u{441}\u{43e}\u{441}\u{43e}",
            true,
            &["key \u{441}\u{43e}\u{441}\u{43e} ~ coco"],
        );
        check("a \u{441}\u{43e}\u{441}\u{43e} b", false, &[]);
        check(
            "the p\u{430}ssword is",
            false,
            &["word p\u{430}ssword mixed"],
        );
    }

    #[test]
    fn ordinary_writing_is_not_suspicious() {
        for text in [
            "café.example",
            "Grüße an Jürgen",
            "Привет, мир",
            "www.пример.com",
            "Tシャツ",
            "漢字とかな",
            "한국어 test",
            "USB-кабель для вас",
            "Ελληνικά",
            "we don’t know “this”…",
            "naïve – ok",
        ] {
            check(text, false, &[]);
        }
    }
}
