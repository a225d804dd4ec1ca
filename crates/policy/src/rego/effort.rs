//! How much work a text would make, told from its tokens, in one pass.
//!
//! The engine's parser tries what stands in brackets as a comprehension first and reads it again if it was
//! none, so that time doubles with every bracket inside another, and triples behind a `|`. It calls itself
//! for brackets and for minus signs, and everything that walks over the tree calls itself for each operator
//! of a chain. It compares every import with all before it.
//!
//! INVARIANT: what is not certain counts as more, never as less.

/// Where a text asks for too much, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Excess {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) problem: &'static str,
}

/// Refuses a text that is nested too deep or would be read too often.
pub(super) fn check(text: &str) -> Result<(), Excess> {
    let mut measure = Measure::default();
    let mut tokens = Tokens::of(text);
    while let Some(token) = tokens.next() {
        measure.take(token).map_err(|problem| Excess {
            line: tokens.place.0,
            column: tokens.place.1,
            problem,
        })?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// A name, a number, a text.
    Operand,
    Import,
    Minus,
    Bar,
    /// Any other sign that joins two operands.
    Operator,
    Comma,
    /// What stands between two expressions.
    Boundary,
    Parenthesis,
    Bracket,
    Brace,
    Close,
}

#[derive(Default)]
struct Measure {
    outer: Vec<Level>,
    level: Level,
    nesting: usize,
    after_operand: bool,
    imports: usize,
    tokens: u64,
    work: u64,
}

/// What stands between two brackets.
#[derive(Clone, Copy)]
struct Level {
    /// How often the bracket itself is read.
    reads: u64,
    /// How often, for each of those, what stands at this place in it.
    again: u64,
    is_literal: bool,
    tokens: u64,
    height: usize,
    expression: Expression,
}

#[derive(Clone, Copy, Default)]
struct Expression {
    tokens: u64,
    links: usize,
    minuses: usize,
    /// Of the highest thing in brackets.
    height: usize,
}

impl Default for Level {
    fn default() -> Self {
        Self {
            reads: 1,
            again: 1,
            is_literal: false,
            tokens: 0,
            height: 0,
            expression: Expression::default(),
        }
    }
}

impl Measure {
    fn take(&mut self, token: Token) -> Result<(), &'static str> {
        match token {
            Token::Operand | Token::Import if self.after_operand => self.end_expression(),
            Token::Minus if !self.after_operand => {
                self.level.expression.minuses += 1;
                self.nest()?;
            }
            Token::Minus | Token::Operator => self.link(),
            Token::Bar => {
                self.link();
                if self.level.again > 1 {
                    self.level.again = AFTER_BAR;
                }
            }
            Token::Comma => {
                self.end_expression();
                // Only what stands first is tried as a comprehension.
                if self.level.is_literal && self.level.again < AFTER_BAR {
                    self.level.again = 1;
                }
            }
            Token::Boundary => self.end_expression(),
            Token::Parenthesis => self.open(1, false)?,
            Token::Bracket => self.open(IN_BRACKETS, true)?,
            // Behind an operand it is the body of a rule or of `every`, where each statement is read twice.
            Token::Brace => {
                let is_literal = !self.after_operand;
                if !is_literal {
                    self.end_expression();
                    self.after_operand = false;
                }
                self.open(IN_BRACKETS, is_literal)?;
            }
            Token::Close => self.close(),
            Token::Operand | Token::Import => {}
        }
        self.after_operand = matches!(token, Token::Operand | Token::Import | Token::Close);
        self.count(token)
    }

    fn count(&mut self, token: Token) -> Result<(), &'static str> {
        self.tokens += 1;
        self.level.tokens += 1;
        self.level.expression.tokens += 1;
        self.add(self.level.reads.saturating_mul(self.level.again));
        self.imports += usize::from(token == Token::Import);
        let expression = &self.level.expression;
        let allowed = AT_ONCE.saturating_add(self.tokens.saturating_mul(PER_TOKEN));
        match () {
            () if expression.links + expression.height > MOST_LINKS => Err(TOO_LONG),
            () if self.imports > MOST_IMPORTS => Err(TOO_MANY_IMPORTS),
            () if self.work > allowed => Err(TOO_OFTEN),
            () => Ok(()),
        }
    }

    /// Everything before an operator gets one level deeper in the tree, and is printed with that indent.
    fn link(&mut self) {
        self.level.expression.links += 1;
        self.add(self.level.expression.tokens.saturating_mul(PER_INDENT));
    }

    fn add(&mut self, work: u64) {
        self.work = self.work.saturating_add(work);
    }

    fn nest(&mut self) -> Result<(), &'static str> {
        self.nesting += 1;
        match self.nesting > MOST_NESTING {
            true => Err(TOO_DEEP),
            false => Ok(()),
        }
    }

    fn open(&mut self, again: u64, is_literal: bool) -> Result<(), &'static str> {
        // A call or an index.
        if self.after_operand {
            self.link();
        }
        self.nest()?;
        let inner = Level {
            reads: self.level.reads.saturating_mul(self.level.again),
            again,
            is_literal,
            ..Level::default()
        };
        self.outer.push(std::mem::replace(&mut self.level, inner));
        Ok(())
    }

    fn close(&mut self) {
        self.end_expression();
        // The engine says what is wrong with a bracket that closes nothing.
        if let Some(outer) = self.outer.pop() {
            let inner = std::mem::replace(&mut self.level, outer);
            self.nesting -= 1;
            self.level.tokens += inner.tokens;
            let expression = &mut self.level.expression;
            expression.tokens += inner.tokens;
            expression.height = expression.height.max(inner.height + 1);
        }
    }

    fn end_expression(&mut self) {
        let ended = std::mem::take(&mut self.level.expression);
        self.level.height = self.level.height.max(ended.links + ended.height);
        self.nesting -= ended.minuses;
    }
}

/// The tokens of a text that matter, without texts and comments.
struct Tokens<'t> {
    bytes: &'t [u8],
    at: usize,
    line: usize,
    line_start: usize,
    /// Line and column of the last token.
    place: (usize, usize),
    after_operand: bool,
}

impl<'t> Tokens<'t> {
    fn of(text: &'t str) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
            line: 1,
            line_start: 0,
            place: (1, 1),
            after_operand: false,
        }
    }

    fn next(&mut self) -> Option<Token> {
        loop {
            let byte = self.peek()?;
            match byte {
                b'#' => self.skip_while(|byte| byte != b'\n'),
                b' ' | b'\t' | b'\r' | b'\n' => self.step(),
                _ => break,
            }
        }
        self.place = (self.line, self.at - self.line_start + 1);
        let token = self.token();
        self.after_operand = matches!(token, Token::Operand | Token::Import | Token::Close);
        Some(token)
    }

    fn token(&mut self) -> Token {
        let start = self.at;
        let first = self.peek().unwrap_or_default();
        self.step();
        match first {
            b'(' => Token::Parenthesis,
            b'[' => Token::Bracket,
            b'{' => Token::Brace,
            b')' | b']' | b'}' => Token::Close,
            b',' => Token::Comma,
            b';' => Token::Boundary,
            b'|' => Token::Bar,
            // A number, where one can stand.
            b'-' if !self.after_operand
                && self.peek().is_some_and(|next| next.is_ascii_digit()) =>
            {
                self.skip_while(is_word);
                Token::Operand
            }
            b'-' => Token::Minus,
            b':' | b'=' | b'<' | b'>' | b'!' => self.comparison(first),
            b'+' | b'*' | b'/' | b'%' | b'&' | b'.' => Token::Operator,
            b'"' => self.text(),
            b'`' => {
                self.skip_while(|byte| byte != b'`');
                self.step();
                Token::Operand
            }
            first if is_word(first) => {
                self.skip_while(is_word);
                match self.bytes.get(start..self.at) {
                    Some(b"in") => Token::Operator,
                    Some(b"import") => Token::Import,
                    _ => Token::Operand,
                }
            }
            // The engine knows no other characters.
            _ => Token::Operand,
        }
    }

    fn comparison(&mut self, first: u8) -> Token {
        let is_double = self.peek() == Some(b'=');
        if is_double {
            self.step();
        }
        match first {
            b':' => Token::Boundary,
            b'=' if !is_double => Token::Boundary,
            _ => Token::Operator,
        }
    }

    /// A text that does not end where its line ends is none, and what follows counts.
    fn text(&mut self) -> Token {
        while let Some(byte) = self.peek().filter(|byte| *byte != b'\n') {
            self.step();
            match byte {
                b'"' => break,
                b'\\' if self.peek() != Some(b'\n') => self.step(),
                _ => {}
            }
        }
        Token::Operand
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn step(&mut self) {
        if self.peek() == Some(b'\n') {
            self.line += 1;
            self.line_start = self.at + 1;
        }
        self.at += 1;
    }

    fn skip_while(&mut self, is_part: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&is_part) {
            self.step();
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

const MOST_NESTING: usize = 12;
const MOST_LINKS: usize = 128;
const MOST_IMPORTS: usize = 500;

/// Readings of tokens that any text may ask for, and more for each of its tokens: the time stays in
/// proportion to the length.
const AT_ONCE: u64 = 50_000;
const PER_TOKEN: u64 = 32;

const IN_BRACKETS: u64 = 2;
const AFTER_BAR: u64 = 3;
/// A level of indent, in readings of tokens.
const PER_INDENT: u64 = 2;

const TOO_DEEP: &str =
    "brackets are nested more than 12 deep; give what is inside a rule of its own";
const TOO_LONG: &str =
    "an expression has more than 128 operators; give its parts rules of their own";
const TOO_OFTEN: &str =
    "brackets inside brackets take too long to read; give what is inside rules of their own";
const TOO_MANY_IMPORTS: &str = "there are more than 500 imports";

#[cfg(test)]
mod tests;
