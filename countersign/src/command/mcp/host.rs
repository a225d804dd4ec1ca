//! What is done with what sessions learn.

use std::sync::Arc;

use countersign_engine::Engine;
use countersign_mcp::stdio::Host;
use countersign_mcp::tools::{Book, Shelf};

use super::observed;
use crate::books::Books;
use crate::errors::{Code, Failure};

/// Keeps the books, and the policies that follow from them.
pub(super) struct Wrapper {
    books: Books,
    /// Without a manifest, what people have accepted decides which tools are held.
    observed: Option<Arc<Engine>>,
}

impl Wrapper {
    pub(super) fn new(books: Books, observed: Option<Arc<Engine>>) -> Self {
        Self { books, observed }
    }
}

impl Host for Wrapper {
    fn keep(&mut self, book: &Book) {
        if let Err(failure) = self.books.keep(book) {
            failure.report();
        }
    }

    fn listed(&mut self, shelf: &Shelf) {
        let Some(engine) = &self.observed else {
            return;
        };
        let revised = engine.revise(|current| {
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
