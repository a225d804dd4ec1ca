//! The loop that owns a session.

use std::io::{self, Read, Write};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::tools::{Book, Shelf};
use crate::{Done, Effect, Gate, Job, Line, Session};

use super::child::{Ending, Server, wait_for_end};
use super::gauge::Gauge;
use super::guard::Guard;
use super::pump::read_lines;
use super::writer::Writer;

/// A connection between a client on one pair of pipes and a server that is started for it.
pub struct Door {
    /// The server's command.
    pub command: Command,
    /// A command that ends in [`guard`](super::guard), to end the server when we are killed.
    pub guard: Option<Command>,
    /// The way to the engine.
    pub gate: Gate,
    /// The session.
    pub session: Session,
    /// The most bytes that a frame may have.
    pub max_frame_bytes: usize,
    /// Is told what the session learns.
    pub host: Box<dyn Host>,
}

/// Is told what a session learns about its server.
pub trait Host {
    /// A tool was accepted: the book should be kept.
    fn keep(&mut self, book: &Book);
    /// The server has listed all its tools.
    fn listed(&mut self, shelf: &Shelf);
}

enum Event {
    FromClient(Line),
    ClientClosed,
    FromServer(Line),
    ServerClosed,
    Exited,
    Signal(i32),
    Done(Done),
}

/// What the loop holds.
struct Loop {
    session: Session,
    host: Box<dyn Host>,
    server: Server,
    to_client: Writer,
    to_server: Writer,
    client_inbox: Gauge,
    server_inbox: Gauge,
    client_outbox: Gauge,
    jobs: Sender<Box<Job>>,
    /// Jobs that are not done.
    open_jobs: usize,
    client_closed: bool,
    server_closed: bool,
    exited: bool,
    /// What to send next to a server that does not end, and when.
    next_push: Option<(Instant, Signal)>,
}

impl Door {
    /// Starts the server and carries frames until one side is gone. Gives how the server ended.
    pub fn run(
        mut self,
        client_in: impl Read + Send + 'static,
        client_out: impl Write + Send + 'static,
    ) -> io::Result<Ending> {
        let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        let (server, pipes) = Server::start(&mut self.command)?;
        let group = server.group();
        let guard = match self.guard {
            Some(command) => match Guard::start(command, group) {
                Ok(guard) => Some(guard),
                Err(error) => {
                    // FAIL-CLOSED: a server that could outlive us is not left running.
                    let _ = server.reap();
                    return Err(error);
                }
            },
            None => None,
        };
        let (events, inbox) = channel();
        let [client_inbox, server_inbox, client_outbox, server_outbox] =
            [(); 4].map(|()| Gauge::default());
        let to_client = Writer::start("to-client", client_out, client_outbox.clone())?;
        let to_server = Writer::start("to-server", pipes.stdin, server_outbox.clone())?;
        let max = self.max_frame_bytes;
        spawn("from-client", {
            let (events, inbox) = (events.clone(), client_inbox.clone());
            move || {
                read_lines(client_in, max, &inbox, &server_outbox, |line| {
                    send(&events, Event::FromClient(line));
                });
                send(&events, Event::ClientClosed);
            }
        })?;
        spawn("from-server", {
            let (events, inbox) = (events.clone(), server_inbox.clone());
            let client_outbox = client_outbox.clone();
            move || {
                read_lines(pipes.stdout, max, &inbox, &client_outbox, |line| {
                    send(&events, Event::FromServer(line));
                });
                send(&events, Event::ServerClosed);
            }
        })?;
        spawn("server-end", {
            let events = events.clone();
            move || {
                wait_for_end(group);
                send(&events, Event::Exited);
            }
        })?;
        forward_signals(signals, events.clone())?;
        let gate = Arc::new(self.gate);
        let jobs = start_workers(&gate, &events)?;
        let running = Loop {
            session: self.session,
            host: self.host,
            server,
            to_client,
            to_server,
            client_inbox,
            server_inbox,
            client_outbox,
            jobs,
            open_jobs: 0,
            client_closed: false,
            server_closed: false,
            exited: false,
            next_push: None,
        };
        let ending = running.run(&inbox, &gate);
        if let Some(guard) = guard {
            guard.dismiss();
        }
        ending
    }
}

impl Loop {
    fn run(mut self, inbox: &Receiver<Event>, gate: &Gate) -> io::Result<Ending> {
        while !(self.exited && self.server_closed && self.open_jobs == 0) {
            let event = match self.next_time() {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(time) => inbox.recv_timeout(time.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(event) => self.handle(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = Instant::now();
            self.on_time(now);
            self.close_when_all_is_sent(now);
        }
        self.finish(inbox, gate)
    }

    fn handle(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::FromClient(line) => {
                let length = line.len();
                let effects = match line {
                    Line::Whole(bytes) => self.session.from_client(bytes, now),
                    Line::TooLong { beginning } => self.session.too_long_from_client(&beginning),
                };
                self.apply(effects);
                self.client_inbox.sub(length);
            }
            Event::FromServer(line) => {
                let length = line.len();
                let effects = match line {
                    Line::Whole(bytes) => self.session.from_server(bytes),
                    Line::TooLong { beginning } => self.session.too_long_from_server(&beginning),
                };
                self.apply(effects);
                self.server_inbox.sub(length);
                if self.exited {
                    self.push_after(AFTER_EXIT, Signal::KILL, now);
                }
            }
            Event::Done(done) => {
                self.open_jobs -= 1;
                let effects = self.session.done(done, now);
                self.apply(effects);
            }
            Event::ClientClosed => {
                self.client_closed = true;
                let effects = self.session.client_closed();
                self.apply(effects);
            }
            Event::ServerClosed => self.server_is_closed(now),
            Event::Exited => {
                self.exited = true;
                // What the server started may still hold its pipe.
                self.push_after(AFTER_EXIT, Signal::KILL, now);
            }
            Event::Signal(signal) => {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    self.server.signal(signal);
                }
                self.push_after(GRACE, Signal::KILL, now);
            }
        }
    }

    /// What the client sent last is decided before the server hears that nothing follows.
    fn close_when_all_is_sent(&mut self, now: Instant) {
        let all_sent = self.open_jobs == 0 && !self.session.has_unsent();
        if self.client_closed && all_sent && !self.to_server.is_closed() {
            self.to_server.close();
            self.push_after(GRACE, Signal::TERM, now);
        }
    }

    fn server_is_closed(&mut self, now: Instant) {
        if !self.server_closed {
            self.server_closed = true;
            let effects = self.session.server_closed();
            self.apply(effects);
            self.to_server.close();
            self.push_after(AFTER_EXIT, Signal::TERM, now);
        }
    }

    fn push_after(&mut self, time: Duration, signal: Signal, now: Instant) {
        self.next_push = now.checked_add(time).map(|time| (time, signal));
    }

    fn next_time(&self) -> Option<Instant> {
        let push = self.next_push.map(|(time, _)| time);
        push.into_iter().chain(self.session.deadline()).min()
    }

    fn on_time(&mut self, now: Instant) {
        if let Some((_, signal)) = self.next_push.take_if(|(time, _)| *time <= now) {
            self.server.signal(signal);
            if self.exited && self.client_outbox.is_full() {
                // There may be more in the pipe, once the client has read what is before it.
                self.push_after(AFTER_EXIT, Signal::KILL, now);
            } else if self.exited {
                // Nothing of the group is left that could hold the pipe; others do not count.
                self.server_is_closed(now);
                self.next_push = None;
            } else {
                self.push_after(GRACE, Signal::KILL, now);
            }
        }
        if self.session.deadline().is_some_and(|time| time <= now) {
            let effects = self.session.tick(now);
            self.apply(effects);
        }
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::ToClient(bytes) | Effect::ToCaller(_, bytes) => self.to_client.send(bytes),
                Effect::ToServer(outbound) => self.to_server.send(outbound.into_bytes()),
                Effect::Job(job) => {
                    self.open_jobs += usize::from(self.jobs.send(job).is_ok());
                }
                Effect::Keep(book) => self.host.keep(&book),
                Effect::Listed => self.host.listed(self.session.shelf()),
            }
        }
    }

    /// Settles what is open, records the end, and says how the server ended.
    fn finish(mut self, inbox: &Receiver<Event>, gate: &Gate) -> io::Result<Ending> {
        let effects = self.session.end();
        self.apply(effects);
        while self.open_jobs > 0 {
            match inbox.recv() {
                Ok(Event::Done(done)) => self.handle(Event::Done(done)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        let reason = match self.client_closed {
            true => "client_closed",
            false => "server_closed",
        };
        let recorded = gate.terminate(reason);
        self.to_client.finish();
        let ending = self.server.reap()?;
        match recorded {
            Ok(()) => Ok(ending),
            Err(refusal) => Err(io::Error::other(refusal.message().to_owned())),
        }
    }
}

/// A few threads that wait for the disk in the place of the loop.
fn start_workers(gate: &Arc<Gate>, events: &Sender<Event>) -> io::Result<Sender<Box<Job>>> {
    let (jobs, queue) = channel::<Box<Job>>();
    let queue = Arc::new(Mutex::new(queue));
    for _ in 0..WORKERS {
        let (gate, queue, events) = (Arc::clone(gate), Arc::clone(&queue), events.clone());
        spawn("gate", move || {
            loop {
                let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                match job {
                    Ok(job) => send(&events, Event::Done(gate.run(*job))),
                    Err(_) => return,
                }
            }
        })?;
    }
    Ok(jobs)
}

fn forward_signals(mut signals: Signals, events: Sender<Event>) -> io::Result<()> {
    spawn("signals", move || {
        for signal in signals.forever() {
            send(&events, Event::Signal(signal));
        }
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(work).map(drop)
}

/// When the loop has ended, nobody needs to hear.
fn send(events: &Sender<Event>, event: Event) {
    let _ = events.send(event);
}

const WORKERS: usize = 8;
/// How long a server may take to end when it was told to.
const GRACE: Duration = Duration::from_secs(5);
/// How long the pipe of a server may outlive it.
const AFTER_EXIT: Duration = Duration::from_secs(1);
