//! Delivering, on a thread of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{ID, Notice, SIGNATURE, Secret, TIMESTAMP};

/// Where notices go.
#[derive(Clone, Debug)]
pub struct Hook {
    url: String,
    secret: Secret,
}

/// Why a web-hook cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The address is none, or would carry notices in clear over a network.
    #[error("a web-hook needs an https address, or an http address of this machine")]
    Address,
    /// The thread could not be started.
    #[error("cannot start the thread that delivers: {0}")]
    Thread(#[from] std::io::Error),
}

/// What became of notices so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The receiver took them.
    pub delivered: u64,
    /// They were tried as often as allowed, in vain.
    pub failed: u64,
    /// The queue was full.
    pub dropped: u64,
}

/// Delivers notices. Dropping it gives those on their way a short time; the others are lost and counted.
pub struct Sender {
    queue: Option<SyncSender<Notice>>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    delivered: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    /// Until when the rest may be delivered, once nobody sends any more.
    ends: OnceLock<Instant>,
}

impl Counters {
    fn is_over(&self) -> bool {
        self.ends.get().is_some_and(|end| Instant::now() >= *end)
    }
}

impl Hook {
    /// A web-hook at this address.
    pub fn new(address: &str, secret: Secret) -> Result<Self, HookError> {
        let url = url::Url::parse(address).map_err(|_| HookError::Address)?;
        let near = match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        match url.scheme() == "https" || (url.scheme() == "http" && near) {
            true => Ok(Self {
                url: url.into(),
                secret,
            }),
            false => Err(HookError::Address),
        }
    }
}

impl Sender {
    /// Starts delivering.
    pub fn start(hook: Hook) -> Result<Self, HookError> {
        let (queue, notices) = sync_channel(QUEUE);
        let counters = Arc::new(Counters::default());
        let counted = Arc::clone(&counters);
        let thread = std::thread::Builder::new()
            .name("notices".to_owned())
            .spawn(move || deliver_all(&hook, &notices, &counted))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            counters,
        })
    }

    /// Puts a notice on its way. Never waits: where the queue is full, the notice is lost and counted.
    pub fn notify(&self, notice: Notice) {
        let queue = self.queue.as_ref();
        if queue.is_none_or(|queue| queue.try_send(notice).is_err()) {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What became of notices so far.
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            delivered: read(&self.counters.delivered),
            failed: read(&self.counters.failed),
            dropped: read(&self.counters.dropped),
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.queue = None;
        self.counters.ends.get_or_init(|| Instant::now() + GRACE);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to deliver.
            let _ = thread.join();
        }
    }
}

fn deliver_all(hook: &Hook, notices: &Receiver<Notice>, counters: &Counters) {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        // SECURITY: what is signed for one address goes to no other.
        .max_redirects(0)
        .proxy(None)
        .build()
        .into();
    for notice in notices {
        let counter = match counters.is_over() {
            true => &counters.dropped,
            false if deliver(&notice, hook, &agent, counters) => &counters.delivered,
            false => &counters.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Tries a few times; every try has the name of the first, so that a receiver takes it once.
fn deliver(notice: &Notice, hook: &Hook, agent: &ureq::Agent, counters: &Counters) -> bool {
    let mut random = [0; 16];
    if getrandom::fill(&mut random).is_err() {
        return false;
    }
    let id = base16ct::lower::encode_string(&random);
    let body = notice.to_body(&id);
    let mut pause = FIRST_PAUSE;
    for attempt in 1..=ATTEMPTS {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        let sent = agent
            .post(&hook.url)
            .header("content-type", "application/json")
            .header(ID, &id)
            .header(TIMESTAMP, now.to_string())
            .header(SIGNATURE, hook.secret.sign(&id, now, &body))
            .send(&body[..]);
        if sent.is_ok_and(|response| response.status().is_success()) {
            return true;
        }
        if counters.is_over() {
            return false;
        }
        if attempt < ATTEMPTS {
            std::thread::sleep(pause);
            pause *= 2;
        }
    }
    false
}

const QUEUE: usize = 256;
const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(1);
