//! Shell lines, read as far as it matters which commands run with which words.
//!
//! The order and the conditions of commands do not matter here: all of them count. So a list, a pipe,
//! a group, an `if` and a substitution all add their commands to one flat list.

use super::word::Word;

/// A simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) words: Vec<Word>,
    pub(super) redirections: Vec<Redirection>,
}

/// A redirection to or from a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirection {
    pub(super) mode: Mode,
    pub(super) target: Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write,
    /// To or from a descriptor, or a file if it is no number.
    Duplicate,
    /// Text that stands in the line.
    Here,
}

/// Why a line is not understood.
pub(super) type Trouble = &'static str;

/// All commands of a line, those in substitutions included.
pub(super) fn commands(line: &str, depth: usize) -> Result<Vec<Simple>, Trouble> {
    if line.len() > LONGEST {
        return Err("too long");
    }
    // White space beyond ASCII separates words in some locales and not in others.
    let is_bad = |c: char| (c.is_control() || c.is_whitespace()) && !matches!(c, ' ' | '\t' | '\n');
    if line.contains(is_bad) {
        return Err("control character or unusual space");
    }
    let mut parser = Parser {
        text: line.chars().collect(),
        at: 0,
        depth,
        top: depth,
        commands: Vec::new(),
        documents: Vec::new(),
    };
    parser.list(None)?;
    match parser.documents.is_empty() {
        true => Ok(parser.commands),
        false => Err("here-document without end"),
    }
}

struct Parser {
    text: Vec<char>,
    at: usize,
    /// How many levels are left, and how many there were.
    depth: usize,
    top: usize,
    commands: Vec<Simple>,
    /// Here-documents whose text begins on the next line.
    documents: Vec<Document>,
}

struct Document {
    end: String,
    is_literal: bool,
    strips_tabs: bool,
}

impl Parser {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek(0);
        self.at += usize::from(c.is_some());
        c
    }

    fn take_if(&mut self, expected: char) -> bool {
        let is_there = self.peek(0) == Some(expected);
        self.at += usize::from(is_there);
        is_there
    }

    /// Commands up to the closing character, or to the end of the text.
    fn list(&mut self, close: Option<char>) -> Result<(), Trouble> {
        self.depth = self.depth.checked_sub(1).ok_or("nested too deep")?;
        if !self.documents.is_empty() {
            return Err(DOCUMENT_PLACE);
        }
        loop {
            let is_closed = self.command(close)?;
            if is_closed {
                self.depth += 1;
                return Ok(());
            }
        }
    }

    /// One simple command with the operator after it; whether the list ends with it.
    fn command(&mut self, close: Option<char>) -> Result<bool, Trouble> {
        let mut command = Simple::default();
        loop {
            let Some(c) = self.peek(0) else {
                self.finish(command)?;
                return match close {
                    None => Ok(true),
                    Some(_) => Err("unclosed substitution or group"),
                };
            };
            match c {
                ' ' | '\t' => self.at += 1,
                '\\' if self.peek(1) == Some('\n') => self.at += 2,
                '\n' => {
                    self.at += 1;
                    self.read_documents()?;
                    self.finish(command)?;
                    return Ok(false);
                }
                ';' | '&' | '|' if !self.is_both_redirection() => {
                    self.operator(c)?;
                    self.finish(command)?;
                    return Ok(false);
                }
                '(' if command.words.is_empty() && command.redirections.is_empty() => {
                    self.at += 1;
                    if self.peek(0) == Some('(') {
                        return Err("arithmetic");
                    }
                    self.list(Some(')'))?;
                    return Ok(false);
                }
                ')' if close == Some(')') => {
                    self.at += 1;
                    self.finish(command)?;
                    return Ok(true);
                }
                '(' | ')' => return Err("shell syntax that is not understood"),
                '#' => return Err("comment"),
                _ => match self.redirection()? {
                    Some(redirection) => command.redirections.push(redirection),
                    None => {
                        let word = self.word()?;
                        command.words.push(word);
                        drop_reserved(&mut command)?;
                    }
                },
            }
        }
    }

    /// `&>` and `&>>`.
    fn is_both_redirection(&self) -> bool {
        self.peek(0) == Some('&') && self.peek(1) == Some('>')
    }

    fn operator(&mut self, c: char) -> Result<(), Trouble> {
        self.at += 1;
        match (c, self.peek(0)) {
            (';', Some(';' | '&')) => return Err("shell syntax that is not understood"),
            ('&', Some('&')) | ('|', Some('|' | '&')) => self.at += 1,
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, command: Simple) -> Result<(), Trouble> {
        if self.commands.len() >= MOST {
            return Err("too many commands");
        }
        if !command.words.is_empty() || !command.redirections.is_empty() {
            self.commands.push(command);
        }
        Ok(())
    }

    fn redirection(&mut self) -> Result<Option<Redirection>, Trouble> {
        let start = self.at;
        while self.peek(0).is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        if self.is_both_redirection() {
            // To some shells this is `&` and then `>`, and words after it are a command.
            return Err("redirection that shells read differently");
        }
        let mode = match (self.peek(0), self.peek(1)) {
            // Process substitution belongs to a word.
            (Some('<' | '>'), Some('(')) => None,
            (Some('<'), Some('<')) => return self.here().map(Some),
            (Some('<'), Some('&')) | (Some('>'), Some('&')) => Some((Mode::Duplicate, 2)),
            (Some('<'), Some('>')) | (Some('>'), Some('>' | '|')) => Some((Mode::Write, 2)),
            (Some('<'), _) => Some((Mode::Read, 1)),
            (Some('>'), _) => Some((Mode::Write, 1)),
            _ => None,
        };
        let Some((mode, length)) = mode else {
            self.at = start;
            return Ok(None);
        };
        self.at += length;
        let target = self.target()?;
        Ok(Some(Redirection { mode, target }))
    }

    fn target(&mut self) -> Result<Word, Trouble> {
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.at += 1;
        }
        match self.peek(0) {
            None | Some('\n' | ';' | '&' | '|' | ')') => Err("redirection without target"),
            _ => self.word(),
        }
    }

    /// `<<END`, `<<-END` and `<<<word`.
    fn here(&mut self) -> Result<Redirection, Trouble> {
        self.at += 2;
        let mode = Mode::Here;
        if self.take_if('<') {
            let target = self.target()?;
            return Ok(Redirection { mode, target });
        }
        if self.depth + 1 < self.top {
            return Err(DOCUMENT_PLACE);
        }
        let strips_tabs = self.take_if('-');
        let target = self.target()?;
        let end = target.as_exact().ok_or("here-document with odd end")?;
        self.documents.push(Document {
            end: end.to_owned(),
            is_literal: target.is_quoted,
            strips_tabs,
        });
        Ok(Redirection { mode, target })
    }

    fn read_documents(&mut self) -> Result<(), Trouble> {
        for document in std::mem::take(&mut self.documents) {
            loop {
                if self.at >= self.text.len() {
                    return Err("here-document without end");
                }
                let mut line = String::new();
                while let Some(c) = self.take().filter(|c| *c != '\n') {
                    line.push(c);
                }
                let shown = match document.strips_tabs {
                    true => line.trim_start_matches('\t'),
                    false => &line,
                };
                if shown == document.end {
                    break;
                }
                if !document.is_literal && line.contains(['$', '`', '\\']) {
                    return Err("here-document with expansions");
                }
            }
        }
        Ok(())
    }

    fn word(&mut self) -> Result<Word, Trouble> {
        let mut word = Word {
            is_exact: true,
            ..Word::default()
        };
        let start = self.at;
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
                '(' => return Err("shell syntax that is not understood"),
                '<' | '>' if self.peek(1) == Some('(') => {
                    self.at += 2;
                    self.list(Some(')'))?;
                    // A path to a pipe, made by the shell.
                    expand(&mut word, "/fd/", false);
                }
                '<' | '>' => break,
                _ => {
                    self.at += 1;
                    self.word_part(c, &mut word)?;
                }
            }
        }
        let written = self.text.get(start..self.at).unwrap_or_default();
        // The shell leaves these alone although their characters are special.
        if matches!(written, ['{' | '}' | '[' | ']'] | ['{', '}']) {
            word.text = written.iter().collect();
            word.is_exact = true;
        }
        Ok(word)
    }

    fn word_part(&mut self, c: char, word: &mut Word) -> Result<(), Trouble> {
        match c {
            '\'' => self.single_quoted(word),
            '"' => self.double_quoted(word),
            '\\' => match self.take().ok_or("unclosed escape")? {
                '\n' => Ok(()),
                c => {
                    word.is_quoted = true;
                    push(word, c);
                    Ok(())
                }
            },
            '$' => self.dollar(word, true),
            '`' => self.backticks(word, true),
            '!' => self.bang(word),
            '~' if word.text.is_empty() && !word.is_quoted => {
                expand(word, "~", false);
                Ok(())
            }
            '*' | '?' | '[' | ']' | '{' | '}' => {
                expand(word, "", false);
                Ok(())
            }
            c => {
                push(word, c);
                Ok(())
            }
        }
    }

    fn single_quoted(&mut self, word: &mut Word) -> Result<(), Trouble> {
        word.is_quoted = true;
        loop {
            match self.take().ok_or("unclosed quote")? {
                '\'' => return Ok(()),
                '\n' if !self.documents.is_empty() => return Err(DOCUMENT_PLACE),
                c => push(word, c),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word) -> Result<(), Trouble> {
        word.is_quoted = true;
        loop {
            match self.take().ok_or("unclosed quote")? {
                '"' => return Ok(()),
                '\n' if !self.documents.is_empty() => return Err(DOCUMENT_PLACE),
                '$' => self.dollar(word, false)?,
                '`' => self.backticks(word, false)?,
                '!' => self.bang(word)?,
                '\\' => match self.take().ok_or("unclosed quote")? {
                    '\n' => {}
                    c @ ('$' | '`' | '"' | '\\') => push(word, c),
                    c => {
                        push(word, '\\');
                        push(word, c);
                    }
                },
                c => push(word, c),
            }
        }
    }

    fn dollar(&mut self, word: &mut Word, splits: bool) -> Result<(), Trouble> {
        match self.peek(0) {
            Some('(') if self.peek(1) == Some('(') => Err("arithmetic"),
            Some('(') => {
                self.at += 1;
                self.list(Some(')'))?;
                expand(word, "", splits);
                Ok(())
            }
            Some('{') => {
                self.at += 1;
                let name = self.name();
                match self.take_if('}') {
                    true => variable(&name, word, splits),
                    false => Err("parameter expansion"),
                }
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.name();
                variable(&name, word, splits)
            }
            Some('?' | '$' | '#') => {
                self.at += 1;
                expand(word, "", splits);
                Ok(())
            }
            Some('\'' | '"') if splits => Err("unusual quotes"),
            None | Some(' ' | '\t' | '\n' | '"' | '/' | ')' | '|' | '.' | ',') => {
                push(word, '$');
                Ok(())
            }
            Some(_) => Err("expansion that is not understood"),
        }
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self
            .peek(0)
            .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        {
            name.push(c);
            self.at += 1;
        }
        name
    }

    /// The text between backticks is a line of its own, with one level of escapes.
    fn backticks(&mut self, word: &mut Word, splits: bool) -> Result<(), Trouble> {
        let mut inner = String::new();
        loop {
            match self.take().ok_or("unclosed substitution")? {
                '`' => break,
                '\\' => match self.take().ok_or("unclosed substitution")? {
                    c @ ('`' | '\\' | '$') => inner.push(c),
                    // Inside double quotes shells do not agree.
                    '"' if !splits => return Err("quotes in backticks"),
                    c => inner.extend(['\\', c]),
                },
                c => inner.push(c),
            }
        }
        let depth = self.depth.checked_sub(1).ok_or("nested too deep")?;
        self.commands.extend(commands(&inner, depth)?);
        expand(word, "", splits);
        Ok(())
    }

    /// Interactive shells replace `!…` by an earlier command before they read the line.
    fn bang(&mut self, word: &mut Word) -> Result<(), Trouble> {
        match self.peek(0) {
            None | Some(' ' | '\t' | '\n' | '=' | '"') => {
                push(word, '!');
                Ok(())
            }
            Some(_) => Err("history expansion"),
        }
    }
}

/// A reserved word in the place of a program: those that only join commands end here, the others are
/// not understood.
fn drop_reserved(command: &mut Simple) -> Result<(), Trouble> {
    let [word] = command.words.as_slice() else {
        return Ok(());
    };
    if word.is_quoted || !word.is_exact || !command.redirections.is_empty() {
        return Ok(());
    }
    match word.text.as_str() {
        "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done" | "!" | "{"
        | "}" => command.words.clear(),
        "for" | "case" | "esac" | "in" | "select" | "function" | "coproc" | "[[" | "]]" => {
            return Err("shell syntax that is not understood");
        }
        _ => {}
    }
    Ok(())
}

fn push(word: &mut Word, c: char) {
    if word.is_exact {
        word.text.push(c);
    }
}

/// Notes an expansion: what follows is not known any more.
fn expand(word: &mut Word, known: &str, splits: bool) {
    if word.is_exact {
        word.text.push_str(known);
    }
    word.is_exact = false;
    word.splits |= splits;
}

/// SECURITY: a variable may hold a secret, and then showing it is not harmless.
fn variable(name: &str, word: &mut Word, splits: bool) -> Result<(), Trouble> {
    match PUBLIC.contains(&name) {
        true => {
            expand(word, "", splits);
            Ok(())
        }
        false => Err("variable that may hold anything"),
    }
}

/// Shells disagree on where its text begins and ends.
const DOCUMENT_PLACE: Trouble = "here-document around or inside something else";

/// Longest line that is examined, in bytes.
const LONGEST: usize = 64 << 10;
/// Most commands of one line.
const MOST: usize = 256;
/// How deep a line may nest.
pub(super) const DEEPEST: usize = 16;

/// Variables that hold no secret.
const PUBLIC: &[&str] = &[
    "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "HOSTNAME", "UID", "EUID", "PPID", "LANG", "TERM",
    "SHELL", "TMPDIR",
];
