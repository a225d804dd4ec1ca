//! What is done with what sessions learn.

use std::sync::Arc;

use countersign_engine::Engine;
use countersign_mcp::stdio::Host;
use countersign_mcp::tools::{Book, Shelf};

use super::policies::{self, Recipe};
use super::rules::Mode;
use crate::books::Books;

/// Keeps the books, and the policies that follow from them.
pub(super) struct Wrapper {
    books: Books,
    /// Without a manifest, what people have accepted decides which tools are held.
    observed: Option<(Arc<Engine>, Arc<Recipe>)>,
    mode: Mode,
}

impl Wrapper {
    pub(super) fn new(
        books: Books,
        observed: Option<(Arc<Engine>, Arc<Recipe>)>,
        mode: Mode,
    ) -> Self {
        Self {
            books,
            observed,
            mode,
        }
    }
}

impl Host for Wrapper {
    fn keep(&mut self, book: &Book) {
        if let Err(failure) = self.books.keep(book) {
            failure.report();
        }
    }

    fn listed(&mut self, shelf: &Shelf) {
        let Some((engine, recipe)) = &self.observed else {
            return;
        };
        let policies =
            policies::observed(shelf).and_then(|manifest| recipe.policies(Some(manifest)));
        match policies {
            Ok(policies) => engine.replace_policies(self.mode.of(policies)),
            // FAIL-CLOSED: the policies in force hold every call.
            Err(failure) => drop(failure.report()),
        }
    }
}
