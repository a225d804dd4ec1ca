//! Where actions are kept from before they are decided until somebody tells how they went.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use countersign_approval::Clocks;
use countersign_approval::Tool;
use countersign_canon::Json;
use countersign_engine::{ApprovalId, Running};
use countersign_event::Scope;

use super::Wish;
use crate::Role;
use crate::api::{lock, now_unix_ms};
use crate::caller::Caller;
use crate::problem::{Kind, Problem};

/// The actions that are under way.
#[derive(Default)]
pub(crate) struct Actions(pub(super) Mutex<Kept>);

#[derive(Default)]
pub(super) struct Kept {
    pub(super) by_id: HashMap<String, Action>,
    /// How many places each owner has: those of actions, and those that are kept free for one.
    places: HashMap<String, usize>,
    taken: usize,
}

/// A place for an action, from before anything is decided about it.
pub(super) struct Place<'a> {
    actions: &'a Actions,
    /// Whose it is, until an action has it.
    owner: Option<String>,
}

pub(super) struct Action {
    pub(super) owner: String,
    pub(super) scope: Scope,
    pub(super) tool: Tool,
    pub(super) args: Json,
    pub(super) since: Instant,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    /// People decide. Afterwards nothing can come of it.
    Held {
        approval: ApprovalId,
        until: Instant,
    },
    /// It runs; whoever shows the permit tells how it went.
    Running { running: Running, permit: [u8; 32] },
    /// Somebody is telling just now.
    Settling,
}

impl Actions {
    pub(super) fn place(&self, caller: &Caller) -> Result<Place<'_>, Problem> {
        let mut kept = lock(&self.0);
        let whose = kept.places.get(&caller.id).copied().unwrap_or(0);
        let full = match (kept.taken >= MAX_ACTIONS, whose >= MAX_OF_ONE) {
            (true, _) => "too many actions are under way",
            (false, true) => "too many actions of this caller are under way",
            (false, false) => {
                kept.places.insert(caller.id.clone(), whose + 1);
                kept.taken += 1;
                return Ok(Place {
                    actions: self,
                    owner: Some(caller.id.clone()),
                });
            }
        };
        Err(Problem::new(Kind::Overloaded, full))
    }

    /// Says where an action is now.
    pub(super) fn advance(&self, id: &str, stage: Stage) {
        if let Some(action) = lock(&self.0).by_id.get_mut(id) {
            action.stage = stage;
        }
    }
}

impl Place<'_> {
    pub(super) fn fill(mut self, id: String, wish: Wish, stage: Stage) {
        let action = Action {
            owner: self.owner.take().unwrap_or_default(),
            scope: wish.scope,
            tool: wish.tool,
            args: wish.args,
            since: Instant::now(),
            stage,
        };
        lock(&self.actions.0).by_id.insert(id, action);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(owner) = &self.owner {
            lock(&self.actions.0).give_back(owner);
        }
    }
}

impl Kept {
    pub(super) fn remove(&mut self, id: &str) -> Option<Action> {
        let action = self.by_id.remove(id)?;
        self.give_back(&action.owner);
        Some(action)
    }

    fn give_back(&mut self, owner: &str) {
        self.taken = self.taken.saturating_sub(1);
        match self.places.get_mut(owner) {
            Some(places) if *places > 1 => *places -= 1,
            _ => drop(self.places.remove(owner)),
        }
    }
}

/// Until when something can still come of what people are asked, and a little longer, so that whoever asks
/// hears how it ended.
pub(super) fn time_left(clocks: &Clocks) -> Result<Duration, Problem> {
    let Some(decided) = clocks.decision_ends() else {
        return Ok(MAX_AGE);
    };
    let left = clocks.execution_ends(decided).get();
    let left = left.saturating_sub(now_unix_ms()?);
    Ok(Duration::from_millis(left).min(MAX_AGE) + HEARING)
}

/// The action, if it is the caller's.
pub(super) fn find<'a>(
    kept: &'a mut Kept,
    id: &str,
    caller: &Caller,
) -> Result<&'a mut Action, Problem> {
    let is_theirs = |action: &&mut Action| {
        let is_tenant = caller
            .tenant
            .as_ref()
            .is_none_or(|own| *own == action.scope.tenant);
        is_tenant && (action.owner == caller.id || caller.role == Role::Operator)
    };
    let found = kept.by_id.get_mut(id).filter(is_theirs);
    found.ok_or_else(|| Problem::new(Kind::NoAction, "no such action is under way"))
}

const MAX_ACTIONS: usize = 10_000;
const MAX_OF_ONE: usize = 1_000;
/// Nothing that an agent runs takes longer.
pub(super) const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
const HEARING: Duration = Duration::from_secs(300);
