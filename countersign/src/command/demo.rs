//! `countersign demo`

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use countersign_canon::{Json, Limits};
use countersign_event::{EventType, Scope};
use countersign_store::{Filter, Folder, Options, Store};
use countersign_verify::{Expectation, Report, Selection};

use super::log::{draft, view};
use super::verify::{verify_folder, verify_lines};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output;

/// Records a sample session, verifies it, then tampers with copies of it to show what is found.
#[derive(Args)]
pub(crate) struct Demo {
    /// Where to keep the log [default: a new folder among the temporary files]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Demo {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let folder = Folder::new(self.data.map_or_else(temporary, Ok)?);
        let scope = Scope::new("default", SESSION)?;
        let store = Store::open(&folder, Options::default())?;
        let head = record(&store, &scope)?;
        let shown = store.reader().page(&Filter::session(&scope), None, 100)?;
        say(&format!(
            "A sample agent session, recorded in {}:\n",
            folder.path().display()
        ))?;
        say(&view::table(&shown.events)?.text())?;
        let lines: Vec<Vec<u8>> = shown.events.into_iter().map(|event| event.line).collect();

        say("\nWhat happens when somebody touches it:\n")?;
        let untouched = verify_folder(&folder, &Selection::default(), &Expectation::default())?;
        tell("nothing touched", &untouched)?;
        for (what, forged, expectation) in forgeries(&lines, head) {
            let copy = folder.path().join("demo-copy.jsonl");
            let report = verify_copy(&copy, &forged, &expectation);
            // The copy has served its purpose whatever came out of it.
            let _ = fs::remove_file(&copy);
            tell(what, &report?)?;
        }
        say(&next_steps(&folder))?;
        Ok(if untouched.is_good() {
            Exit::Done
        } else {
            Exit::Unverified
        })
    }
}

/// The session as data: what an agent did in a shop.
fn record(store: &Store, scope: &Scope) -> Result<countersign_canon::Hash, Failure> {
    let mut head = None;
    for (number, line) in STORY.lines().enumerate() {
        let event = Json::admit(line.as_bytes(), &Limits::event())?;
        let event_type = event.get("type").and_then(Json::as_str).unwrap_or_default();
        let event_type: EventType = event_type
            .parse()
            .map_err(|error| Failure::new(Code::EventType, format!("{error} in line {number}")))?;
        let payload = event.get("payload").cloned().unwrap_or(Json::Null);
        head = Some(
            store
                .record(draft(event_type, payload, None, scope)?)?
                .hash(),
        );
    }
    head.ok_or_else(|| Failure::new(Code::NoEvent, "the sample session has no events"))
}

type Forgery = (&'static str, Vec<Vec<u8>>, Expectation);

fn forgeries(lines: &[Vec<u8>], head: countersign_canon::Hash) -> Vec<Forgery> {
    let kept = Expectation {
        head: Some(head),
        ..Expectation::default()
    };
    let edited = lines
        .iter()
        .map(|line| replace(line, b"TOOL_CALL_DENIED", b"TOOL_CALL_ALLOWED"));
    let mut flipped = lines.to_vec();
    if let Some(byte) = flipped.get_mut(4).and_then(|line| line.last_mut()) {
        *byte ^= 1;
    }
    let removed = lines
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != 3)
        .map(|(_, line)| line.clone());
    let cut = lines
        .split_last()
        .map(|(_, rest)| rest.to_vec())
        .unwrap_or_default();
    vec![
        (
            "a denial turned into an allow",
            edited.collect(),
            Expectation::default(),
        ),
        ("one bit flipped", flipped, Expectation::default()),
        (
            "one event removed",
            removed.collect(),
            Expectation::default(),
        ),
        ("the end cut off, head known", cut, kept),
    ]
}

fn verify_copy(
    copy: &Path,
    lines: &[Vec<u8>],
    expectation: &Expectation,
) -> Result<Report, Failure> {
    let text: Vec<u8> = lines
        .iter()
        .flat_map(|line| line.iter().copied().chain([b'\n']))
        .collect();
    fs::write(copy, text)?;
    verify_lines(&copy.to_string_lossy(), &Selection::default(), expectation)
}

fn replace(line: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    match line.windows(from.len()).position(|window| window == from) {
        Some(at) => {
            let (before, rest) = line.split_at(at);
            [before, to, rest.get(from.len()..).unwrap_or_default()].concat()
        }
        None => line.to_vec(),
    }
}

fn tell(what: &str, report: &Report) -> Result<(), Failure> {
    let (mark, words) = match &report.failure {
        None => ("✓", format!("{} events verified", report.events)),
        Some(finding) => {
            let place = finding
                .place
                .map(|place| format!("{place}: "))
                .unwrap_or_default();
            let problem = finding.problem.to_string();
            let problem = problem
                .split(": stated")
                .next()
                .unwrap_or_default()
                .to_owned();
            ("✗", format!("found, {place}{problem}"))
        }
    };
    say(&format!("  {mark} {what:<30} {words}"))
}

fn next_steps(folder: &Folder) -> String {
    let data = folder.path().display();
    format!(
        "\nnext:\n  countersign log show --data {data} --session {SESSION} --seq 1 --open\n  \
         countersign log export --data {data} --session {SESSION}\n  countersign verify --data {data}"
    )
}

fn say(text: &str) -> Result<(), Failure> {
    Ok(output::text(text)?)
}

/// A new folder that is nobody else's.
fn temporary() -> Result<PathBuf, Failure> {
    let base = std::env::temp_dir();
    let now = crate::clock::now_unix_ms()?;
    let process = std::process::id();
    let folder = base.join(format!("countersign-demo-{now}-{process}"));
    fs::create_dir(&folder)
        .map(|()| folder.clone())
        .map_err(|error| {
            Failure::new(
                Code::Folder,
                format!("cannot make `{}`: {error}", folder.display()),
            )
        })
}

const SESSION: &str = "demo";
const STORY: &str = include_str!("demo/story.jsonl");
