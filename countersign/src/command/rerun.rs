//! `countersign rerun`

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use countersign_canon::{Json, Limits};
use countersign_event::Scope;
use countersign_redact::Redactor;
use countersign_replay::{Diff, Ignored, Mode, RecordedCall, Report, Taken, calls, differences};

use super::conformance::{Mcp, McpError};
use super::replay;
use crate::child::{Process, ours};
use crate::cli::{DataFolder, Tenant};
use crate::clock;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::folder;
use crate::output::{self, Format, inline};

/// Make the calls of a recorded session again, against a live server.
///
/// The calls that ran then go through the same door as any agent's: they are decided by the policies given
/// here, held for people where those say so, and recorded in a session of their own. What comes back is
/// compared with the record.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rerun {
    /// The session
    session: String,
    /// The live server, by its address
    #[arg(long, value_name = "URL", required_unless_present = "command")]
    upstream: Option<String>,
    /// What the calls may use
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// A policy of your own, or a folder of them
    #[arg(long, value_name = "FILE|DIR")]
    policy: Vec<PathBuf>,
    /// An Agent Control manifest
    #[arg(long, value_name = "FILE")]
    acs: Option<PathBuf>,
    /// Also make calls of tools that do more than read
    #[arg(long)]
    allow_effects: bool,
    /// How long a held call is kept open for people, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    hold_wait: u64,
    /// A place in results that may differ, as a JSON pointer; `*` is any one name
    #[arg(long, value_name = "POINTER")]
    ignore: Vec<String>,
    /// Times and ids may not differ either
    #[arg(long)]
    strict: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Write the report as a page to this file, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    tenant: Tenant,
    #[command(flatten)]
    data: DataFolder,
    /// A server that is started for this, in the place of --upstream
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "upstream")]
    command: Vec<OsString>,
}

impl Rerun {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let scope = self.tenant.scope(&self.session)?;
        let recorded = calls(&scope, &self.data.reader()?)?;
        self.check_effects(&recorded)?;
        self.confirm(&recorded)?;
        let report = self.again(scope, &recorded)?;
        if let Some(file) = &self.html {
            folder::replace(file, replay::html(&report).as_bytes())?;
        }
        match format {
            Format::Text => output::text(&replay::text(&report))?,
            Format::Json => output::json(&report.to_json())?,
        }
        Ok(match report.is_identical() {
            true => Exit::Done,
            false => Exit::Unverified,
        })
    }

    /// FAIL-CLOSED: what nobody said about counts as an effect.
    fn check_effects(&self, recorded: &[RecordedCall]) -> Result<(), Failure> {
        let is_read = |call: &&RecordedCall| call.side_effect.as_deref() != Some("read");
        let mut tools: Vec<&str> = recorded
            .iter()
            .filter(is_read)
            .map(|call| call.tool.as_str())
            .collect();
        tools.sort_unstable();
        tools.dedup();
        match tools.is_empty() || self.allow_effects {
            true => Ok(()),
            false => Err(Failure::new(
                Code::Effects,
                format!("these tools do more than read: {}", tools.join(", ")),
            )),
        }
    }

    fn confirm(&self, recorded: &[RecordedCall]) -> Result<(), Failure> {
        let refused = || Failure::new(Code::Confirm, "the calls were not confirmed");
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(refused());
        }
        output::stderr(&format!(
            "This makes {} call(s) at {} for real. Type `rerun` to go on:",
            recorded.len(),
            inline(&self.place())
        ));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        match answer.trim() == "rerun" {
            true => Ok(()),
            false => Err(refused()),
        }
    }

    fn place(&self) -> String {
        let program = self
            .command
            .first()
            .map(|word| word.to_string_lossy().into_owned());
        self.upstream.clone().or(program).unwrap_or_default()
    }

    fn again(&self, scope: Scope, recorded: &[RecordedCall]) -> Result<Report, Failure> {
        let mut door = self.open()?;
        let line = door.said("countersign: http")?;
        door.listen_no_more();
        let address = line.split(' ').nth(1).unwrap_or_default();
        let unreachable = |error: McpError| Failure::new(Code::Server, error.to_string());
        let mut mcp = Mcp::open(address, patience(self.hold_wait)).map_err(unreachable)?;
        let mut report = Report {
            scope,
            mode: Mode::Live,
            steps: 0,
            events: 0,
            decisions: 0,
            decided_at_the_door: 0,
            diffs: Vec::new(),
            timeline: Vec::new(),
        };
        for call in recorded {
            let answer = mcp.repeat(call).map_err(unreachable)?;
            self.compare(call, &answer, &mut report)?;
        }
        drop(mcp);
        door.end()?;
        Ok(report)
    }

    /// The enforcing door, before the live server.
    fn open(&self) -> Result<Process, Failure> {
        let mut command = ours()?;
        command.args(["mcp", "serve", "--listen", "127.0.0.1:0", "--hold-wait"]);
        command.arg(self.hold_wait.to_string());
        command.arg("--data").arg(self.data.folder()?.path());
        command.arg("--tenant").arg(self.tenant.id()?.as_str());
        if let Some(manifest) = &self.manifest {
            command.arg("--manifest").arg(manifest);
        }
        for policy in &self.policy {
            command.arg("--policy").arg(policy);
        }
        if let Some(acs) = &self.acs {
            command.arg("--acs").arg(acs);
        }
        match &self.upstream {
            Some(upstream) => command.arg("--upstream").arg(upstream),
            None => command.arg("--").args(&self.command),
        };
        Process::start(command)
    }

    fn compare(
        &self,
        call: &RecordedCall,
        answer: &Json,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let null = Json::Null;
        let (result, error) = (answer.get("result"), answer.get("error"));
        let code = error.and_then(|error| error.get("code")?.as_i64());
        let refused = error.filter(|_| matches!(code, Some(-32000 | -32001)));
        let before = report.diffs.len();
        let now = result.or(error).unwrap_or(&null);
        match refused {
            Some(refused) => report.diffs.push(Diff {
                seq: call.seq,
                field: "policy_decision",
                pointer: String::new(),
                recorded: Json::from("allow"),
                replayed: shown(Some(refused)),
                cause: "the policies, or people, do not let it run now".to_owned(),
            }),
            None => self.differences(call, now, report),
        }
        report.steps += 1;
        let same = report.diffs.len() == before;
        report.took(Taken {
            seq: call.seq,
            ts_unix_ms: clock::now_unix_ms()?,
            tool: call.tool.clone(),
            recorded: "ran".to_owned(),
            replayed: match (refused, same) {
                (Some(_), _) => "was stopped".to_owned(),
                (None, true) => "ran, same result".to_owned(),
                (None, false) => "ran, other result".to_owned(),
            },
            same,
        });
        Ok(())
    }

    fn differences(&self, call: &RecordedCall, now: &Json, report: &mut Report) {
        let ignored = Ignored {
            pointers: self.ignore.clone(),
            times_and_ids: !self.strict,
        };
        let then = call.result.clone().unwrap_or(Json::Null);
        let cause = match call.rewritten {
            false => "the server answers otherwise than it did",
            true => "a policy rewrote the arguments then; the call was made as it was proposed",
        };
        for found in differences(&then, now, &ignored) {
            report.diffs.push(Diff {
                seq: call.seq,
                field: "tool_result",
                pointer: found.pointer,
                recorded: shown(found.recorded.as_ref()),
                replayed: shown(found.replayed.as_ref()),
                cause: cause.to_owned(),
            });
        }
    }
}

/// How long an answer is waited for: as long as people may decide, and then as long as a tool may run. The
/// door itself ends every call.
fn patience(hold_wait: u64) -> Duration {
    Duration::from_secs(hold_wait.saturating_add(LONGEST_CALL))
}

/// A result as it may be shown: without secrets.
fn shown(value: Option<&Json>) -> Json {
    let redactor = Redactor::default();
    value.map_or(Json::Null, |value| redactor.json(value).into_inner())
}

/// Seconds that a call may take besides waiting for people.
const LONGEST_CALL: u64 = 3600;

/// What an answer of a door may have.
pub(crate) const ANSWER: Limits = Limits {
    max_bytes: 64 << 20,
    ..Limits::event()
};

const EXAMPLES: &str = "\
It is never done by itself: it asks once, or needs --yes, and tools that do more than read are refused
without --allow-effects. Times and ids in results may differ; --strict counts them too, and --ignore names
more places that may.

Examples:
  countersign rerun ses_1 --manifest agent.yaml --upstream http://127.0.0.1:3000/mcp
  countersign rerun ses_1 --manifest agent.yaml --ignore /content/0/text --html rerun.html -- npx some-server

Exit codes: 0 every call ran and came back as it was recorded; 5 something differs.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_waited_for_longer_than_people_may_decide() {
        for hold_wait in [0, 300, 86_400, u64::MAX / 2] {
            assert!(patience(hold_wait) > Duration::from_secs(hold_wait));
        }
        assert!(patience(u64::MAX) >= Duration::from_secs(u64::MAX));
    }
}
