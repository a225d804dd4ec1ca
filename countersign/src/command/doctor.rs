//! `countersign doctor`

use std::fs::File;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;

use clap::Args;
use countersign_canon::Json;
use countersign_event::{Head, Line};
use countersign_store::{Filter, Reader};

use super::serve::{Plan, Telling};
use crate::clock;
use crate::config::Config;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::output::{self, Format, inline};

mod canary;

#[derive(Args)]
#[command(after_help = "\
Looks at the configuration, the policies and their tests, the disk, the newest thousand events, the clock,
the keys and the port, and sends a forbidden action through each door (the API, `mcp`, `mcp serve`): it
must be refused. The doors are opened for it with the configured policies and a data folder of their own;
nothing of yours is changed.

Examples:
  countersign doctor
  countersign doctor --config countersign.toml --format json")]
pub(crate) struct Doctor {
    /// The configuration, in TOML
    #[arg(
        long,
        env = "COUNTERSIGN_CONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    config: Option<PathBuf>,
    /// The data folder [default: as configured]
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// What agents may use [default: as configured]
    #[arg(long, value_name = "FILE")]
    manifest: Option<String>,
}

/// What was found.
struct Finding {
    what: &'static str,
    said: Result<String, Failure>,
}

impl Finding {
    fn is_good(&self) -> bool {
        self.said.is_ok()
    }

    fn line(&self) -> String {
        let what = self.what;
        match &self.said {
            Ok(said) => format!("OK ✓   {what:<17} {}", inline(said)),
            Err(failure) => {
                let (said, hint) = (inline(failure.message()), failure.code().hint());
                format!("BAD ✗  {what:<17} {said}\n       {:<17} hint: {hint}", "")
            }
        }
    }

    fn json(&self) -> Json {
        let mut members = vec![
            ("what", Json::from(self.what)),
            ("good", Json::from(self.is_good())),
        ];
        match &self.said {
            Ok(said) => members.push(("said", Json::from(said.as_str()))),
            Err(failure) => members.extend([
                ("said", Json::from(failure.message())),
                ("code", Json::from(failure.code().text())),
                ("hint", Json::from(failure.code().hint())),
            ]),
        }
        Json::object(members)
    }
}

impl Doctor {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let findings = self.findings();
        let is_good = findings.iter().all(Finding::is_good);
        match format {
            Format::Text => {
                let lines: Vec<String> = findings.iter().map(Finding::line).collect();
                output::text(&lines.join("\n"))?;
            }
            Format::Json => {
                output::json(&Json::Array(findings.iter().map(Finding::json).collect()))?;
            }
        }
        match is_good {
            true => Ok(Exit::Done),
            false => Err(Failure::new(
                Code::Doctor,
                "not everything is as it must be",
            )),
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut found = |what: &'static str, said: Result<String, Failure>| {
            findings.push(Finding { what, said });
        };
        found("version", Ok(version()));
        let plan = match self.plan() {
            Ok(plan) => plan,
            Err(failure) => {
                found("configuration", Err(failure));
                return findings;
            }
        };
        let honoured = plan.tls().and_then(|tls| Telling::new(&plan).map(|_| tls));
        found(
            "configuration",
            honoured.map(|tls| configured(&plan, tls.is_some())),
        );
        let judging = policies(&plan);
        let is_judged = judging.is_ok();
        found("policies", judging);
        found("disk", disk(&plan));
        match Reader::open(&plan.folder) {
            // A first start makes it.
            Err(countersign_store::Error::NoLog(_)) => found("log", Ok("there is none yet".into())),
            Err(error) => found("log", Err(error.into())),
            Ok(reader) => {
                found("log", newest(&reader));
                found("keys", keys(&reader));
                found("clock", on_time(&reader));
            }
        }
        found("port", port(&plan));
        type Canary = fn(&Plan) -> Result<String, Failure>;
        let canaries: [(&'static str, Canary); 3] = [
            ("canary: HTTP", canary::http),
            ("canary: mcp", canary::mcp::stdio),
            ("canary: mcp serve", canary::mcp::http),
        ];
        for (what, canary) in canaries {
            // A door that opens with no policies would say nothing about those that are meant.
            found(
                what,
                match is_judged {
                    true => canary(&plan),
                    false => Err(Failure::new(
                        Code::Policy,
                        "not tried: no door opens with these policies",
                    )),
                },
            );
        }
        findings
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let file = self.config.as_deref();
        let mut config = Config::of_process(file)?;
        config.flag("data", self.data.iter().cloned().collect())?;
        config.flag("manifest", self.manifest.iter().cloned().collect())?;
        Plan::new(config)
    }
}

fn version() -> String {
    format!("countersign {}", env!("CARGO_PKG_VERSION"))
}

fn configured(plan: &Plan, is_secure: bool) -> String {
    let secure = match is_secure {
        true => "encrypted",
        false => "not encrypted",
    };
    format!("listens on {}, {secure}", plan.listen)
}

fn policies(plan: &Plan) -> Result<String, Failure> {
    let loaded = plan.files().load();
    let policies = loaded?;
    let manifest = match policies.capability().manifest() {
        Some(manifest) => {
            let digest = manifest.digest().to_string();
            format!("manifest {}", digest.chars().take(19).collect::<String>())
        }
        None => "no manifest".to_owned(),
    };
    let others = policies.others().len();
    Ok(format!("tests passed; {manifest}, {others} beside it"))
}

/// A file is written and is on the disk before it is taken away again.
fn disk(plan: &Plan) -> Result<String, Failure> {
    let folder = plan.folder.path();
    let failed = |error: std::io::Error| {
        Failure::new(Code::Folder, format!("`{}`: {error}", folder.display()))
    };
    let is_new = !folder.exists();
    std::fs::create_dir_all(folder).map_err(failed)?;
    let path = folder.join(format!("doctor.{}", std::process::id()));
    let written = File::create_new(&path).and_then(|mut file| {
        file.write_all(&[0; 4096])?;
        file.sync_all()
    });
    let mut removed = std::fs::remove_file(&path);
    if is_new {
        // Who only asks leaves nothing behind.
        removed = removed.and(std::fs::remove_dir(folder));
    }
    written.and(removed).map_err(failed)?;
    Ok(format!("`{}` can be written and synced", folder.display()))
}

/// The newest events: their own hashes, and the links between those that follow each other.
fn newest(reader: &Reader) -> Result<String, Failure> {
    let events = reader.last(&Filter::default(), NEWEST)?;
    let mut heads: std::collections::HashMap<(String, String), Head> = Default::default();
    for event in &events {
        let bad = |problem: &dyn ToString| {
            let text = format!("event {}: {}", event.id, problem.to_string());
            Failure::new(Code::Damaged, text)
        };
        let line = Line::read(&event.line).map_err(|error| bad(&error))?;
        if line.computed_hash() != line.hash {
            return Err(bad(&"its hash does not match its content"));
        }
        let name = (line.tenant_id.to_string(), line.session_id.to_string());
        if let Some(head) = heads.get(&name) {
            let link = head.accepts(line.seq, line.prev_hash.as_ref());
            link.map_err(|error| bad(&error))?;
        }
        heads.insert(name, Head::after(line.seq, line.hash));
    }
    Ok(format!(
        "the newest {} event(s) hold together",
        events.len()
    ))
}

fn keys(reader: &Reader) -> Result<String, Failure> {
    reader.check_keys()?;
    Ok("the master key is there, fits, and is its owner's alone".to_owned())
}

fn on_time(reader: &Reader) -> Result<String, Failure> {
    let now = clock::now_unix_ms()?;
    let seen = reader.latest_time()?.get();
    match now < seen {
        true => {
            let text = format!(
                "it was {} before, and is {} now",
                clock::text(seen),
                clock::text(now)
            );
            Err(Failure::new(Code::Clock, text))
        }
        false => Ok(clock::text(now)),
    }
}

/// Nobody is there, or one of us is.
fn port(plan: &Plan) -> Result<String, Failure> {
    match TcpListener::bind(plan.listen) {
        Ok(_) => Ok(format!("`{}` is free", plan.listen)),
        Err(error) => match canary::is_daemon(plan.listen) {
            true => Ok(format!("a daemon answers on `{}`", plan.listen)),
            false => Err(Failure::new(
                Code::Listen,
                format!("`{}`: {error}", plan.listen),
            )),
        },
    }
}

const NEWEST: usize = 1000;
