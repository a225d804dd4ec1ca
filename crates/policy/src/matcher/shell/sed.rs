//! `sed` with scripts that print, delete and substitute, and neither write files nor run programs.

use super::Effect;
use super::options::Options;
use super::word::Word;

pub(super) fn judge(words: &[Word]) -> Effect {
    let writes = |word: &Word| {
        let text = word.text.as_str();
        text.starts_with("--in-place") || text.starts_with("-i") || text.starts_with("-ni")
    };
    if words.iter().any(writes) {
        return Effect::changes("`-i` writes files");
    }
    let mut scripts = Vec::new();
    let mut others = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_exact() {
            Some("-e") => match rest.next().and_then(Word::as_exact) {
                Some(script) => scripts.push(script),
                None => return Effect::unknown("an expansion decides what it does"),
            },
            _ => others.push(word.clone()),
        }
    }
    let operands = match OPTIONS.operands_of(&others) {
        Ok(operands) => operands,
        Err(effect) => return effect,
    };
    if scripts.is_empty() {
        match operands.first().map(|word| word.as_exact()) {
            Some(Some(script)) => scripts.push(script),
            _ => return Effect::unknown("an expansion decides what it does"),
        }
    }
    match scripts.iter().all(|script| is_tame(script)) {
        true => Effect::ReadOnly,
        false => Effect::unknown("a script that is not understood"),
    }
}

/// Commands of one letter and substitutions, each after at most two addresses.
fn is_tame(script: &str) -> bool {
    let mut rest = script.chars().collect::<Vec<_>>().into_iter().peekable();
    loop {
        while rest.next_if(|c| matches!(c, ' ' | ';' | '\n')).is_some() {}
        if rest.peek().is_none() {
            return true;
        }
        if !is_command(&mut rest) {
            return false;
        }
        while rest.next_if_eq(&' ').is_some() {}
        if !matches!(rest.peek(), None | Some(';' | '\n')) {
            return false;
        }
    }
}

type Rest = std::iter::Peekable<std::vec::IntoIter<char>>;

fn is_command(rest: &mut Rest) -> bool {
    for _ in 0..2 {
        if !is_address(rest) {
            return false;
        }
        if rest.next_if_eq(&',').is_none() {
            break;
        }
    }
    while rest.next_if(|c| matches!(c, ' ' | '!')).is_some() {}
    match rest.next() {
        Some('p' | 'd' | 'P' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=') => true,
        Some('q') => true,
        Some('s') => is_substitution(rest),
        _ => false,
    }
}

/// A line number, `$`, `/regex/` or nothing.
fn is_address(rest: &mut Rest) -> bool {
    if rest.next_if_eq(&'/').is_some() {
        return skip_to('/', rest) && {
            rest.next_if_eq(&'I');
            true
        };
    }
    if rest.next_if_eq(&'$').is_none() {
        while rest
            .next_if(|c| c.is_ascii_digit() || matches!(c, '~' | '+'))
            .is_some()
        {}
    }
    true
}

/// `s/…/…/` with flags that only count or print: `e` runs a program, `w` writes a file.
fn is_substitution(rest: &mut Rest) -> bool {
    let Some(delimiter) = rest.next_if(|c| matches!(c, '/' | '|' | '#' | ',' | ':' | '@')) else {
        return false;
    };
    if !skip_to(delimiter, rest) || !skip_to(delimiter, rest) {
        return false;
    }
    while rest
        .next_if(|c| c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I'))
        .is_some()
    {}
    true
}

/// Skips to after the delimiter. A bracket expression may hold a delimiter that does not count, and
/// implementations differ in that, so brackets with a delimiter are refused.
fn skip_to(delimiter: char, rest: &mut Rest) -> bool {
    let mut in_brackets = false;
    while let Some(c) = rest.next() {
        match c {
            '\n' => return false,
            '\\' => match rest.next() {
                None | Some('\n') => return false,
                Some(_) if in_brackets => return false,
                Some(_) => {}
            },
            '[' => {
                rest.next_if_eq(&'^');
                if rest.peek() == Some(&']') {
                    return false;
                }
                in_brackets = true;
            }
            ']' => in_brackets = false,
            _ if c == delimiter => return !in_brackets,
            _ => {}
        }
    }
    false
}

const OPTIONS: Options = Options {
    letters: "nErsuz",
    long: &[
        "quiet",
        "silent",
        "regexp-extended",
        "null-data",
        "posix",
        "separate",
    ],
    ..Options::NONE
};
