//! A store whose writer stops where the test wants it to.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use countersign_store::{Folder, Options, Step, Store};

/// Holds the writer inside one transaction until it is dropped.
pub(crate) struct Gate {
    pub(crate) entered: Receiver<()>,
    _open: Sender<()>,
}

/// A store with a gate at one transaction; `at` is told the number of each, from 1, before it is
/// committed.
pub(crate) fn gated(
    folder: &Folder,
    gate: u64,
    at: impl Fn(u64) + Send + Sync + 'static,
) -> (Store, Gate) {
    let (enter, entered) = channel();
    let (open, opened) = channel::<()>();
    let state = Mutex::new((0, enter, opened));
    let observer = Arc::new(move |step| {
        if step == Step::Written {
            let mut state = state.lock().unwrap();
            state.0 += 1;
            if state.0 == gate {
                // The test may not care when.
                let _ = state.1.send(());
                let _ = state.2.recv();
            }
            at(state.0);
        }
    });
    let store = Store::open(
        folder,
        Options {
            observer: Some(observer),
            ..Options::default()
        },
    )
    .unwrap();
    (
        store,
        Gate {
            entered,
            _open: open,
        },
    )
}
