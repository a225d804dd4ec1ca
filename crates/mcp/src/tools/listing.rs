//! The answer to `tools/list`, tool by tool.

use countersign_canon::Limits;
use countersign_canon::scan::Scan;

use super::{Definition, DefinitionError};
use crate::frame::{self, Span};
use crate::splice;

/// One page of a list.
#[derive(Debug)]
pub struct Listing {
    /// The result, and the array in it.
    result: Span,
    array: Span,
    tools: Vec<(Span, Result<Definition, DefinitionError>)>,
}

impl Listing {
    /// Reads the result at `result` in the bytes of a frame. `None` if it holds no array of tools.
    pub fn read(bytes: &[u8], result: Span, limits: &Limits) -> Option<Self> {
        let array = frame::member(bytes, result, "tools")?;
        let mut scan = Scan::new(array.of(bytes), limits).ok()?;
        let mut tools = Vec::new();
        scan.array(|scan| {
            let place = scan.value()?;
            let span = Span::from(array.start + place.start..array.start + place.end);
            tools.push((span, Definition::read(span.of(bytes))));
            Ok(())
        })
        .ok()?;
        Some(Self {
            result,
            array,
            tools,
        })
    }

    /// The definitions, in their order.
    pub fn definitions(&self) -> impl Iterator<Item = &Result<Definition, DefinitionError>> {
        self.tools.iter().map(|(_, definition)| definition)
    }

    /// The bytes with only the tools that are wanted; `None` if that changes nothing. What others may see is
    /// another list, so nobody keeps this one for them, and nobody keeps it for later.
    pub fn only(&self, bytes: &[u8], wanted: impl Fn(&str) -> bool) -> Option<Vec<u8>> {
        let keep = |definition: &Result<Definition, DefinitionError>| {
            definition.as_ref().is_ok_and(|one| wanted(one.name()))
        };
        let kept: Vec<&[u8]> = self
            .tools
            .iter()
            .filter(|(_, definition)| keep(definition))
            .map(|(span, _)| span.of(bytes))
            .collect();
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

/// What a list says that is for nobody else, where it says anything about that.
const UNSHARED: [(&str, &[u8]); 2] = [("cacheScope", b"\"private\""), ("ttlMs", b"0")];
