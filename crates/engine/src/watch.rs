//! Looking at what a call changes, where the manifest says what that is.

use std::sync::Arc;

use countersign_canon::Json;

use crate::refusal::Fault;
use crate::{Engine, Permit};

/// Looks at the state that a call may change. It is asked right before the call runs.
pub trait Watch: Send + Sync {
    /// Digests the state that these words of the manifest name, or says why it cannot.
    fn before(&self, words: &[String]) -> Result<Box<dyn Watched>, String>;
}

/// A state as it was before a call.
pub trait Watched: Send {
    /// Digests it again: both digests with their coverage, as records tell of them.
    fn after(self: Box<Self>) -> Json;
}

impl Engine {
    /// The same engine, with somebody beside the tools who can look at what they change.
    #[must_use]
    pub fn with_watch(mut self, watch: Arc<dyn Watch>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Whether a call of this tool is looked at before it may begin.
    pub(crate) fn watches(&self, server: Option<&str>, tool: &str) -> bool {
        self.watch.is_some() && !self.words(server, tool).is_empty()
    }

    /// The state before what a permit allows. FAIL-CLOSED: what cannot be looked at does not run.
    pub(crate) fn seen_before(&self, permit: &Permit) -> Result<Option<Box<dyn Watched>>, Fault> {
        let Some(watch) = &self.watch else {
            return Ok(None);
        };
        let words = self.words(permit.server.as_deref(), &permit.tool_name);
        if words.is_empty() {
            return Ok(None);
        }
        match watch.before(&words) {
            Ok(watched) => Ok(Some(watched)),
            // Who only observes keeps nothing from running.
            Err(_) if self.policies().is_observing() => Ok(None),
            Err(why) => Err(Fault::State(why)),
        }
    }

    /// What the manifest in force says that a tool changes.
    fn words(&self, server: Option<&str>, tool: &str) -> Vec<String> {
        let policies = self.policies();
        let entry = policies.capability().manifest();
        let entry = entry.and_then(|manifest| manifest.tool(tool));
        // An entry of another server says nothing about this one.
        let entry = entry.filter(|entry| match &entry.server {
            None => true,
            named => named.as_deref() == server,
        });
        entry.map(|entry| entry.state.clone()).unwrap_or_default()
    }
}
