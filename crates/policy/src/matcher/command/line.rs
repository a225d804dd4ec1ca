//! Shell lines, split into simple commands of plain words.

use std::iter::Peekable;
use std::str::Chars;

use super::Unclear;

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// What is left when quotes are gone; names of variables stay as they are.
    pub(super) text: String,
    /// Whether a shell makes exactly this text of it.
    pub(super) is_literal: bool,
    /// Whether any part was quoted or escaped, so that it is no reserved word or assignment.
    pub(super) is_quoted: bool,
}

impl Word {
    /// A word that no shell has touched and none will.
    pub(super) fn literal(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_literal: true,
            is_quoted: true,
        }
    }
}

/// The simple commands of a line, none of them empty.
pub(super) fn split(line: &str) -> Result<Vec<Vec<Word>>, Unclear> {
    // White space beyond ASCII separates words in some locales and not in others.
    let is_bad = |c: char| (c.is_control() || c.is_whitespace()) && !matches!(c, ' ' | '\t' | '\n');
    if line.contains(is_bad) {
        return Err(Unclear::Character);
    }
    let mut splitter = Splitter {
        rest: line.chars().peekable(),
        commands: Vec::new(),
        command: Vec::new(),
        word: None,
    };
    splitter.run()?;
    Ok(splitter.commands)
}

struct Splitter<'l> {
    rest: Peekable<Chars<'l>>,
    commands: Vec<Vec<Word>>,
    command: Vec<Word>,
    word: Option<Word>,
}

impl Splitter<'_> {
    fn run(&mut self) -> Result<(), Unclear> {
        while let Some(c) = self.rest.next() {
            self.take(c)?;
        }
        self.end_command();
        Ok(())
    }

    fn take(&mut self, c: char) -> Result<(), Unclear> {
        match c {
            ' ' | '\t' => self.end_word(),
            ';' | '&' | '|' | '\n' => self.separate(c)?,
            '\'' => self.single_quoted()?,
            '"' => self.double_quoted()?,
            '\\' => self.escaped()?,
            '$' => self.variable()?,
            '`' => return Err(Unclear::Substitution),
            '<' | '>' => return Err(Unclear::Redirection),
            '(' | ')' => return Err(Unclear::Syntax),
            '!' => self.bang()?,
            '#' if self.word.is_none() => return Err(Unclear::Syntax),
            '~' if self.word.is_none() => self.push_expanded(c),
            '*' | '?' | '[' | ']' | '{' | '}' => self.push_expanded(c),
            _ => self.open_word().text.push(c),
        }
        Ok(())
    }

    fn separate(&mut self, c: char) -> Result<(), Unclear> {
        let is_double = |c| c == '&' || c == '|';
        match self.rest.peek() {
            Some('>') => return Err(Unclear::Redirection),
            Some(';') if c == ';' => return Err(Unclear::Syntax),
            Some(next) if *next == c && is_double(c) => drop(self.rest.next()),
            Some('&') if c == '|' => drop(self.rest.next()),
            _ => {}
        }
        self.end_command();
        Ok(())
    }

    fn single_quoted(&mut self) -> Result<(), Unclear> {
        self.open_word().is_quoted = true;
        loop {
            match self.rest.next().ok_or(Unclear::Unclosed)? {
                '\'' => return Ok(()),
                c => self.open_word().text.push(c),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), Unclear> {
        self.open_word().is_quoted = true;
        loop {
            match self.rest.next().ok_or(Unclear::Unclosed)? {
                '"' => return Ok(()),
                '`' => return Err(Unclear::Substitution),
                '$' => self.variable()?,
                '!' => self.bang()?,
                '\\' => self.escaped_in_quotes()?,
                c => self.open_word().text.push(c),
            }
        }
    }

    fn escaped(&mut self) -> Result<(), Unclear> {
        match self.rest.next().ok_or(Unclear::Unclosed)? {
            '\n' => Err(Unclear::Syntax),
            c => {
                let word = self.open_word();
                word.is_quoted = true;
                word.text.push(c);
                Ok(())
            }
        }
    }

    fn escaped_in_quotes(&mut self) -> Result<(), Unclear> {
        match self.rest.next().ok_or(Unclear::Unclosed)? {
            '\n' => return Err(Unclear::Syntax),
            c @ ('$' | '`' | '"' | '\\') => self.open_word().text.push(c),
            c => self.open_word().text.extend(['\\', c]),
        }
        Ok(())
    }

    /// `$NAME` and `${NAME}`. Other forms can run something or are rare enough to be refused.
    fn variable(&mut self) -> Result<(), Unclear> {
        let is_braced = self.rest.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(c) = self
            .rest
            .next_if(|c| c.is_ascii_alphanumeric() || *c == '_')
        {
            name.push(c);
        }
        let is_closed = !is_braced || self.rest.next_if_eq(&'}').is_some();
        let is_name = name.starts_with(|c: char| !c.is_ascii_digit());
        if !is_closed || !is_name {
            return Err(Unclear::Substitution);
        }
        self.push_expanded('$');
        self.open_word().text.push_str(&name);
        Ok(())
    }

    /// Interactive shells replace `!…` by an earlier command before they read the line.
    fn bang(&mut self) -> Result<(), Unclear> {
        match self.rest.peek() {
            None | Some(' ' | '\t' | '\n' | '=' | '"') => {
                self.open_word().text.push('!');
                Ok(())
            }
            Some(_) => Err(Unclear::Substitution),
        }
    }

    fn push_expanded(&mut self, c: char) {
        let word = self.open_word();
        word.is_literal = false;
        word.text.push(c);
    }

    fn open_word(&mut self) -> &mut Word {
        self.word.get_or_insert_with(|| Word {
            text: String::new(),
            is_literal: true,
            is_quoted: false,
        })
    }

    fn end_word(&mut self) {
        self.command.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        let command = std::mem::take(&mut self.command);
        if !command.is_empty() {
            self.commands.push(command);
        }
    }
}
