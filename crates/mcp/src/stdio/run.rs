//! The loop that owns a session.

use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use countersign_engine::Haste;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::gate::{Lost, Quick, Soon};
use crate::tools::{Definition, Shelf};
use crate::{Done, Effect, Gate, Job, Line, Session};

use super::child::{Ending, Pipes, Server, wait_for_end};
use super::gauge::Gauge;
use super::guard::Guard;
use super::mailbox::{Mailbox, Post, wait_for};
use super::source::Source;
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
    /// The server has listed all its tools: gives how they stand beside the books as they are now. What is
    /// new in them is kept then; `None` if that could not be done, and somebody was told why.
    fn judge(&mut self, tools: &[Arc<Definition>]) -> Option<Shelf>;
}

/// What other threads tell.
enum Event {
    Exited,
    Signal(i32),
    /// A job is done that held so many bytes.
    Done(usize, Box<Done>),
}

/// Which streams have something.
struct Ready {
    client: bool,
    server: bool,
}

/// What the loop holds.
struct Loop {
    session: Session,
    host: Box<dyn Host>,
    server: Server,
    /// Where the client hears, to see whether it still does.
    client_end: OwnedFd,
    from_client: Source,
    from_server: Source,
    to_client: Writer,
    to_server: Writer,
    client_outbox: Gauge,
    server_outbox: Gauge,
    gate: Arc<Gate>,
    jobs: Sender<(usize, Box<Job>)>,
    /// Jobs that wait for the disk alone, and what each holds.
    soon: Vec<(usize, Soon)>,
    /// Is woken when one of them is done.
    waker: Waker,
    /// Jobs that are not done.
    open_jobs: usize,
    /// How many bytes those hold.
    open_bytes: usize,
    /// How many the line has that is in hand, or the one that led to the job that is done.
    in_hand: usize,
    /// Who writes what the next jobs record.
    haste: Haste,
    exited: bool,
    /// Somebody has asked us and the server to end: how long a client that does not read is waited for.
    told_to_end: Option<Instant>,
    /// What to send next to a server that does not end, and when.
    next_push: Option<(Instant, Signal)>,
}

impl Door {
    /// Starts the server and carries frames until one side is gone. Gives how the server ended.
    pub fn run(mut self, client_in: OwnedFd, client_out: OwnedFd) -> io::Result<Ending> {
        let signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2])?;
        let started = Server::start(&mut self.command);
        let started = started.inspect_err(|_| {
            // What keeps the server from starting is what is told.
            let _ = self.gate.terminate("server_not_started");
        })?;
        let gate = Arc::new(self.gate);
        let frames = Frames {
            session: self.session,
            host: self.host,
            gate: Arc::clone(&gate),
            max_bytes: self.max_frame_bytes,
        };
        // FAIL-CLOSED: a server that could outlive us is not left running.
        let guard = self
            .guard
            .map(|command| Guard::start(command, started.0.group()));
        let ending = guard.transpose().and_then(|guard| {
            let ending = frames.carry(started, signals, (client_in, client_out));
            // The server has ended, however it went here.
            guard.into_iter().for_each(Guard::dismiss);
            ending
        });
        if ending.is_err() {
            // What went wrong is what is told.
            let _ = gate.terminate("door_failed");
        }
        ending
    }
}

/// What carries frames.
struct Frames {
    session: Session,
    host: Box<dyn Host>,
    gate: Arc<Gate>,
    max_bytes: usize,
}

impl Frames {
    fn carry(
        self,
        (server, pipes): (Server, Pipes),
        signals: Signals,
        (client_in, client_out): (OwnedFd, OwnedFd),
    ) -> io::Result<Ending> {
        let client_end = client_out.try_clone()?;
        let (inbox, events) = Mailbox::new()?;
        let [client_outbox, server_outbox] = [(); 2].map(|()| Gauge::default());
        let writer = |name, stream, outbox: &Gauge| {
            let bell = events.bell();
            Writer::start(name, stream, outbox.clone(), move || bell.ring())
        };
        let to_client = writer("to-client", client_out, &client_outbox)?;
        let to_server = writer("to-server", pipes.stdin.into(), &server_outbox)?;
        spawn("server-end", {
            let (events, group) = (events.clone(), server.group());
            move || {
                wait_for_end(group);
                events.send(Event::Exited);
            }
        })?;
        forward_signals(signals, events.clone())?;
        let jobs = start_workers(&self.gate, &events)?;
        let running = Loop {
            session: self.session,
            host: self.host,
            server,
            client_end,
            from_client: Source::new(client_in, self.max_bytes),
            from_server: Source::new(pipes.stdout.into(), self.max_bytes),
            to_client,
            to_server,
            client_outbox,
            server_outbox,
            gate: self.gate,
            jobs,
            soon: Vec::new(),
            waker: events.bell().into(),
            open_jobs: 0,
            open_bytes: 0,
            in_hand: 0,
            haste: Haste::Now,
            exited: false,
            told_to_end: None,
            next_push: None,
        };
        running.run(&inbox)
    }
}

impl Loop {
    fn run(mut self, inbox: &Mailbox<Event>) -> io::Result<Ending> {
        while !(self.exited && self.from_server.is_closed() && self.open_jobs == 0) {
            let ready = self.wait(inbox)?;
            self.hear(inbox);
            if ready.client {
                self.read_client();
            }
            if ready.server {
                self.read_server();
            }
            let now = Instant::now();
            self.on_time(now);
            self.close_when_all_is_sent(now);
            self.catch_up();
        }
        self.finish(inbox)
    }

    /// The client has its results: now the log gets them.
    fn catch_up(&self) {
        if self.gate.owes() && !self.gate.catch_up() {
            let gate = Arc::clone(&self.gate);
            // What no thread can be started for is done before the next decision.
            let _ = spawn("catch-up", move || gate.catch_up_in_turn());
        }
    }

    /// Takes what other threads tell, and what the disk has answered.
    fn hear(&mut self, inbox: &Mailbox<Event>) {
        for event in inbox.take() {
            self.handle(event);
        }
        for (weight, soon) in std::mem::take(&mut self.soon) {
            self.poll(weight, soon);
        }
    }

    fn poll(&mut self, weight: usize, mut soon: Soon) {
        match soon.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => self.soon.push((weight, soon)),
            Poll::Ready(Ok(done)) => self.job_done(weight, done),
            Poll::Ready(Err(job)) => {
                self.close_job(weight);
                self.hand_over(weight, job);
            }
        }
    }

    fn open_job(&mut self, weight: usize) {
        self.open_jobs += 1;
        self.open_bytes += weight;
    }

    fn close_job(&mut self, weight: usize) {
        self.open_jobs -= 1;
        self.open_bytes -= weight;
    }

    /// What follows a job holds what it held.
    fn job_done(&mut self, weight: usize, done: Done) {
        self.close_job(weight);
        let before = std::mem::replace(&mut self.in_hand, weight);
        self.done(done);
        self.in_hand = before;
    }

    fn done(&mut self, done: Done) {
        let effects = self.session.done(done, Instant::now());
        self.apply(effects);
    }

    /// Does a job, or has it done by whoever can wait.
    fn do_job(&mut self, job: Box<Job>) {
        match self.gate.run_at_once(job, self.haste) {
            Quick::Done(done) => self.done(*done),
            Quick::Soon(soon) => {
                self.open_job(self.in_hand);
                self.poll(self.in_hand, soon);
            }
            Quick::Not(job) => self.hand_over(self.in_hand, job),
        }
    }

    fn hand_over(&mut self, weight: usize, job: Box<Job>) {
        if self.jobs.send((weight, job)).is_ok() {
            self.open_job(weight);
        }
    }

    /// Waits for news, for a stream that somebody has room for, or for a time. What cannot be taken is
    /// left where it is.
    fn wait(&self, inbox: &Mailbox<Event>) -> io::Result<Ready> {
        let has_room = self.open_jobs < MOST_JOBS && self.open_bytes < MOST_BYTES;
        let client = self.from_client.stream();
        let client = client.filter(|_| has_room && !self.server_outbox.is_full());
        let server = self.from_server.stream();
        let server = server.filter(|_| has_room && !self.client_outbox.is_full());
        let both = client.into_iter().chain(server);
        let mut streams: Vec<_> = std::iter::once(inbox.stream())
            .chain(both)
            .map(|stream| PollFd::from_borrowed_fd(stream, PollFlags::IN))
            .collect();
        let left = self.next_time();
        let left = left.map(|time| time.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        wait_for(&mut streams, left.as_ref())?;
        let mut ready = streams.iter().skip(1).map(|it| !it.revents().is_empty());
        Ok(Ready {
            client: client.is_some() && ready.next() == Some(true),
            server: server.is_some() && ready.next() == Some(true),
        })
    }

    fn read_client(&mut self) {
        let now = Instant::now();
        let lines = self.from_client.read();
        if lines.len() == 1 && self.open_jobs == 0 {
            // There is nothing else to do than to wait for the disk.
            self.haste = Haste::Here;
        }
        for line in lines {
            self.in_hand = line.len();
            let effects = match line {
                Line::Whole(bytes) => self.session.from_client(bytes, now),
                Line::TooLong { beginning, end } => {
                    self.session.too_long_from_client(&beginning, &end)
                }
            };
            self.apply(effects);
        }
        self.in_hand = 0;
        self.haste = Haste::Now;
        if self.from_client.is_closed() {
            let effects = self.session.client_closed();
            self.apply(effects);
        }
    }

    fn read_server(&mut self) {
        for line in self.from_server.read() {
            self.take_from_server(line);
        }
        let now = Instant::now();
        if self.from_server.is_closed() {
            self.server_is_closed(now);
        } else if self.exited {
            self.push_after(AFTER_EXIT, Signal::KILL, now);
        }
    }

    fn take_from_server(&mut self, line: Line) {
        self.in_hand = line.len();
        let effects = match line {
            Line::Whole(bytes) => self.session.from_server(bytes),
            Line::TooLong { beginning, end } => self.session.too_long_from_server(&beginning, &end),
        };
        self.apply(effects);
        self.in_hand = 0;
    }

    fn handle(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Done(weight, done) => self.job_done(weight, *done),
            Event::Exited => {
                self.exited = true;
                // What the server started may still hold its pipe.
                self.push_after(AFTER_EXIT, Signal::KILL, now);
            }
            Event::Signal(signal) => {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    self.server.signal(signal);
                }
                // What it does about the others is its own.
                if signal == SIGTERM {
                    self.told_to_end = self.told_to_end.or(now.checked_add(GRACE));
                    self.push_after(GRACE, Signal::KILL, now);
                }
            }
        }
    }

    /// What the client sent last is decided before the server hears that nothing follows.
    fn close_when_all_is_sent(&mut self, now: Instant) {
        let all_sent = self.open_jobs == 0 && !self.session.has_unsent();
        if self.from_client.is_closed() && all_sent && !self.to_server.is_closed() {
            self.to_server.close();
            if self.told_to_end.is_none() {
                self.push_after(GRACE, Signal::TERM, now);
            }
        }
    }

    /// The server has said everything.
    fn server_is_closed(&mut self, now: Instant) {
        let effects = self.session.server_closed();
        self.apply(effects);
        self.to_server.close();
        self.push_after(AFTER_EXIT, Signal::TERM, now);
    }

    /// Nobody waits for more of the server.
    fn close_server(&mut self, now: Instant) {
        if self.from_server.is_closed() {
            return;
        }
        if let Some(line) = self.from_server.close() {
            self.take_from_server(line);
        }
        self.server_is_closed(now);
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
            if signal == Signal::TERM && self.session.is_awaited() && self.client_hears() {
                self.push_after(GRACE, signal, now);
                return self.tick(now);
            }
            self.server.signal(signal);
            if self.exited && self.client_outbox.is_full() && !self.is_out_of_patience(now) {
                // There may be more in the pipe, once the client has read what is before it.
                self.push_after(AFTER_EXIT, Signal::KILL, now);
            } else if self.exited {
                // Nothing of the group is left that could hold the pipe; others do not count.
                self.close_server(now);
                self.next_push = None;
            } else {
                self.push_after(GRACE, Signal::KILL, now);
            }
        }
        self.tick(now);
    }

    /// Somebody wanted us to end long enough ago.
    fn is_out_of_patience(&self, now: Instant) -> bool {
        self.told_to_end.is_some_and(|until| until <= now)
    }

    fn tick(&mut self, now: Instant) {
        if self.session.deadline().is_some_and(|time| time <= now) {
            let effects = self.session.tick(now);
            self.apply(effects);
        }
    }

    /// Whether somebody may still read what is sent to the client.
    fn client_hears(&self) -> bool {
        let mut end = [PollFd::new(&self.client_end, PollFlags::empty())];
        let at_once = Timespec::default();
        wait_for(&mut end, Some(&at_once)).is_ok() && end.iter().all(|it| it.revents().is_empty())
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::ToClient(bytes) | Effect::ToCaller(_, bytes) => self.to_client.send(bytes),
                Effect::ToServer(outbound) => self.to_server.send(outbound.into_bytes()),
                Effect::Job(job) => self.do_job(job),
                Effect::Judge(list) => {
                    let shelf = self.host.judge(list.tools());
                    let effects = self.session.judged(list.number(), shelf);
                    self.apply(effects);
                }
                // There is no other connection.
                Effect::Remember(_) => {}
            }
        }
    }

    /// Waits until the client has heard everything, or somebody wants us to end and it does not listen.
    fn tell_the_rest(&mut self, inbox: &Mailbox<Event>) -> io::Result<()> {
        self.to_client.close();
        while !self.to_client.is_done() && !self.is_out_of_patience(Instant::now()) {
            let left = self.told_to_end;
            let left = left.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let mut news = [PollFd::from_borrowed_fd(inbox.stream(), PollFlags::IN)];
            wait_for(&mut news, left.as_ref())?;
            self.hear(inbox);
        }
        Ok(())
    }

    /// Settles what is open, records the end, and says how the server ended.
    fn finish(mut self, inbox: &Mailbox<Event>) -> io::Result<Ending> {
        let effects = self.session.end();
        self.apply(effects);
        while self.open_jobs > 0 {
            inbox.wait()?;
            self.hear(inbox);
        }
        let reason = match self.from_client.is_closed() {
            true => "client_closed",
            false => "server_closed",
        };
        let recorded = self.gate.terminate(reason);
        let is_written = self.tell_the_rest(inbox);
        let ending = self.server.reap()?;
        is_written?;
        match recorded {
            Ok(()) => Ok(ending),
            Err(refusal) => Err(io::Error::other(refusal.message().to_owned())),
        }
    }
}

/// A few threads that wait for the disk in the place of the loop.
fn start_workers(gate: &Arc<Gate>, events: &Post<Event>) -> io::Result<Sender<(usize, Box<Job>)>> {
    let (jobs, queue) = channel::<(usize, Box<Job>)>();
    let queue = Arc::new(Mutex::new(queue));
    for _ in 0..WORKERS {
        let (gate, queue, events) = (Arc::clone(gate), Arc::clone(&queue), events.clone());
        spawn("gate", move || {
            loop {
                let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((weight, job)) = job else { return };
                let lost = Lost::of(&job);
                // FAIL-CLOSED: a job that panics is refused, and whoever waits for it hears so.
                let done = catch_unwind(AssertUnwindSafe(|| gate.run(*job)));
                let done = done.unwrap_or_else(|_| lost.done());
                events.send(Event::Done(weight, Box::new(done)));
            }
        })?;
    }
    Ok(jobs)
}

fn forward_signals(mut signals: Signals, events: Post<Event>) -> io::Result<()> {
    spawn("signals", move || {
        for signal in signals.forever() {
            events.send(Event::Signal(signal));
        }
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(work).map(drop)
}

const WORKERS: usize = 8;
/// Nobody reads more while so many jobs are open, or while those hold so much.
const MOST_JOBS: usize = 1024;
const MOST_BYTES: usize = 16 << 20;
/// How long a server may take to end when it was told to.
const GRACE: Duration = Duration::from_secs(5);
/// How long the pipe of a server may outlive it.
const AFTER_EXIT: Duration = Duration::from_secs(1);
