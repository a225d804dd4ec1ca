//! What the commands of a line do, one by one.

use super::Effect;
use super::known;
use super::parse::{self, Mode, Redirection, Simple};
use super::programs;
use super::word::Word;

/// Judges a shell line.
pub(super) fn line(text: &str) -> Effect {
    nested_line(text, parse::DEEPEST)
}

/// Judges one command whose words are known.
pub(super) fn words(words: &[String]) -> Effect {
    let words: Vec<Word> = words.iter().map(|word| Word::exact(word)).collect();
    command(&words, parse::DEEPEST)
}

fn nested_line(text: &str, depth: usize) -> Effect {
    let commands = match parse::commands(text, depth) {
        Ok(commands) if commands.is_empty() => return Effect::unknown("no command"),
        Ok(commands) => commands,
        Err(trouble) => return Effect::unknown(trouble),
    };
    let effects = commands.iter().map(|simple| self::simple(simple, depth));
    effects.fold(elsewhere(&commands), Effect::and)
}

/// After `cd` the configuration of another folder may count, and anybody may have written that.
fn elsewhere(commands: &[Simple]) -> Effect {
    let mut names = commands.iter().filter_map(|simple| simple.words.first());
    // Wherever the word stands: `command cd` is `cd` as well.
    let mut words = commands.iter().flat_map(|simple| &simple.words);
    let moves = words.any(|word| word.as_exact() == Some("cd"));
    let is_alike = |name: &str| programs::rule(name).is_some() && name != "git";
    match moves && !names.all(|name| name.as_exact().is_some_and(is_alike)) {
        true => Effect::unknown("runs a program in another folder"),
        false => Effect::ReadOnly,
    }
}

fn simple(simple: &Simple, depth: usize) -> Effect {
    let redirected = simple.redirections.iter().map(redirection);
    let redirected = redirected.fold(Effect::ReadOnly, Effect::and);
    match simple.words.first() {
        // Input alone does nothing.
        None => redirected,
        Some(first) if is_assignment(first) => {
            redirected.and(Effect::unknown("variable assignment"))
        }
        Some(_) => redirected.and(command(&simple.words, depth)),
    }
}

fn redirection(redirection: &Redirection) -> Effect {
    let target = &redirection.target;
    let is_sink = ["/dev/null", "/dev/stdout", "/dev/stderr"]
        .iter()
        .any(|sink| target.as_exact() == Some(sink));
    let is_descriptor = target.as_exact().is_some_and(|text| {
        text == "-" || text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty()
    });
    match redirection.mode {
        Mode::Here => Effect::ReadOnly,
        Mode::Write if is_sink => Effect::ReadOnly,
        Mode::Duplicate if is_descriptor => Effect::ReadOnly,
        Mode::Write | Mode::Duplicate => Effect::changes("writes to a file by redirection"),
        Mode::Read if target.may_be_special() => Effect::unknown("reads from a special file"),
        Mode::Read => Effect::ReadOnly,
    }
}

/// Judges one command: a program and its arguments.
pub(super) fn command(words: &[Word], depth: usize) -> Effect {
    let Some(depth) = depth.checked_sub(1) else {
        return Effect::unknown("nested too deep");
    };
    let Some((first, rest)) = words.split_first() else {
        return Effect::unknown("no command");
    };
    let Some(name) = first.as_exact() else {
        return Effect::unknown("an expansion decides which program runs");
    };
    let Some(name) = program_name(name) else {
        return Effect::unknown(format!("`{name}` is not a program of the system"));
    };
    if let Some(wrapped) = wrapped(name, rest, depth) {
        return wrapped;
    }
    match programs::rule(name) {
        Some(rule) => named(name, rule.judge(rest)),
        None => known::without_rule(name),
    }
}

/// Programs that run other programs, and shells.
fn wrapped(name: &str, rest: &[Word], depth: usize) -> Option<Effect> {
    let wrapper = |rest: &[Word]| match rest.first() {
        Some(first) if first.is_operand() && !is_assignment(first) => command(rest, depth),
        _ => Effect::unknown(format!("`{name}` with options that are not understood")),
    };
    let effect = match name {
        "env" | "command" | "exec" | "time" | "setsid" | "ionice" => match (name, rest) {
            ("command", [option, rest @ ..]) if is_one_of(option, &["-v", "-V"]) => {
                operands_only(rest)
            }
            _ => wrapper(rest),
        },
        "nice" => wrapper(after_value(rest, &["-n"])),
        "timeout" => match rest.split_first() {
            Some((time, rest)) if time.as_exact().is_some_and(is_duration) => wrapper(rest),
            _ => Effect::unknown("`timeout` with options that are not understood"),
        },
        "xargs" => fed(rest, depth),
        "sh" | "bash" | "dash" | "ash" => match rest {
            [option, text] if is_one_of(option, &["-c"]) => match text.as_exact() {
                Some(text) => nested_line(text, depth),
                None => Effect::unknown("an expansion decides what the shell runs"),
            },
            _ => Effect::unknown("a shell whose commands are not visible"),
        },
        _ => return None,
    };
    Some(effect)
}

/// `xargs` adds words from its input, which may be anything.
fn fed(rest: &[Word], depth: usize) -> Effect {
    let mut rest = rest;
    loop {
        match rest {
            [option, after @ ..] if is_one_of(option, &["-0", "-r"]) => rest = after,
            [option, value, after @ ..] if is_one_of(option, &["-n", "-L"]) && value.is_exact => {
                rest = after;
            }
            // Without a command it is `echo`.
            [] => return Effect::ReadOnly,
            [first, ..] if first.is_operand() => break,
            _ => return Effect::unknown("`xargs` with options that are not understood"),
        }
    }
    let mut words = rest.to_vec();
    words.push(Word::anything());
    command(&words, depth)
}

fn after_value<'w>(rest: &'w [Word], options: &[&str]) -> &'w [Word] {
    match rest {
        [option, value, after @ ..] if is_one_of(option, options) && value.is_exact => after,
        _ => rest,
    }
}

fn operands_only(words: &[Word]) -> Effect {
    match words.iter().all(Word::is_operand) {
        true => Effect::ReadOnly,
        false => Effect::unknown("options that are not understood"),
    }
}

fn is_one_of(word: &Word, options: &[&str]) -> bool {
    word.as_exact().is_some_and(|text| options.contains(&text))
}

/// A bare name, or a path into a folder of the system.
fn program_name(name: &str) -> Option<&str> {
    match name.rsplit_once('/') {
        None => Some(name),
        Some((folder, name)) => FOLDERS.contains(&folder).then_some(name),
    }
}

/// `NAME=…`, also `NAME+=…` and `NAME[…]=…`.
fn is_assignment(word: &Word) -> bool {
    let starts_name = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let before = word.text.split('=').next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '+' || c == '[';
    starts_name(&word.text)
        && (word.text.contains('=') || !word.is_exact)
        && before.chars().all(is_name)
}

fn is_duration(text: &str) -> bool {
    let number = text.trim_end_matches(['s', 'm', 'h', 'd']);
    !number.is_empty()
        && number
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Puts the name of the program before the reason.
fn named(name: &str, effect: Effect) -> Effect {
    match effect {
        Effect::ReadOnly => Effect::ReadOnly,
        Effect::SideEffecting { why } => Effect::changes(format!("`{name}`: {why}")),
        Effect::Unknown { why } => Effect::unknown(format!("`{name}`: {why}")),
    }
}

const FOLDERS: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin"];
