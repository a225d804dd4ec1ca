//! What is done with what sessions learn.

use std::sync::Arc;

use countersign_engine::Engine;
use countersign_mcp::stdio::Host;
use countersign_mcp::tools::{Definition, Shelf};

use super::identity::{Identity, Known};
use super::{observed, rules};
use crate::books::{Books, Turn};
use crate::errors::{Code, Failure};

/// Keeps the book of a server, and the policies that follow from it.
pub(super) struct Wrapper {
    books: Books,
    identity: Identity,
    engine: Arc<Engine>,
    /// Without one, what people have accepted decides which tools are held.
    has_manifest: bool,
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
        }
    }

    /// What was seen of the server before it shows anything.
    pub(super) fn shelf(&self) -> Result<Shelf, Failure> {
        Ok(self.known(&self.books.turn()?)?.shelf())
    }

    fn known(&self, turn: &Turn<'_>) -> Result<Known, Failure> {
        let mut known = self.identity.known(turn)?;
        if self.has_manifest {
            rules::pin(&mut known.book, &self.engine.policies());
        }
        Ok(known)
    }

    fn judged(&self, tools: &[Definition]) -> Result<Shelf, Failure> {
        let turn = self.books.turn()?;
        self.known(&turn)?.judge(tools, &turn)
    }

    fn follow(&self, shelf: &Shelf) {
        if self.has_manifest {
            return;
        }
        let revised = self.engine.revise(|current| {
            current
                .for_manifest(Some(observed::manifest(shelf)?))
                .map_err(|error| Failure::new(Code::Policy, error.to_string()))
        });
        // FAIL-CLOSED: the policies in force hold every call.
        if let Err(failure) = revised {
            failure.report();
        }
    }
}

impl Host for Wrapper {
    fn judge(&mut self, tools: &[Definition]) -> Option<Shelf> {
        let judged = self.judged(tools).inspect_err(|failure| {
            failure.report();
        });
        let shelf = judged.ok()?;
        self.follow(&shelf);
        Some(shelf)
    }
}
