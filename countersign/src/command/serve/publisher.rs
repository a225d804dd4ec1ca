//! Publishing checkpoints while the daemon runs, and once more when it ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use countersign_engine::Engine;
use countersign_store::Error;

use super::Plan;
use crate::command::checkpoint::Folder;
use crate::errors::Failure;
use crate::output;

/// A thread of its own, so that no request waits for a signature.
pub(super) struct Publisher {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

struct Work {
    engine: Arc<Engine>,
    every: Duration,
    name: Option<String>,
    out: Option<PathBuf>,
}

impl Publisher {
    /// Starts, if the configuration asks for it.
    pub(super) fn start(plan: &Plan, engine: &Arc<Engine>) -> Option<Self> {
        let every = plan.config.count("checkpoint.seconds");
        if every == 0 {
            return None;
        }
        let work = Work {
            engine: Arc::clone(engine),
            every: Duration::from_secs(every),
            name: plan.config.text("checkpoint.name").map(str::to_owned),
            out: plan.config.text("checkpoint.out").map(PathBuf::from),
        };
        let (stop, stopped) = channel();
        let thread = thread::spawn(move || work.run(&stopped));
        Some(Self { stop, thread })
    }

    /// Publishes what is new, and ends.
    pub(super) fn finish(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            output::stderr("countersign: the last checkpoint was not signed");
        }
    }
}

impl Work {
    fn run(&self, stopped: &Receiver<()>) {
        let mut said = None;
        loop {
            let ends = stopped.recv_timeout(self.every) != Err(RecvTimeoutError::Timeout);
            // What goes wrong is told once, and tried again.
            let failed = self
                .publish()
                .err()
                .map(|failure| failure.message().to_owned());
            if failed != said {
                if let Some(text) = &failed {
                    output::stderr(&format!("countersign: no checkpoint was signed: {text}"));
                }
                said = failed;
            }
            if ends {
                return;
            }
        }
    }

    fn publish(&self) -> Result<(), Failure> {
        let store = self.engine.store();
        let published = match store.publish(self.name.as_deref()) {
            Err(Error::NothingToPublish) => return Ok(()),
            published => published?,
        };
        match &self.out {
            Some(out) => Folder::new(out).write(&published, store.reader()),
            None => Ok(()),
        }
    }
}
