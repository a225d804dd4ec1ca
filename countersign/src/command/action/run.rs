//! `countersign action run`

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use countersign_approval::{ApprovalId, Arguments, State, Tool};
use countersign_canon::Json;
use countersign_engine::{
    Admission, ApprovalTimes, Delivery, Engine, Hold, Origin, Outcome, Permit, PolicyFiles,
    Proposal, Redeemed, Refusal, Standing, SystemClock, Wanted,
};
use countersign_policy::Point;
use countersign_policy::capability::Explanation;

use super::group::Heard;
use super::invocation::Invocation;
use super::supervise::{Ended, Kept, NOT_STARTED, Over, supervise};
use super::told::NotRun;
use crate::cli::{DataFolder, Tenant};
use crate::clock;
use crate::command::approval::{absent, find_id};
use crate::command::evidence::{Observed, States};
use crate::command::manifest::Trust;
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::{self, Format, inline};
use crate::person::person;

#[derive(Args)]
#[command(after_help = "\
The action is recorded and decided first. If it may run, COMMAND gets the arguments that were
decided on, as canonical JSON on standard input, and how it ended is recorded. COMMAND itself is
part of what people see and approve, and so are the folder, the program that COMMAND leads to, and
what stands in it and in the files that COMMAND names: if one of them changes, it is refused.

A held action waits for a decision as long as --wait says. Without it the command ends with 4 and
names the approval; --approval ID goes on from there, with the arguments that were stored.

With --state the digest of a state is taken right before COMMAND starts and right after it ends,
over one coverage; records of the session then tell what changed (`countersign evidence aep`).

COMMAND runs in a process group of its own: SIGTERM, SIGINT, SIGHUP and SIGQUIT are passed on to all
of it, and all of it is ended when its time is over or it prints too much. It has no terminal to
ask in. If countersign itself is killed, it is ended too, and its outcome counts as unknown.

With --format json, what is held or denied is told as one object on standard output: `state` (held,
denied or expired), `approval_id`, `short_code`, `reason` and `message`, each of which may be null.
What runs prints what it prints.

Exit code: 0 it ran and succeeded, 1 it ran and failed, 2 denied, 4 held, or not answered in
time; 128 and its number after a signal that was passed on.

Where a policy looks at results (`post_tool_call`), what COMMAND prints is part of the result, and is
printed when it may be.

Examples:
  countersign action run --manifest m.yaml --session s1 --tool deploy \\
      --args '{\"to\":\"prod\"}' --wait 10m -- ./deploy.sh
  countersign action run --manifest m.yaml --approval apr_1f2e… -- ./deploy.sh
  countersign action run --manifest m.yaml --session s1 --tool build --state 'git-tree .' -- make")]
pub(crate) struct Run {
    /// The session
    #[arg(long, value_name = "SESSION", required_unless_present = "approval")]
    session: Option<String>,
    #[command(flatten)]
    tenant: Tenant,
    /// The tool, as the policies know it
    #[arg(long, value_name = "NAME", required_unless_present = "approval")]
    tool: Option<String>,
    /// Its arguments: JSON, @FILE, or - for standard input
    #[arg(
        long,
        value_name = "JSON|@FILE|-",
        default_value = "{}",
        conflicts_with = "approval"
    )]
    args: String,
    /// Go on with an action that was held; the beginning of its id is enough
    #[arg(long, value_name = "ID", conflicts_with_all = ["session", "tool"])]
    approval: Option<String>,
    /// How long to wait for people, as in 90s, 10m or 2h [default: not at all]
    #[arg(long, value_name = "TIME")]
    wait: Option<String>,
    /// How long people may decide, as in 90s, 10m or 2h
    #[arg(long, value_name = "TIME", default_value = "1h")]
    decide_within: String,
    /// The manifest
    #[arg(long, value_name = "FILE")]
    manifest: PathBuf,
    #[command(flatten)]
    trust: Trust,
    /// A policy of your own, or a folder of them with their tests
    #[arg(long, value_name = "FILE|DIR")]
    policy: Vec<PathBuf>,
    /// An Agent Control manifest, which has a say beside them
    #[arg(long, value_name = "FILE")]
    acs: Option<PathBuf>,
    /// The agent that asks
    #[arg(long, value_name = "NAME", default_value = "shell")]
    agent: String,
    /// Digest this state before and after the command, for evidence: the words of `countersign evidence
    /// state`, or a JSON list of them
    #[arg(long, value_name = "KIND ARGUMENTS")]
    state: Option<String>,
    /// What the agent says about it; people see it apart from the plan, as unverified
    #[arg(long, value_name = "TEXT", conflicts_with = "approval")]
    says: Option<String>,
    /// The person who started it [default: your user name]
    #[arg(long, value_name = "NAME")]
    person: Option<String>,
    #[command(flatten)]
    data: DataFolder,
    /// The command, and its own arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<String>,
}

impl Run {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let patience = self
            .wait
            .as_deref()
            .map(clock::parse_duration)
            .transpose()?;
        let files = PolicyFiles {
            manifest: Some(self.manifest.clone()),
            enforced: self.policy.clone(),
            agent_control: self.acs.clone().map(input::agent_control),
            trust: self.trust.mode(),
            publishers: self.trust.list(),
            ..PolicyFiles::default()
        };
        let policies = files.load()?;
        let invocation = Invocation::here(&self.command)?;
        let times = ApprovalTimes {
            decide_within_ms: Some(self.decide_within_ms()?),
            ..ApprovalTimes::default()
        };
        let engine = Engine::new(self.data.store()?, policies, SystemClock)
            .with_times(times)
            .map_err(|error| Failure::new(Code::Length, error.to_string()))?;
        // What is asked for counts in the place of what the manifest names.
        let engine = match self.state {
            None => engine.with_watch(Arc::new(States)),
            Some(_) => engine,
        };
        let permit = match &self.approval {
            Some(text) => {
                let id = find_id(text, engine.store().reader())?;
                redeem(id, patience, &invocation, &engine, format)?
            }
            None => self.admit(&invocation, patience, &engine, format)?,
        };
        match permit {
            Allowed::Runs(permit) => self.execute(permit, &invocation, &engine, format),
            Allowed::Not(exit) => Ok(exit),
        }
    }

    fn admit(
        &self,
        invocation: &Invocation,
        patience: Option<Duration>,
        engine: &Engine,
        format: Format,
    ) -> Result<Allowed, Failure> {
        invocation.check_found()?;
        let arguments = Arguments::new(input::json_argument(&self.args)?)
            .map_err(|error| Failure::new(Code::Json, error.to_string()))?;
        let tool_name = self.tool.clone().unwrap_or_default();
        let scope = self
            .tenant
            .open_scope(self.session.as_deref().unwrap_or_default())?;
        let origin = self.origin(invocation)?;
        let admission = engine.admit(Proposal {
            scope: &scope,
            call_id: call_id()?,
            tool_name: tool_name.clone(),
            server: None,
            definition: Some(invocation.definition()),
            origin: &origin,
            preconditions: invocation.preconditions(),
            args: arguments.value().clone(),
            sanitizer_key: None,
            bytes: arguments.canonical(),
            encode: &Json::to_sorted_ascii,
        });
        match admission {
            Admission::Permit(permit) => Ok(Allowed::Runs(Ready {
                bytes: permit.rewritten().unwrap_or(arguments.canonical()).to_vec(),
                permit,
                approved: None,
            })),
            // Nothing was decided: recording is what failed.
            Admission::Refusal(refusal) if !refusal.is_recorded() => Err(refusal.into()),
            Admission::Refusal(refusal) => {
                let message = why(&refusal);
                let told = message.as_ref().map(|message| format!(" ({message})"));
                let told = told.unwrap_or_default();
                let line = format!("DENY ✗  {tool_name}: {}{told}", refusal.reason());
                output::stderr(&inline(&line));
                NotRun {
                    state: "denied",
                    reason: Some(refusal.reason()),
                    message,
                    ..NotRun::default()
                }
                .tell(format)?;
                Ok(Allowed::Not(Exit::Denied))
            }
            Admission::Hold(hold) => self.held(hold, invocation, patience, engine, format),
        }
    }

    fn held(
        &self,
        hold: Hold,
        invocation: &Invocation,
        patience: Option<Duration>,
        engine: &Engine,
        format: Format,
    ) -> Result<Allowed, Failure> {
        let reason = hold.verdict.reason().unwrap_or_default().to_owned();
        let tool = self.tool.as_deref().unwrap_or_default();
        let envelope = match hold.approval {
            Ok(envelope) => envelope,
            Err(unaskable) => {
                output::stderr(&inline(&format!("HOLD ⏸  {tool}: {reason}; {unaskable}")));
                NotRun {
                    state: "held",
                    reason: Some(&reason),
                    message: Some(unaskable.to_string()),
                    ..NotRun::default()
                }
                .tell(format)?;
                return Ok(Allowed::Not(Exit::Held));
            }
        };
        let (id, code) = (envelope.id(), envelope.plan().hash().short());
        output::stderr(&inline(&format!(
            "HOLD ⏸  {tool}: {reason}; {id}, code {code}"
        )));
        if patience.is_none() {
            if format == Format::Text {
                output::text(&id.to_string())?;
            }
            NotRun {
                state: "held",
                approval: Some(id),
                short_code: Some(code),
                reason: Some(&reason),
                message: None,
            }
            .tell(format)?;
            return Ok(Allowed::Not(Exit::Held));
        }
        redeem(id, patience, invocation, engine, format)
    }

    /// INVARIANT: what runs are the bytes of the permit, and the log has the start before they run.
    fn execute(
        &self,
        ready: Ready,
        invocation: &Invocation,
        engine: &Engine,
        format: Format,
    ) -> Result<Exit, Failure> {
        let Ready {
            permit,
            bytes,
            approved,
        } = ready;
        let constraints = permit.constraints();
        if let Some(warning) = permit.warning() {
            output::stderr(&inline(&format!("WARN ✓  {warning}")));
        }
        // FAIL-CLOSED: what cannot be observed before does not run.
        let before = self.state.as_deref().map(Observed::before).transpose()?;
        // Whoever wants us to end hears of the outcome first.
        let mut heard = Heard::listen()?;
        let mut running = engine.begin(permit, &bytes)?;
        // What somebody looks at before the agent does is not printed before.
        let reviewed = engine.policies().attends(Point::PostToolCall);
        let kept = reviewed.then(Kept::default);
        // SECURITY: files may have changed since the use was taken, which waits for the disk.
        let changed = approved.and_then(|standing| standing.look_again().err());
        let Over { ended, signal } = match changed {
            None => supervise(invocation, &bytes, constraints, kept.as_ref(), &mut heard),
            Some(changed) => Over {
                ended: Ended::Broken {
                    code: "changed",
                    message: format!("the command was not started: {changed}"),
                },
                signal: None,
            },
        };
        // Nobody looks at what a command has printed that did not end by itself.
        let kept = kept.filter(|_| matches!(ended, Ended::Exit(_)));
        let printed = kept.map(|kept| kept.take());
        let outcome = match &ended {
            Ended::Exit(code) => Outcome::Result {
                content: result(*code, printed.as_ref()),
                is_error: *code != 0,
            },
            Ended::Broken { code, message } => Outcome::Failed {
                code: (*code).to_owned(),
                message: message.clone(),
            },
        };
        if let Some(before) = before {
            running = running.with_state(before.after());
        }
        let settled = engine.settle(running, outcome)?;
        let withheld = match settled.delivery() {
            Delivery::AsItCame => {
                print(
                    printed
                        .as_ref()
                        .map_or(NOTHING, |[output, errors]| [output, errors]),
                );
                None
            }
            Delivery::Changed(changed) => {
                print(said_instead(changed));
                None
            }
            Delivery::Withheld(reason) => Some(reason),
            // Nobody would come back for an exit code.
            Delivery::Held(held) => {
                engine.cancel(held.approval)?;
                Some(&held.reason)
            }
        };
        if let Some(reason) = withheld {
            let text = Delivery::text_for_model(reason);
            output::stderr(&inline(&format!("DENY ✗  {text}")));
            NotRun {
                state: "denied",
                reason: Some(reason),
                message: Some("the command has run, and its result is withheld".to_owned()),
                ..NotRun::default()
            }
            .tell(format)?;
            return Ok(Exit::Denied);
        }
        let failed = match ended {
            Ended::Exit(0) => None,
            Ended::Exit(code) => {
                let message = format!("the command ended with exit code {code}");
                Some(Failure::new(Code::Command, message))
            }
            Ended::Broken { code, message } if code == NOT_STARTED => {
                Some(Failure::new(Code::Server, message))
            }
            Ended::Broken { message, .. } => Some(Failure::new(Code::Command, message)),
        };
        match (signal, failed) {
            (None, None) => Ok(Exit::Done),
            (None, Some(failure)) => Err(failure),
            // As a shell tells of it.
            (Some(signal), failure) => {
                if let Some(failure) = failure {
                    failure.report();
                }
                Ok(Exit::Passed(u8::try_from(128 + signal).unwrap_or(u8::MAX)))
            }
        }
    }

    fn decide_within_ms(&self) -> Result<u64, Failure> {
        let within = clock::parse_duration(&self.decide_within)?;
        Ok(u64::try_from(within.as_millis()).unwrap_or(u64::MAX))
    }

    fn origin(&self, invocation: &Invocation) -> Result<Origin, Failure> {
        let person = self.person.clone().unwrap_or_else(person);
        let origin = Origin::new(&person, &self.agent, invocation.folder())
            .map_err(|error| Failure::new(Code::Id, error.to_string()))?;
        Ok(Origin {
            agent_says: self.says.clone(),
            ..origin
        })
    }
}

/// What there is to say beside the reason.
fn why(refusal: &Refusal) -> Option<String> {
    let explanation = refusal.explanation();
    match refusal.message() {
        "" => explanation.and_then(Explanation::of_the_session),
        message => Some(message.to_owned()),
    }
}

/// Waits for the decision, then takes the one use of it.
fn redeem(
    id: ApprovalId,
    patience: Option<Duration>,
    invocation: &Invocation,
    engine: &Engine,
    format: Format,
) -> Result<Allowed, Failure> {
    let waits = Instant::now();
    loop {
        // Of all that is over, only this request matters here.
        let _swept = engine.sweep()?;
        let standing = engine.approval(id)?;
        let standing = standing.ok_or_else(|| absent(&id.to_string()))?;
        let Some(call) = standing.envelope.plan().calls().first() else {
            return Err(Failure::new(Code::Damaged, "the approval has no call"));
        };
        let told = match standing.row.state {
            State::Pending => {
                if waits.elapsed() < patience.unwrap_or_default() {
                    std::thread::sleep(POLL);
                    continue;
                }
                output::stderr(&format!("HOLD ⏸  {id}: not answered yet"));
                NotRun {
                    state: "held",
                    approval: Some(id),
                    short_code: Some(standing.envelope.plan().hash().short()),
                    ..NotRun::default()
                }
                .tell(format)?;
                Exit::Held
            }
            State::Expired => {
                output::stderr(&format!("EXPIRED ⌛  {id}: not answered in time"));
                NotRun {
                    state: "expired",
                    approval: Some(id),
                    ..NotRun::default()
                }
                .tell(format)?;
                Exit::Held
            }
            State::Denied => {
                let tally = engine.tally(&standing)?;
                let mut decisions = tally.votes.iter().flat_map(|vote| &vote.decisions);
                let reason = decisions.find_map(|it| it.reason());
                let reason = reason.map(|reason| reason.as_str());
                let why = reason.unwrap_or("no reason given");
                output::stderr(&format!("DENY ✗  {id}: {}", inline(why)));
                NotRun {
                    state: "denied",
                    approval: Some(id),
                    reason,
                    ..NotRun::default()
                }
                .tell(format)?;
                Exit::Denied
            }
            _ => {
                let tool_name = call.tool.name.clone();
                return take(standing, tool_name, invocation, engine);
            }
        };
        return Ok(Allowed::Not(told));
    }
}

/// Takes the one use of what was approved, if that is what would run here.
fn take(
    standing: Standing,
    tool_name: String,
    invocation: &Invocation,
    engine: &Engine,
) -> Result<Allowed, Failure> {
    let encode = |call: &countersign_approval::ToolCall| call.args.canonical().to_vec();
    let tool = Tool {
        server: None,
        name: tool_name,
        definition: Some(invocation.definition()),
    };
    let wanted = Wanted {
        tool: Some(&tool),
        args: None,
        folder: Some(invocation.folder()),
        preconditions: &invocation.preconditions(),
    };
    match engine.redeem(standing.row.id, wanted, &encode) {
        Redeemed::Permit(permit) => {
            let bytes = permit.rewritten().map(<[u8]>::to_vec);
            let bytes = bytes.ok_or_else(|| Failure::new(Code::Damaged, "no stored bytes"))?;
            Ok(Allowed::Runs(Ready {
                permit,
                bytes,
                approved: Some(standing),
            }))
        }
        Redeemed::Refused(refusal) => Err(Failure::new(
            Code::Approval,
            format!("{}: {refusal}", refusal.code()),
        )),
        Redeemed::Replayed(replay) => Err(Failure::new(
            Code::Approval,
            format!(
                "replayed: the approval was used already; it is `{}`",
                replay.state
            ),
        )),
        // Nothing was wanted beside what is stored.
        Redeemed::Drifted(drifted) => Err(Failure::new(
            Code::Approval,
            format!("context_drift: {} was denied", drifted.action),
        )),
        Redeemed::Failed(refusal) => Err(refusal.into()),
    }
}

/// A permit, and the bytes that it is for.
struct Ready {
    permit: Permit,
    bytes: Vec<u8>,
    /// What people approved, if they were asked.
    approved: Option<Standing>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "there is one, and it is used at once"
)]
enum Allowed {
    Runs(Ready),
    Not(Exit),
}

/// What a command came to, with what it printed where somebody looks at that.
fn result(code: i32, printed: Option<&[Vec<u8>; 2]>) -> Json {
    let code = ("exit_code", Json::from(i64::from(code)));
    let text = |bytes: &[u8]| Json::from(String::from_utf8_lossy(bytes).as_ref());
    match printed {
        None => Json::object([code]),
        Some([output, errors]) => {
            Json::object([code, (OUTPUT, text(output)), (ERRORS, text(errors))])
        }
    }
}

/// What is printed of a result that was changed. A text in the place of everything is all of it.
fn said_instead(changed: &Json) -> [&[u8]; 2] {
    let said = |name| changed.get(name).and_then(Json::as_str);
    let output = said(OUTPUT).or(changed.as_str());
    [output, said(ERRORS)].map(|text| text.unwrap_or_default().as_bytes())
}

/// Prints what a command has printed. Whoever reads it may be gone.
fn print([output, errors]: [&[u8]; 2]) {
    let _ = std::io::stdout().write_all(output);
    let _ = std::io::stderr().write_all(errors);
}

fn call_id() -> Result<String, Failure> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::new(Code::Input, format!("no randomness: {error}")))?;
    Ok(format!("call_{}", base16ct::lower::encode_string(&random)))
}

const POLL: Duration = Duration::from_millis(200);
/// The members of a result that tell what a command printed.
const OUTPUT: &str = "output";
const ERRORS: &str = "errors";
const NOTHING: [&[u8]; 2] = [b"", b""];
