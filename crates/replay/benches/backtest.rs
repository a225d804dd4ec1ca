//! Records actions in many sessions, then asks other policies about all of them. Prints how many actions
//! a second, beside how fast the log alone can be read.
//!
//! `COUNTERSIGN_ACTIONS=N` sets how many actions; 100 000 otherwise.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark may stop at once, and prints what it found"
)]

use std::path::Path;
use std::time::Instant;

use countersign_canon::{Json, Limits};
use countersign_engine::{Engine, Origin, Outcome, Proposal, Start, SystemClock};
use countersign_event::Scope;
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_replay::{Error, Progress, Question, Reading, backtest};
use countersign_store::{Durability, Folder, Options, Reader, Store};

fn main() {
    let actions = std::env::var("COUNTERSIGN_ACTIONS").ok();
    let actions: u64 = actions.map_or(100_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let started = Instant::now();
    record(actions, folder.path());
    println!(
        "recorded      {actions} actions in {:.1} s",
        started.elapsed().as_secs_f64()
    );
    let reader = Reader::open(&Folder::new(folder.path())).unwrap();
    rate("read alone", actions, || {
        let mut events = 0_u64;
        for session in reader.sessions(None).unwrap() {
            let read = reader.history(&session.scope, |_| {
                events += 1;
                Ok::<_, Error>(())
            });
            read.unwrap();
        }
        events
    });
    let other = policies(r#"["read_file","write_file"]"#);
    for (name, reading) in [
        ("independent", Reading::Independent),
        ("feed-forward", Reading::FeedForward),
    ] {
        rate(name, actions, || {
            let question = Question {
                policies: &other,
                reading,
                since_unix_ms: None,
                until_unix_ms: None,
                tool: None,
                scope: None,
                wanted: None,
            };
            let result = backtest(&question, &reader, &Progress::default()).unwrap();
            assert_eq!((result.actions, result.unread_sessions), (actions, 0));
            result.changes.total()
        });
    }
    println!("memory        {} MB at most", peak_mb());
}

fn rate(name: &str, actions: u64, work: impl FnOnce() -> u64) {
    let started = Instant::now();
    let found = work();
    let seconds = started.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    let per_second = actions as f64 / seconds;
    println!("{name:<13} {per_second:>9.0} actions/s in {seconds:.2} s ({found})");
}

/// Sessions of 200 calls each, as busy agents have them.
fn record(actions: u64, folder: &Path) {
    let options = Options {
        durability: Durability::Relaxed,
        ..Options::default()
    };
    let store = Store::open(&Folder::new(folder), options).unwrap();
    let tools = r#"["read_file","write_file","search"]"#;
    let engine = Engine::new(store, policies(tools), SystemClock);
    let origin = Origin::new("operator", "agent", folder).unwrap();
    for number in 0..actions {
        let scope = Scope::new("t", format!("s{}", number / 200).as_str()).unwrap();
        let tool = ["read_file", "write_file", "search"][usize::try_from(number % 3).unwrap()];
        let args =
            format!(r#"{{"path":"/srv/{number}","text":"a line of text that is not very long"}}"#);
        let start = engine.start(Proposal {
            scope: &scope,
            call_id: format!("c{number}"),
            tool_name: tool.to_owned(),
            server: None,
            definition: None,
            origin: &origin,
            preconditions: Vec::new(),
            args: json(&args),
            sanitizer_key: None,
            bytes: args.as_bytes(),
            encode: &|args| args.to_jcs().unwrap(),
        });
        if let Start::Running(running) = start {
            let content = Json::from(format!("what {tool} answers to {number}"));
            let is_error = false;
            let settled = engine.settle_soon(running, Outcome::Result { content, is_error });
            let _settled = settled.unwrap();
        }
    }
    engine.flush().unwrap();
}

fn policies(tools: &str) -> Policies {
    let manifest = format!(
        r#"{{"permissions":{{"tools":{tools},"budgets":{{"max_tool_calls":1000000,"max_steps":1000000,"max_wall_time_ms":1000000000}}}}}}"#
    );
    let manifest = Manifest::partial(&json(&manifest)).unwrap();
    Policies::new(Capability::new(Some(manifest)).unwrap())
}

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}
