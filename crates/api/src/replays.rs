//! Recorded sessions decided again, as jobs: a long session takes longer than a caller waits.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use countersign_canon::Json;
use countersign_event::Scope;
use countersign_replay::exact;

use crate::api::{Api, lock};
use crate::call::Call;
use crate::problem::{Kind, Problem};
use crate::reply::Reply;
use crate::token::random;

/// The newest jobs. What is done is kept until there is no room for it.
#[derive(Default)]
pub(crate) struct Replays(Mutex<VecDeque<Job>>);

#[derive(Clone)]
struct Job {
    id: String,
    owner: String,
    scope: Scope,
    /// The report, or why there is none; nothing while it runs.
    done: Option<Result<Json, String>>,
}

pub(crate) async fn start(call: Call) -> Result<Reply, Problem> {
    let mut members = call.object()?;
    let mut text = |name: &str| members.remove(name).and_then(Json::into_string);
    let (tenant, session) = (text("tenant_id"), text("session_id").unwrap_or_default());
    let job = begin(&call, tenant.as_deref(), &session).await?;
    Ok(Reply::json(StatusCode::CREATED, &job))
}

/// Begins a job; tells what is known of it.
pub(crate) async fn begin(
    call: &Call,
    tenant: Option<&str>,
    session: &str,
) -> Result<Json, Problem> {
    let scope = call.caller.scope(tenant, session)?;
    call.api.check_owner(&call.caller, &scope).await?;
    let no_randomness = || Problem::new(Kind::Overloaded, "the system gave no randomness");
    let job = Job {
        id: format!("rep_{}", random::<12>().ok_or_else(no_randomness)?),
        owner: call.caller.id.clone(),
        scope,
        done: None,
    };
    call.api.replays.add(job.clone())?;
    let begun = job.to_json();
    tokio::spawn(work(Arc::clone(&call.api), job));
    Ok(begun)
}

pub(crate) async fn show(call: &Call) -> Result<Reply, Problem> {
    let wait = call.parameters.query("wait_ms").map(str::parse::<u64>);
    let wait = wait
        .transpose()
        .map_err(|_| Problem::new(Kind::Parameter, "`wait_ms` is a number"))?;
    let until = Instant::now() + Duration::from_millis(wait.unwrap_or(0).min(MAX_WAIT_MS));
    let id = call.parameters.path("replay");
    loop {
        let job = call.api.replays.find(id);
        // What somebody else asked for is not there.
        let job = job.filter(|job| job.owner == call.caller.id);
        let job = job.ok_or_else(|| Problem::new(Kind::NotFound, "there is no such replay"))?;
        let is_over = *call.api.live.closing.borrow() || Instant::now() >= until;
        if job.done.is_some() || is_over {
            return Ok(Reply::ok(&job.to_json()));
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn work(api: Arc<Api>, job: Job) {
    let (engine, scope) = (Arc::clone(&api.engine), job.scope.clone());
    let replay = move || exact(&scope, engine.store().reader());
    let done = match api.workers.run(replay).await {
        Ok(Ok(report)) => Ok(report.to_json()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(problem) => Err(problem.detail().to_owned()),
    };
    api.replays.finish(&job.id, done);
}

impl Replays {
    fn add(&self, job: Job) -> Result<(), Problem> {
        let mut jobs = lock(&self.0);
        let running = || jobs.iter().filter(|it| it.done.is_none());
        // Who waits for their own has asked too often; who waits for others has not.
        let own = running().filter(|it| it.owner == job.owner).count();
        let full = match (own >= MOST_OF_ONE, running().count() >= MOST_RUNNING) {
            (true, _) => Some((
                Kind::RateLimited,
                "your replays are on their way; try again",
            )),
            (_, true) => Some((
                Kind::Overloaded,
                "enough sessions are being replayed; try again",
            )),
            _ => None,
        };
        if let Some((kind, text)) = full {
            return Err(Problem::new(kind, text).retry_after(Duration::from_secs(1)));
        }
        if jobs.len() >= MOST_KEPT
            && let Some(oldest) = jobs.iter().position(|job| job.done.is_some())
        {
            jobs.remove(oldest);
        }
        jobs.push_back(job);
        Ok(())
    }

    /// What somebody asked for, newest first.
    pub(crate) fn of(&self, owner: &str) -> Vec<Json> {
        let jobs = lock(&self.0);
        let own = jobs.iter().rev().filter(|job| job.owner == owner);
        own.map(Job::to_json).collect()
    }

    fn find(&self, id: &str) -> Option<Job> {
        lock(&self.0).iter().find(|job| job.id == id).cloned()
    }

    fn finish(&self, id: &str, done: Result<Json, String>) {
        if let Some(job) = lock(&self.0).iter_mut().find(|job| job.id == id) {
            job.done = Some(done);
        }
    }
}

impl Job {
    fn to_json(&self) -> Json {
        let state = match &self.done {
            None => "running",
            Some(Ok(_)) => "done",
            // FAIL-CLOSED: a session that cannot be decided again is not identical to anything.
            Some(Err(_)) => "failed",
        };
        let mut members = vec![
            ("replay_id", Json::from(self.id.as_str())),
            ("tenant_id", Json::from(self.scope.tenant.as_str())),
            ("session_id", Json::from(self.scope.session.as_str())),
            ("state", Json::from(state)),
        ];
        match &self.done {
            None => {}
            Some(Ok(report)) => members.push(("report", report.clone())),
            Some(Err(error)) => members.push(("error", Json::from(error.as_str()))),
        }
        Json::object(members)
    }
}

const MOST_OF_ONE: usize = 2;
const MOST_RUNNING: usize = 4;
const MOST_KEPT: usize = 64;
const MAX_WAIT_MS: u64 = 60_000;
const LOOK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_few_replays_on_their_way_and_all_together_have_an_end() {
        let replays = Replays::default();
        let add = |id: u32, owner: &str| {
            let job = Job {
                id: id.to_string(),
                owner: owner.to_owned(),
                scope: Scope::new("acme", "s1").unwrap(),
                done: None,
            };
            replays.add(job).map_err(|problem| problem.kind())
        };
        assert_eq!([add(1, "a"), add(2, "a"), add(3, "b")], [Ok(()); 3]);
        assert_eq!(add(4, "a"), Err(Kind::RateLimited));
        assert_eq!(add(5, "b"), Ok(()));
        assert_eq!(add(6, "c"), Err(Kind::Overloaded));
        replays.finish("1", Err("over".to_owned()));
        assert_eq!([add(7, "c"), add(8, "c")], [Ok(()), Err(Kind::Overloaded)]);
        replays.finish("2", Err("over".to_owned()));
        assert_eq!(add(9, "a"), Ok(()));
    }
}
