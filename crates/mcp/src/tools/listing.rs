//! The answer to `tools/list`, tool by tool.

use std::sync::Arc;

use countersign_canon::Limits;
use countersign_canon::scan::Scan;

use super::{Definition, DefinitionError};
use crate::Fault;
use crate::frame::{self, Span};
use crate::splice;

/// One page of a list.
#[derive(Debug)]
pub struct Listing {
    /// The result, and the array in it.
    result: Span,
    array: Span,
    tools: Vec<(Span, Result<Arc<Definition>, DefinitionError>)>,
}

impl Listing {
    /// Reads the result at `result` in the bytes of a frame, if everybody finds the same tools in it.
    pub fn read(bytes: &[u8], result: Span, limits: &Limits) -> Result<Self, Fault> {
        frame::refuse_posing(bytes, result, &KEYS)?;
        let array = frame::member(bytes, result, TOOLS).ok_or(Fault::NoTools)?;
        let mut tools = Vec::new();
        // So some servers write a list without tools.
        if array.of(bytes) == b"null" {
            return Ok(Self {
                result,
                array,
                tools,
            });
        }
        let mut scan = Scan::new(array.of(bytes), limits)?;
        if scan.peek() != Some(b'[') {
            return Err(Fault::NoTools);
        }
        scan.array(|scan| {
            let place = scan.value()?;
            let span = Span::from(array.start + place.start..array.start + place.end);
            tools.push((span, Definition::read(span.of(bytes)).map(Arc::new)));
            Ok(())
        })?;
        Ok(Self {
            result,
            array,
            tools,
        })
    }

    /// Where the result says how to ask for more.
    pub(crate) fn next(&self, bytes: &[u8]) -> Option<Span> {
        let next = frame::member(bytes, self.result, NEXT)?;
        (next.of(bytes) != b"null").then_some(next)
    }

    /// The definitions that can be read, in their order.
    pub fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.tools.iter().filter_map(|(_, one)| one.as_ref().ok())
    }

    /// How many cannot be read.
    pub(crate) fn unreadable(&self) -> usize {
        self.tools.iter().filter(|(_, one)| one.is_err()).count()
    }

    /// The bytes with only the tools that are wanted; `None` if that changes nothing. What others may see is
    /// another list, so nobody keeps this one for them, and nobody keeps it for later.
    pub fn only(
        &self,
        bytes: &[u8],
        mut wanted: impl FnMut(&Arc<Definition>) -> bool,
    ) -> Option<Vec<u8>> {
        let mut kept = Vec::new();
        for (span, definition) in &self.tools {
            if definition.as_ref().is_ok_and(&mut wanted) {
                kept.push(span.of(bytes));
            }
        }
        let mut new = Vec::new();
        if kept.len() < self.tools.len() {
            new.push((
                self.array,
                [&b"["[..], &kept.join(&b","[..]), b"]"].concat(),
            ));
        }
        for (key, value) in UNSHARED {
            let theirs = frame::member(bytes, self.result, key);
            let other = theirs.filter(|theirs| theirs.of(bytes) != value);
            new.extend(other.map(|theirs| (theirs, value.to_vec())));
        }
        match new.is_empty() {
            true => None,
            false => splice::replace_all(bytes, new),
        }
    }
}

const TOOLS: &str = "tools";
const NEXT: &str = "nextCursor";
/// What a result is read for.
const KEYS: [&str; 2] = [TOOLS, NEXT];
/// What a list says that is for nobody else, where it says anything about that.
const UNSHARED: [(&str, &[u8]); 2] = [("cacheScope", b"\"private\""), ("ttlMs", b"0")];
