//! What the whole door shares.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use countersign_approval::ApprovalId;
use countersign_engine::{Engine, reserved};
use countersign_event::{Scope, TenantId};
use countersign_policy::whatif;
use countersign_web::{Access, Room};

use crate::actions::Actions;
use crate::caller::Caller;
use crate::doorkeeper::Doorkeeper;
use crate::health::Rehearsals;
use crate::house::House;
use crate::idempotency::Memory;
use crate::live::{Live, Wake};
use crate::observe::{Metrics, Observer};
use crate::pages::policy::Backtests;
use crate::policies::{Keeper, PolicyBook};
use crate::problem::{Kind, Problem};
use crate::rate::{Buckets, Rate};
use crate::replays::Replays;
use crate::sign_in::{Errands, SignIn};
use crate::work::Workers;
use crate::{NewToken, Oidc, Role};

/// How the door behaves.
#[derive(Clone)]
pub struct Settings {
    /// Lets everybody in as the operator. Only for a door that nobody else can reach.
    pub no_auth: bool,
    /// Whose tokens are taken beside our own.
    pub oidc: Option<Arc<Oidc>>,
    /// How people sign in at that issuer, if they can.
    pub sign_in: Option<SignIn>,
    /// Whether browsers reach the door by TLS only.
    pub is_secure: bool,
    /// Under which names the door may be called, and from which pages.
    pub access: Access,
    /// How many threads wait for the disk.
    pub threads: usize,
    /// How long a request waits for one of them.
    pub patience: Duration,
    /// The most bytes of all bodies that are on their way.
    pub max_held_bytes: usize,
    /// How long a client may take to send a body.
    pub body_time: Duration,
    /// How often one token may ask.
    pub token_rate: Option<Rate>,
    /// How often one tenant may ask.
    pub tenant_rate: Option<Rate>,
    /// How often one tool may be proposed in one tenant.
    pub tool_rate: Option<Rate>,
    /// Is woken by the store of the engine when something was recorded.
    pub wake: Wake,
    /// Is told of every request and every event.
    pub observer: Option<Observer>,
    /// Tells what was counted.
    pub metrics: Option<Metrics>,
    /// What the console shows that only the whole program knows.
    pub house: Option<Arc<dyn House>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            no_auth: false,
            oidc: None,
            sign_in: None,
            is_secure: false,
            access: Access::default(),
            threads: 64,
            patience: Duration::from_secs(5),
            max_held_bytes: 256 << 20,
            body_time: Duration::from_secs(30),
            token_rate: None,
            tenant_rate: None,
            tool_rate: None,
            wake: Wake::default(),
            observer: None,
            metrics: None,
            house: None,
        }
    }
}

/// The API over one engine.
pub struct Api {
    pub(crate) engine: Arc<Engine>,
    pub(crate) settings: Settings,
    pub(crate) doorkeeper: Doorkeeper,
    pub(crate) errands: Errands,
    pub(crate) workers: Workers,
    pub(crate) room: Room,
    pub(crate) live: Live,
    pub(crate) actions: Actions,
    pub(crate) keeper: Keeper,
    pub(crate) replays: Replays,
    pub(crate) backtests: Backtests,
    pub(crate) memory: Arc<Memory>,
    pub(crate) rehearsals: Rehearsals,
    pub(crate) token_rates: Buckets<String>,
    pub(crate) tenant_rates: Buckets<TenantId>,
    tool_rates: Buckets<(TenantId, String)>,
    /// Which requests were shown to whom, as far as it is known without asking the audit.
    pub(crate) seen: Mutex<HashSet<(ApprovalId, String)>>,
    /// Whose sessions are whose, as far as it was asked lately.
    owners: Mutex<HashMap<Scope, Option<String>>>,
    /// Who answers what would be decided, each with what it has compiled.
    desks: Mutex<Vec<whatif::Desk>>,
}

impl Api {
    /// An API over an engine.
    pub fn new(engine: Arc<Engine>, book: PolicyBook, settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            live: Live::new(
                settings.wake.clone(),
                engine.store().reader().last_id().ok(),
            ),
            actions: Actions::default(),
            keeper: Keeper::new(book),
            replays: Replays::default(),
            backtests: Backtests::default(),
            memory: Arc::default(),
            rehearsals: Rehearsals::default(),
            doorkeeper: Doorkeeper::new(
                settings.no_auth,
                settings.oidc.clone(),
                settings.is_secure,
                &house_of(&engine),
            ),
            errands: Errands::default(),
            workers: Workers::new(settings.threads, settings.patience),
            room: Room::new(settings.max_held_bytes),
            token_rates: Buckets::new(settings.token_rate),
            tenant_rates: Buckets::new(settings.tenant_rate),
            tool_rates: Buckets::new(settings.tool_rate),
            seen: Mutex::default(),
            owners: Mutex::default(),
            desks: Mutex::default(),
            engine,
            settings,
        })
    }

    /// A link, without its host, that lets one browser in as the operator, once.
    pub fn login_path(&self) -> Option<String> {
        let operator = Caller {
            id: "console".to_owned(),
            name: "console".to_owned(),
            ..Caller::nobody()
        };
        let code = self.doorkeeper.code(operator)?;
        Some(format!("/login?code={code}"))
    }

    /// Makes the operator's first token, if nobody has any yet. Its text is not kept.
    pub fn first_token(&self) -> Result<Option<String>, Problem> {
        let store = self.engine.store();
        if !store.reader().tokens()?.is_empty() {
            return Ok(None);
        }
        let token = NewToken {
            name: "operator".to_owned(),
            role: Role::Operator,
            tenant: None,
            session: None,
            expires_unix_ms: None,
        };
        let (text, row) = token
            .issue(now_unix_ms()?)
            .map_err(|error| Problem::new(Kind::Overloaded, error.to_string()))?;
        store.add_token(row)?;
        Ok(Some(text))
    }

    /// Reads again which tokens there are.
    pub(crate) async fn learn_tokens(self: &Arc<Self>) -> Result<(), Problem> {
        let engine = Arc::clone(&self.engine);
        let rows = self
            .workers
            .run(move || engine.store().reader().tokens())
            .await??;
        self.doorkeeper.learn(rows);
        Ok(())
    }

    /// Whether a tool may be proposed once more.
    pub(crate) fn take_tool(&self, tenant: &TenantId, tool: &str) -> Result<(), Problem> {
        let key = (tenant.clone(), tool.to_owned());
        let taken = self.tool_rates.take(key, std::time::Instant::now());
        taken.map_err(|wait| {
            let text = format!("the tool `{tool}` is proposed too often");
            Problem::new(Kind::RateLimited, text).retry_after(wait)
        })
    }

    /// Whether the caller may look into a session. Agents see their own only; what they may not see is
    /// not there.
    pub(crate) async fn check_owner(
        self: &Arc<Self>,
        caller: &Caller,
        scope: &Scope,
    ) -> Result<(), Problem> {
        if caller.role != Role::Agent {
            return Ok(());
        }
        let owner = match self.known_owner(scope) {
            Some(owner) => owner,
            None => {
                let (engine, wanted) = (Arc::clone(&self.engine), scope.clone());
                let read = move || engine.store().reader().session_owner(&wanted);
                let owner = self.workers.run(read).await??;
                self.keep_owner(scope, owner.clone());
                owner
            }
        };
        match owner.is_some_and(|owner| owner == caller.id) {
            true => Ok(()),
            false => Err(Problem::new(Kind::NoSession, "no such session")),
        }
    }

    /// Whether the caller may write into a session; a new one becomes its own. Blocks.
    pub(crate) fn claim(&self, caller: &Caller, scope: &Scope) -> Result<(), Problem> {
        if reserved::is_reserved(scope) {
            let text = "the session is for what Countersign itself records";
            return Err(Problem::new(Kind::Reserved, text));
        }
        let owner = match self.known_owner(scope) {
            Some(Some(owner)) => Some(owner),
            _ => {
                let owner = self.engine.store().claim_session(scope, &caller.id)?;
                self.keep_owner(scope, owner.clone());
                owner
            }
        };
        match caller.role != Role::Agent || owner.is_some_and(|owner| owner == caller.id) {
            true => Ok(()),
            false => Err(Problem::new(
                Kind::Forbidden,
                "the session is somebody else's",
            )),
        }
    }

    fn known_owner(&self, scope: &Scope) -> Option<Option<String>> {
        lock(&self.owners).get(scope).cloned()
    }

    fn keep_owner(&self, scope: &Scope, owner: Option<String>) {
        // A session that nobody has yet may get an owner from another process.
        let Some(owner) = owner else {
            return;
        };
        let mut owners = lock(&self.owners);
        if owners.len() >= MAX_OWNERS {
            owners.clear();
        }
        owners.insert(scope.clone(), Some(owner));
    }

    /// Asks somebody who has nothing else to do. Blocks.
    pub(crate) fn with_desk<T>(&self, ask: impl FnOnce(&mut whatif::Desk) -> T) -> T {
        let mut desk = lock(&self.desks).pop().unwrap_or_default();
        let answer = ask(&mut desk);
        let mut desks = lock(&self.desks);
        if desks.len() < MAX_DESKS {
            desks.push(desk);
        }
        answer
    }
}

/// What tells a daemon from others on the same host: the folder of its log.
fn house_of(engine: &Engine) -> Vec<u8> {
    let folder = engine.store().reader().folder().path();
    let whole = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    whole.as_os_str().as_encoded_bytes().to_vec()
}

pub(crate) fn now_unix_ms() -> Result<u64, Problem> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let now = since.and_then(|since| u64::try_from(since.as_millis()).ok());
    now.ok_or_else(|| Problem::new(Kind::Clock, "the clock is before 1970"))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const MAX_OWNERS: usize = 100_000;
const MAX_DESKS: usize = 4;
