//! A server that is a program: started for a session, ended with it.

use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::stdio::{Gauge, Guard, Pipes as Ends, Server, Writer, wait_for_end};
use crate::{Line, Lines};

use super::upstream::Program;

/// A program that runs, and the way to it.
pub(super) struct Pipes {
    writer: Option<Writer>,
    /// What the program has not read.
    outbox: Gauge,
    running: Option<(Server, Option<Guard>)>,
    place: Option<OwnedSemaphorePermit>,
}

/// Starts a program; its lines come out of the channel.
pub(super) fn start(
    program: &Program,
    max_bytes: usize,
    place: Option<OwnedSemaphorePermit>,
) -> io::Result<(Pipes, mpsc::Receiver<Line>)> {
    let (server, Ends { stdin, stdout }) = Server::start(&mut (program.command)())?;
    // FAIL-CLOSED: a server that could outlive us is not left running.
    let guard = (program.guard)().map(|command| Guard::start(command, server.group()));
    let guard = guard.transpose()?;
    let (sender, lines) = mpsc::channel(LINES);
    let outbox = Gauge::default();
    let pipes = Pipes {
        writer: Some(Writer::start(
            "to-server",
            stdin.into(),
            outbox.clone(),
            || {},
        )?),
        outbox,
        running: Some((server, guard)),
        place,
    };
    let reader = thread::Builder::new().name("from-server".to_owned());
    reader.spawn(move || read(stdout, max_bytes, &sender))?;
    Ok((pipes, lines))
}

impl Pipes {
    /// Whether the program has left more unread than it should.
    pub(super) fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    /// Puts a message on its way. A line must not end within it, and only white space can be what
    /// ends a line there.
    pub(super) fn send(&self, mut message: Vec<u8>) {
        for byte in &mut message {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        if let Some(writer) = &self.writer {
            writer.send(message);
        }
    }
}

/// The session is over: the program hears that nothing follows, and is ended if it does not end.
impl Drop for Pipes {
    fn drop(&mut self) {
        let (writer, running) = (self.writer.take(), self.running.take());
        let place = self.place.take();
        let Some((server, guard)) = running else {
            return;
        };
        let ending = move || {
            if let Some(mut writer) = writer {
                writer.close();
            }
            let (ended, end) = channel();
            let group = server.group();
            thread::spawn(move || {
                wait_for_end(group);
                // Nobody waits for longer than they said.
                let _ = ended.send(());
            });
            if end.recv_timeout(GRACE).is_err() {
                server.signal(Signal::TERM);
                let _ = end.recv_timeout(GRACE);
            }
            // How it ended is of no more interest.
            let _ = server.reap();
            if let Some(guard) = guard {
                guard.dismiss();
            }
            // Another program has room now.
            drop(place);
        };
        thread::spawn(ending);
    }
}

fn read(mut source: impl Read, max_bytes: usize, lines: &mpsc::Sender<Line>) {
    let mut cut = Lines::new(max_bytes);
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // A stream that fails has ended.
            Err(_) => break,
        };
        let mut found = Vec::new();
        let bytes = buffer.get(..count).unwrap_or_default();
        cut.feed(bytes, |line| found.push(line));
        for line in found.into_iter().filter(|line| !line.is_blank()) {
            // Waits while nobody takes what was read before.
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    }
}

const LINES: usize = 16;
const BUFFER: usize = 64 << 10;
const GRACE: Duration = Duration::from_secs(3);
