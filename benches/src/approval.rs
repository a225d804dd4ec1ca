//! Approvals: a decision and the one use, each beside one durable append.

use std::path::Path;
use std::time::{Duration, Instant};

use countersign_approval::{
    ApprovalId, BallotPaper, CallDecision, Decision, Human, SigningKey, UnixMs,
};
use countersign_canon::{Json, Limits};
use countersign_engine::{
    Admission, Approvers, Clock as _, Engine, Origin, Proposal, Redeemed, SystemClock, Wanted,
};
use countersign_event::payload::{ErrorRaised, Payload};
use countersign_event::{EventType, Scope};
use countersign_policy::Policies;
use countersign_policy::capability::Capability;
use countersign_policy::manifest::Manifest;
use countersign_store::{Folder, Options, Store};

use crate::measure::{Latencies, Pair, Result, middle};
use crate::report::{Report, milliseconds, progress, ratio};

/// Measures deciding and consuming and prints them.
pub(crate) fn section(place: &Path, report: &mut Report<'_>) -> Result<()> {
    progress("approvals");
    report.table(
        "Approvals, one at a time",
        &["what", "p50", "limit", "p50", "times the limit"],
    )?;
    for (name, step) in [("decide", Step::Decide), ("consume", Step::Consume)] {
        let compared = middle(|| measure(step, place))?;
        report.row(&[
            name.to_owned(),
            milliseconds(compared.ours),
            "one durable append to the same session".to_owned(),
            milliseconds(compared.append),
            ratio(compared.ratio()),
        ])?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Decide,
    Consume,
}

struct Compared {
    ours: Duration,
    append: Duration,
}

impl Pair for Compared {
    fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.append.as_secs_f64()
    }
}

/// In turn: an append, and the step with everything that comes before it.
fn measure(step: Step, place: &Path) -> Result<Compared> {
    let folder = tempfile::tempdir_in(place)?;
    let desk = Desk::open(folder.path())?;
    let (mut ours, mut appends) = (Latencies::default(), Latencies::default());
    for number in 0..ROUNDS {
        let started = Instant::now();
        desk.append()?;
        appends.push(started.elapsed());

        let id = desk.ask(number)?;
        let vote = desk.sign(id)?;
        let started = Instant::now();
        let voted = desk.engine.vote(&vote);
        if step == Step::Decide {
            ours.push(started.elapsed());
        }
        voted?;
        let started = Instant::now();
        let redeemed = desk.engine.redeem(id, Wanted::default(), &|call| {
            call.args.canonical().to_vec()
        });
        if step == Step::Consume {
            ours.push(started.elapsed());
        }
        let Redeemed::Permit(_) = redeemed else {
            return Err("the approval could not be used".into());
        };
    }
    Ok(Compared {
        ours: ours.percentile(0.5),
        append: appends.percentile(0.5),
    })
}

struct Desk {
    engine: Engine,
    scope: Scope,
    origin: Origin,
    person: Human,
    key: SigningKey,
}

impl Desk {
    fn open(folder: &Path) -> Result<Self> {
        let person = Human::new("olga")?;
        let key = SigningKey::from_bytes(&[1; 32]);
        let mut approvers = Approvers::default();
        approvers.add(person.clone(), &key.verifying_key())?;
        approvers.save(folder)?;
        let store = Store::open(&Folder::new(folder), Options::default())?;
        let manifest = Manifest::read(MANIFEST.as_bytes())?;
        let policies = Policies::new(Capability::new(Some(manifest))?);
        Ok(Self {
            engine: Engine::new(store, policies, SystemClock),
            scope: Scope::new("bench", "approvals")?,
            origin: Origin::new("root", "agent", folder)?,
            person,
            key,
        })
    }

    fn append(&self) -> Result<()> {
        let error = ErrorRaised {
            code: Some("note".to_owned()),
            message: Some(Json::from("x".repeat(256))),
            ..ErrorRaised::default()
        };
        let payload = Payload::ErrorRaised(error);
        let recorded = self
            .engine
            .record(&self.scope, EventType::ErrorRaised, payload);
        match recorded {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.message().into()),
        }
    }

    fn ask(&self, number: usize) -> Result<ApprovalId> {
        let text = format!(r#"{{"cents":{number},"to":"somebody"}}"#);
        let admission = self.engine.admit(Proposal {
            scope: &self.scope,
            call_id: format!("c{number}"),
            tool_name: "pay".to_owned(),
            server: None,
            definition: None,
            origin: &self.origin,
            preconditions: Vec::new(),
            args: Json::admit(text.as_bytes(), &Limits::event())?,
            sanitizer_key: None,
            bytes: text.as_bytes(),
            encode: &|args| args.to_sorted_ascii(),
        });
        match admission {
            Admission::Hold(hold) => Ok(hold.approval?.id()),
            _ => Err("the action was not held".into()),
        }
    }

    fn sign(&self, id: ApprovalId) -> Result<Vec<u8>> {
        let standing = self.engine.approval(id);
        let standing = standing.map_err(|refusal| refusal.message().to_owned())?;
        let standing = standing.ok_or("the approval is gone")?;
        let calls = standing.envelope.plan().calls().iter();
        let paper = BallotPaper {
            decisions: calls
                .map(|call| CallDecision {
                    call: call.id.clone(),
                    decision: Decision::Approved,
                })
                .collect(),
            approver: self.person.clone(),
            display: standing.rendering.display_sha256(),
            signed_at: UnixMs::new(SystemClock.now_unix_ms()?),
        };
        Ok(paper.sign(&standing.envelope, &self.key).to_text())
    }
}

const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","name":"n","version":"1",
    "publisher":"p","permissions":{"tools":{
        "pay":{"side_effect":"mutate-external","approval":"required"}},
    "budgets":{"max_wall_time_ms":1000000000,"max_steps":100000,"max_tool_calls":100000}},
    "loops":{"polling_tools":["pay"]}}"#;
const ROUNDS: usize = 100;
