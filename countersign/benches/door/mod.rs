//! What a door adds to a request: asked with and without it, in one run.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Somebody who asks a server and waits for the answer.
pub(crate) trait Client: Send + 'static {
    /// Asks once; stops if the answer is no result.
    fn ask(&mut self, id: &str, method: &str);
}

/// How a server is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// With nothing before it.
    Direct,
    /// Through something that only copies bytes: what a second hop costs on this machine.
    Relay,
    /// Through the door.
    Door,
}

/// How often every way is measured, one after the other.
const TURNS: usize = 5;

/// How much is measured.
pub(crate) struct Plan {
    requests: usize,
    connections: Vec<usize>,
    methods: Vec<&'static str>,
    /// Requests of one connection in a second; 0 is as many as there can be.
    paces: Vec<usize>,
    folder: PathBuf,
}

impl Plan {
    /// Looks into the environment.
    pub(crate) fn new(folder: &Path, connections: &str) -> Self {
        println!(
            "{:<12}{:>6}  {:<12}{:>10}{:>10}{:>10}{:>10}{:>7}  {:>12}",
            "what", "conn.", "pace", "direct", "through", "added", "limit", "ratio", "a relay adds"
        );
        Self {
            requests: numbers("COUNTERSIGN_BENCH_REQUESTS", "1000")[0],
            connections: numbers("COUNTERSIGN_BENCH_CONNECTIONS", connections),
            methods: methods(),
            paces: numbers("COUNTERSIGN_BENCH_PACES", "50,0"),
            folder: folder.to_owned(),
        }
    }

    /// Measures requests that are not recorded and calls that are.
    pub(crate) fn run<C: Client>(&self, connect: &dyn Fn(Way) -> C) {
        for connections in &self.connections {
            for method in &self.methods {
                for pace in &self.paces {
                    let pause = match pace {
                        0 => Duration::ZERO,
                        _ => Duration::from_secs(1) / u32::try_from(*pace).unwrap(),
                    };
                    let [direct, relay, through, commit] =
                        self.in_turns(*connections, method, pause, connect);
                    let limit = match *method {
                        "ping" => Duration::from_micros(150),
                        _ => commit + Duration::from_micros(300),
                    };
                    let added = through.saturating_sub(direct);
                    let pace = match pace {
                        0 => "full speed".to_owned(),
                        _ => format!("{pace}/s each"),
                    };
                    println!(
                        "{method:<12}{connections:>6}  {pace:<12}{:>10}{:>10}{:>10}{:>10}{:>7.2}  {:>12}",
                        micros(direct),
                        micros(through),
                        micros(added),
                        micros(limit),
                        added.as_secs_f64() / limit.as_secs_f64(),
                        micros(relay.saturating_sub(direct))
                    );
                }
            }
        }
    }

    /// The middle times of every way, and of waiting for the disk. They take turns, so that a minute in
    /// which the machine does other work is one for all of them.
    fn in_turns<C: Client>(
        &self,
        connections: usize,
        method: &'static str,
        pause: Duration,
        connect: &dyn Fn(Way) -> C,
    ) -> [Duration; 4] {
        let mut times = [const { Vec::new() }; 4];
        for _ in 0..TURNS {
            for (way, times) in [Way::Direct, Way::Relay, Way::Door]
                .into_iter()
                .zip(&mut times)
            {
                let clients = (0..connections).map(|_| connect(way)).collect();
                times.extend(self.measure(clients, method, pause));
            }
            if method != "ping" {
                times[3].extend(self.group_commit(connections, pause));
            }
        }
        times.map(middle)
    }

    /// How long as many callers wait for the disk who ask as often and share its fsyncs.
    fn group_commit(&self, connections: usize, pause: Duration) -> Vec<Duration> {
        let file = Arc::new(SharedFile::new(&self.folder.join("fsync")));
        let callers = (0..connections).map(|_| Arc::clone(&file)).collect();
        self.measure(callers, "commit", pause)
    }

    fn measure<C: Client>(
        &self,
        clients: Vec<C>,
        method: &'static str,
        pause: Duration,
    ) -> Vec<Duration> {
        let requests = self.requests.div_ceil(TURNS);
        let ask = move |(number, mut client): (u64, C)| {
            client.ask("\"list\"", "tools/list");
            let mut pauses = Pauses::new(pause, number);
            let times = (0..requests).map(|id| {
                pauses.wait();
                let start = Instant::now();
                client.ask(&id.to_string(), method);
                start.elapsed()
            });
            times.collect::<Vec<_>>()
        };
        let clients = (0..).zip(clients);
        let threads: Vec<_> = clients
            .map(|client| thread::spawn(move || ask(client)))
            .collect();
        let times = threads.into_iter().map(|thread| thread.join().unwrap());
        times.flatten().collect()
    }
}

/// A file that several write to: who finds nobody writing writes for all who wait, and they share one
/// fsync. Somebody who is alone waits for nothing else.
struct SharedFile {
    file: File,
    writes: Mutex<Writes>,
    done: Condvar,
}

#[derive(Default)]
struct Writes {
    asked: usize,
    durable: usize,
    is_writing: bool,
}

impl SharedFile {
    fn new(path: &Path) -> Self {
        Self {
            file: File::create(path).unwrap(),
            writes: Mutex::default(),
            done: Condvar::new(),
        }
    }
}

impl Client for Arc<SharedFile> {
    fn ask(&mut self, _: &str, _: &str) {
        let mut writes = self.writes.lock().unwrap();
        writes.asked += 1;
        let mine = writes.asked;
        writes = self
            .done
            .wait_while(writes, |writes| writes.is_writing && writes.durable < mine)
            .unwrap();
        if writes.durable >= mine {
            return;
        }
        writes.is_writing = true;
        let (all, count) = (writes.asked, writes.asked - writes.durable);
        drop(writes);
        (&self.file).write_all(&vec![0; 4096 * count]).unwrap();
        self.file.sync_all().unwrap();
        let mut writes = self.writes.lock().unwrap();
        (writes.durable, writes.is_writing) = (all, false);
        self.done.notify_all();
    }
}

/// Pauses of random length. After pauses of one length those who were answered together would also ask
/// together the next time, and wait for each other.
struct Pauses {
    mean: Duration,
    state: u64,
}

impl Pauses {
    fn new(mean: Duration, number: u64) -> Self {
        let state = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self { mean, state }
    }

    fn wait(&mut self) {
        if !self.mean.is_zero() {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let part = (self.state >> 11) as f64 / (1_u64 << 53) as f64;
            // As long as nobody knows when the next one comes.
            thread::sleep(self.mean.mul_f64(-(1.0 - part).ln()));
        }
    }
}

/// A folder for a door's log, with the manifest that allows the one tool.
pub(crate) fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let manifest = folder.path().join("manifest.json");
    std::fs::write(&manifest, MANIFEST).unwrap();
    (folder, manifest)
}

pub(crate) fn request(id: &str, method: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"echo","arguments":{{"n":{id}}}}}}}"#
    )
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn micros(time: Duration) -> String {
    format!("{:.0} us", time.as_secs_f64() * 1e6)
}

/// Requests that are not recorded, and calls that are.
fn methods() -> Vec<&'static str> {
    let wanted = std::env::var("COUNTERSIGN_BENCH_METHODS");
    let wanted = wanted.unwrap_or_else(|_| "ping,tools/call".to_owned());
    let known = |method: &str| match method {
        "ping" => "ping",
        "tools/call" => "tools/call",
        other => panic!("`{other}` is not measured; ping and tools/call are"),
    };
    wanted.split(',').map(known).collect()
}

fn numbers(variable: &str, default: &str) -> Vec<usize> {
    let text = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    text.split(',').map(|part| part.parse().unwrap()).collect()
}

const MANIFEST: &str = r#"{"schema":"countersign/manifest/v1","name":"toy","version":"1","publisher":"bench",
  "permissions":{"tools":{"echo":{"side_effect":"mutate-local"}},
  "budgets":{"max_tool_calls":100000000,"max_steps":100000000,"max_wall_time_ms":100000000}},
  "loops":{"identical_calls":0,"no_progress_steps":0,"sequence_min":0,"sequence_max":0}}"#;
