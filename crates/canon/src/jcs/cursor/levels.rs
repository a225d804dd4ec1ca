//! The objects that a cursor is inside of.

use crate::jcs::scanner::KeyStart;

/// The last key of each open object, outermost first. The first few need no allocation.
#[derive(Debug, Default)]
pub(super) struct Levels {
    depth: usize,
    near: [Option<KeyStart>; NEAR],
    far: Vec<Option<KeyStart>>,
}

impl Levels {
    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// The last key of the innermost object: `None` outside of any, `Some(None)` before its first.
    #[inline]
    pub(super) fn last(&self) -> Option<Option<KeyStart>> {
        let innermost = self.depth.checked_sub(1)?;
        self.near
            .get(innermost)
            .or_else(|| self.far.last())
            .copied()
    }

    #[inline]
    pub(super) fn set_last(&mut self, key: KeyStart) {
        let innermost = self.depth.wrapping_sub(1);
        if let Some(last) = self.near.get_mut(innermost).or_else(|| self.far.last_mut()) {
            *last = Some(key);
        }
    }

    pub(super) fn push(&mut self) {
        match self.near.get_mut(self.depth) {
            Some(level) => *level = None,
            None => self.far.push(None),
        }
        self.depth += 1;
    }

    pub(super) fn pop(&mut self) {
        if self.depth > NEAR {
            self.far.pop();
        }
        self.depth = self.depth.saturating_sub(1);
    }
}

const NEAR: usize = 8;
