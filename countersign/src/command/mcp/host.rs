//! What is done with what sessions learn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use countersign_engine::Engine;
use countersign_mcp::stdio::Host;
use countersign_mcp::tools::{Book, Definition, Shelf};

use super::identity::{Identity, Known};
use super::{observed, rules};
use crate::books::{Books, Turn};
use crate::errors::{Code, Failure};
use crate::output::{self, inline};

/// Keeps the book of a server, and the policies that follow from it.
pub(super) struct Wrapper {
    books: Books,
    identity: Identity,
    engine: Arc<Engine>,
    /// Without one, what people have accepted decides which tools are held.
    has_manifest: bool,
    /// Whether it was said that there are books that cannot be read.
    has_warned: AtomicBool,
}

impl Wrapper {
    pub(super) fn new(
        books: Books,
        identity: Identity,
        engine: Arc<Engine>,
        has_manifest: bool,
    ) -> Self {
        Self {
            books,
            identity,
            engine,
            has_manifest,
            has_warned: AtomicBool::new(false),
        }
    }

    /// What was seen of the server before it shows anything. That decides from now on: whoever only fetches
    /// something never asks for the tools.
    pub(super) fn shelf(&self) -> Result<Shelf, Failure> {
        let turn = self.books.turn()?;
        let shelf = self.known(&turn)?.shelf();
        self.follow(&shelf);
        Ok(shelf)
    }

    /// Lets what people accept from now on count for sessions that are open, as long as the process lives. With a
    /// manifest only the manifest counts.
    pub(super) fn follow_book(&self) -> Result<(), Failure> {
        if self.has_manifest {
            return Ok(());
        }
        let books = self.books.clone();
        let (identity, engine) = (self.identity.clone(), Arc::clone(&self.engine));
        let twin = Self::new(books, identity, engine, false);
        let thread = thread::Builder::new().name("tools".to_owned());
        let started = thread.spawn(move || twin.look_after());
        started
            .map(drop)
            .map_err(|error| Failure::new(Code::Server, error.to_string()))
    }

    fn look_after(&self) {
        let mut seen = None;
        loop {
            thread::sleep(LOOK);
            let now = self.books.stamp(self.identity.server());
            if now == seen {
                continue;
            }
            seen = now;
            // FAIL-CLOSED: what cannot be read changes nothing, and what is held stays held.
            if let Err(failure) = self.shelf() {
                failure.report();
            }
        }
    }

    fn known(&self, turn: &Turn<'_>) -> Result<Known, Failure> {
        let mut known = self.identity.known(turn)?;
        if !known.unread.is_empty() && !self.has_warned.swap(true, Ordering::Relaxed) {
            say_what_is_unread(&known);
        }
        if self.has_manifest {
            rules::pin(&mut known.book, &self.engine.policies());
        }
        Ok(known)
    }

    fn judged(&self, tools: &[Arc<Definition>]) -> Result<Shelf, Failure> {
        let turn = self.books.turn()?;
        let shelf = self.known(&turn)?.judge(tools, &turn)?;
        self.follow(&shelf);
        Ok(shelf)
    }

    /// To be called as long as it is our turn: an older book must not come into force after a newer one.
    fn follow(&self, shelf: &Shelf) {
        if self.has_manifest {
            return;
        }
        // FAIL-CLOSED: the policies in force hold every call of a tool that they do not know.
        if let Err(failure) = self.revise(shelf.book()) {
            failure.report();
        }
    }

    fn revise(&self, book: &Book) -> Result<(), Failure> {
        let manifest = observed::manifest(book)?;
        // Most sessions bring nothing new, and rules are compiled for longer than a session takes to begin.
        if self.engine.policies().capability().manifest() == Some(&manifest) {
            return Ok(());
        }
        let revised = self
            .engine
            .revise(|current| current.for_manifest(Some(manifest)));
        revised
            .map(drop)
            .map_err(|error| Failure::new(Code::Policy, error.to_string()))
    }
}

impl Host for Wrapper {
    fn judge(&mut self, tools: &[Arc<Definition>]) -> Option<Shelf> {
        let judged = self.judged(tools).inspect_err(|failure| {
            failure.report();
        });
        judged.ok()
    }
}

fn say_what_is_unread(known: &Known) {
    for unread in &known.unread {
        output::stderr(&format!(
            "countersign: {}\ncountersign: until it can be read or is moved away, tools that were not seen \
             before are refused",
            inline(unread.failure.message())
        ));
    }
}

/// How often somebody looks whether a book has changed.
const LOOK: Duration = Duration::from_secs(1);
