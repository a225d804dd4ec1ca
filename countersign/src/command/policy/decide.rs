//! `countersign policy decide`

use std::io::{self, BufRead, Write as _};

use clap::Args;
use countersign_canon::{Json, Limits, Reason};
use countersign_policy::Decision;
use countersign_policy::whatif::{Answer, Desk};

use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::{input, output};

#[derive(Args)]
#[command(after_help = "\
Reads one object, an array of them, or one a line, and prints one JSON line for each:
  {\"constraints\":{},\"outcome\":\"deny\",\"reason\":\"EGRESS_DENY\"}
The outcome is allow, deny or require_approval. Nothing is recorded and nothing runs. What is not
valid JSON is denied (INVALID_INPUT), and reading goes on.

Exit code, for exactly one answer: 0 allow, 2 deny, 4 require_approval. For several: 0, or 3 if none
of them was valid JSON.

Examples:
  countersign policy decide question.json
  countersign policy decide --lines < questions.jsonl")]
pub(crate) struct Decide {
    /// The file, or - for standard input
    #[arg(default_value = "-")]
    file: String,
    /// Every line is a question: answer each as soon as it comes
    #[arg(long)]
    lines: bool,
}

impl Decide {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut source = input::lines(&self.file)?;
        let mut clerk = Clerk::new();
        if !self.lines {
            clerk.answer_start(&mut *source)?;
        }
        while let Some(line) = next(&mut *source)? {
            clerk.answer_line(&line)?;
        }
        clerk.exit()
    }
}

/// Answers and counts.
struct Clerk {
    desk: Desk,
    out: io::BufWriter<io::StdoutLock<'static>>,
    answers: u64,
    /// How many questions were valid JSON.
    read: u64,
    last: Option<Decision>,
}

impl Clerk {
    fn new() -> Self {
        Self {
            desk: Desk::default(),
            out: output::stdout(),
            answers: 0,
            read: 0,
            last: None,
        }
    }

    /// The first line is the first of many, or the start of one value over many lines.
    fn answer_start(&mut self, source: &mut dyn BufRead) -> Result<(), Failure> {
        let Some(first) = next(source)? else {
            return Ok(());
        };
        match Json::admit(&first, &LIMITS) {
            Ok(Json::Array(questions)) => self.answer_each(&questions),
            Err(error) if *error.reason() == Reason::UnexpectedEnd => {
                let rest = countersign_canon::read_bounded(source, DOCUMENT.max_bytes).map_err(
                    |error| Failure::new(Code::TooLarge, format!("the input is {error}")),
                )?;
                self.answer_document(&[&first, b"\n".as_slice(), &rest].concat())
            }
            _ => self.answer_line(&first),
        }
    }

    fn answer_document(&mut self, text: &[u8]) -> Result<(), Failure> {
        let lines = || {
            text.split(|byte| *byte == b'\n')
                .filter(|line| !is_blank(line))
        };
        match Json::admit(text, &DOCUMENT) {
            Ok(Json::Array(questions)) => self.answer_each(&questions),
            Ok(question) => self.answer(&question),
            // Only the first of many lines was cut short.
            Err(_) if lines().any(is_object) => lines().try_for_each(|line| self.answer_line(line)),
            Err(_) => self.print(&Answer::unreadable()),
        }
    }

    fn answer_each(&mut self, questions: &[Json]) -> Result<(), Failure> {
        questions
            .iter()
            .try_for_each(|question| self.answer(question))
    }

    fn answer_line(&mut self, line: &[u8]) -> Result<(), Failure> {
        match Json::admit(line, &LIMITS) {
            Ok(question) => self.answer(&question),
            Err(_) => self.print(&Answer::unreadable()),
        }
    }

    fn answer(&mut self, question: &Json) -> Result<(), Failure> {
        let answer = self.desk.decide(question);
        self.read += 1;
        self.print(&answer)
    }

    fn print(&mut self, answer: &Answer) -> Result<(), Failure> {
        self.out.write_all(&answer.to_json().to_jcs()?)?;
        self.out.write_all(b"\n")?;
        self.out.flush()?;
        self.answers += 1;
        self.last = Some(answer.decision);
        Ok(())
    }

    /// FAIL-CLOSED: 0 reads as "allowed", so it needs a question.
    fn exit(self) -> Result<Exit, Failure> {
        let refused = |problem: &str| Err(Failure::new(Code::Nothing, problem));
        match (self.answers, self.last) {
            (1, Some(decision)) => Ok(decision.into()),
            (_, None) => refused("there is nothing to decide"),
            _ if self.read == 0 => refused("nothing of the input is valid JSON"),
            _ => Ok(Exit::Done),
        }
    }
}

/// The next line that is not blank. One that is too long comes as its start, which is not valid
/// JSON.
fn next(source: &mut dyn BufRead) -> Result<Option<Vec<u8>>, Failure> {
    loop {
        let mut line = Vec::new();
        let limit = LIMITS.max_bytes as u64 + 1;
        let read = io::Read::take(&mut *source, limit)
            .read_until(b'\n', &mut line)
            .map_err(|error| input::unreadable("the input", &error))?;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > LIMITS.max_bytes {
            input::skip_line(source)?;
        }
        match read {
            0 => return Ok(None),
            _ if is_blank(&line) => {}
            _ => return Ok(Some(line)),
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

fn is_object(line: &[u8]) -> bool {
    Json::admit(line, &LIMITS).is_ok_and(|value| value.as_object().is_some())
}

/// One question: an event and a manifest, side by side.
const LIMITS: Limits = Limits {
    max_bytes: 1 << 23,
    max_depth: 160,
    ..Limits::plan()
};
/// Many questions.
const DOCUMENT: Limits = Limits {
    max_bytes: 1 << 28,
    ..LIMITS
};
