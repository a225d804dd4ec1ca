//! Answers that the built-in rules have given before.
//!
//! An agent asks nearly the same again and again: the same tool, the same hosts, counters that grow. The rules
//! compare names, and see of a counter only whether it has reached its limit. While all of that is the same, so
//! is their answer.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use countersign_canon::Digest;

use crate::Verdict;
use crate::facts::{Facts, State};
use crate::manifest::{Budgets, Manifest};

/// What the rules said: which of them, and the verdict.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) rule: String,
    pub(super) verdict: Verdict,
}

/// The answers, each with the question that it was given to.
#[derive(Default)]
pub(super) struct Memory {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    answers: HashMap<Digest, Answer>,
    recalled: u64,
    is_distrusted: bool,
}

/// What is known about a question.
pub(super) enum Recollection {
    /// Nothing.
    None,
    /// This was the answer.
    Certain(Answer),
    /// This was the answer, and it is time to ask again.
    Doubted(Answer),
}

impl Memory {
    pub(super) fn recall(&self, question: &Digest) -> Recollection {
        let mut known = self.known();
        let Some(answer) = known.answers.get(question).cloned() else {
            return Recollection::None;
        };
        known.recalled += 1;
        match known.recalled.is_multiple_of(SAMPLE) {
            true => Recollection::Doubted(answer),
            false => Recollection::Certain(answer),
        }
    }

    pub(super) fn keep(&self, question: Digest, answer: Answer) {
        let mut known = self.known();
        if known.is_distrusted {
            return;
        }
        if known.answers.len() >= MOST {
            known.answers.clear();
        }
        known.answers.insert(question, answer);
    }

    /// An answer was not what it had been: from now on the rules are asked about everything.
    pub(super) fn distrust(&self) {
        let mut known = self.known();
        known.answers.clear();
        known.is_distrusted = true;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All that an answer of the built-in rules depends on beside the manifest.
///
/// SECURITY: as a digest, so that nobody finds two questions with the same one, and so that what is kept has a
/// size. Every fact is named here, or the compiler complains.
pub(super) fn question(facts: &Facts, manifest: Option<&Manifest>) -> Digest {
    let Facts {
        tool,
        names,
        network,
        hosts,
        hosts_clear,
        hosts_doubt: _,
        exec,
        programs,
        command_clear,
        command_doubt: _,
        paths_outside,
        uncleared,
        sink,
        taint_holds,
        side_effect,
        doubt: _,
        irreversible: _,
        approval: _,
        state,
    } = facts;
    let State {
        steps: _,
        tool_calls: _,
        model_calls: _,
        wall_time_ms: _,
        loop_violation,
        tainted,
        sanitized,
        labels: _,
    } = state;
    let mut text = Text(Vec::with_capacity(256));
    (tool, names, network, hosts, hosts_clear).hash(&mut text);
    (exec, programs, command_clear, paths_outside, uncleared).hash(&mut text);
    (sink, taint_holds, side_effect).hash(&mut text);
    (loop_violation, tainted, sanitized).hash(&mut text);
    reached(state, manifest).hash(&mut text);
    Digest::of(&text.0)
}

/// Which limits the counters have reached; without a manifest there are none.
fn reached(state: &State, manifest: Option<&Manifest>) -> [bool; 4] {
    let Some(manifest) = manifest else {
        return [false; 4];
    };
    let Budgets {
        max_steps,
        max_tool_calls,
        max_model_calls,
        max_wall_time_ms,
        ..
    } = manifest.permissions().budgets;
    [
        state.steps >= max_steps,
        state.tool_calls >= max_tool_calls,
        max_model_calls.is_some_and(|limit| state.model_calls >= limit),
        state.wall_time_ms >= max_wall_time_ms,
    ]
}

/// Everything that is hashed, one after the other. Texts and lists tell where they end.
struct Text(Vec<u8>);

impl Hasher for Text {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.len() as u64
    }
}

/// One of this many recollections is compared with what the rules say now.
const SAMPLE: u64 = 256;
/// The most answers that are kept.
const MOST: usize = 4096;

#[cfg(test)]
mod tests;
