//! Loops: whether the newest call repeats what was done before.
//!
//! Three rules, tried in this order: the same call again, a sequence of tools twice in a row, and a
//! tool whose outcomes have stopped changing. Each is about the newest call, so an agent that
//! does something else next is free again.

use std::collections::BTreeSet;
use std::fmt;

use crate::calls::{Call, RecentCalls};
use crate::progress::{Progress, Run};

/// What counts as a loop. A number of 0 switches its rule off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopRules {
    /// The same tool with the same arguments this often, the newest 32 calls being looked at.
    pub identical_calls: u32,
    /// The same outcome of one tool this often in a row, nothing else having changed. The next call
    /// of that tool is the loop.
    pub no_progress_steps: u32,
    /// The shortest sequence of tools that must not come twice in a row.
    pub sequence_min: usize,
    /// The longest; more than 16 is 16, because both have to be among the newest 32 calls.
    pub sequence_max: usize,
    /// Tools that are meant to be called again and again, such as those that ask whether a job is
    /// done. Their calls are not looked at.
    pub exempt_tools: BTreeSet<String>,
}

/// A loop, and the events that make it one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopViolation {
    /// The rule.
    pub kind: LoopKind,
    /// The repeated calls, or for [`LoopKind::NoProgress`] the outcomes that were the same; in
    /// order, the newest 32 at most.
    pub cycle_seqs: Vec<u64>,
}

/// The rule that found a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoopKind {
    /// The same tool with the same arguments.
    IdenticalCall,
    /// Outcomes that stay the same.
    NoProgress,
    /// A sequence of tools twice in a row.
    RepeatingSequence,
}

impl Default for LoopRules {
    fn default() -> Self {
        Self {
            identical_calls: 2,
            no_progress_steps: 3,
            sequence_min: 3,
            sequence_max: 7,
            exempt_tools: BTreeSet::new(),
        }
    }
}

impl LoopKind {
    /// The name in policies and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IdenticalCall => "LOOP_IDENTICAL_CALL",
            Self::NoProgress => "LOOP_NO_PROGRESS",
            Self::RepeatingSequence => "LOOP_REPEATING_SEQUENCE",
        }
    }
}

impl fmt::Display for LoopKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The loop that the newest call makes; `next` is the newest if it is given.
pub(crate) fn find(
    next: Option<&Call>,
    recent: &RecentCalls,
    progress: &Progress,
    rules: &LoopRules,
) -> Option<LoopViolation> {
    let calls: Vec<&Call> = recent.as_slice().iter().chain(next).collect();
    let calls = calls.get(calls.len().saturating_sub(RecentCalls::MAX)..)?;
    let newest = calls.last().filter(|call| !rules.exempts(call));
    let by_call = newest.and_then(|newest| {
        let calls = calls.iter().copied().filter(|call| !rules.exempts(call));
        let calls: Vec<&Call> = calls.collect();
        identical_call(newest, &calls, rules)
            .or_else(|| repeating_sequence(&calls, rules))
            .or_else(|| same_outcomes(progress.tool_run(&newest.tool_name)?, rules))
    });
    // A model that says the same again and again; it stops doing so when it calls a tool.
    by_call.or_else(|| match next {
        Some(_) => None,
        None => same_outcomes(progress.model_run()?, rules),
    })
}

impl LoopRules {
    fn exempts(&self, call: &Call) -> bool {
        call.tool_name
            .verbatim()
            .is_some_and(|tool| self.exempt_tools.contains(tool))
    }
}

fn identical_call(newest: &Call, calls: &[&Call], rules: &LoopRules) -> Option<LoopViolation> {
    let same = calls.iter().filter(|call| call.is_same(newest));
    let cycle_seqs: Vec<u64> = same.map(|call| call.seq).collect();
    let reached =
        rules.identical_calls > 0 && cycle_seqs.len() as u64 >= rules.identical_calls.into();
    reached.then_some(LoopViolation {
        kind: LoopKind::IdenticalCall,
        cycle_seqs,
    })
}

fn repeating_sequence(calls: &[&Call], rules: &LoopRules) -> Option<LoopViolation> {
    let lengths = rules.sequence_min..=rules.sequence_max.min(RecentCalls::MAX / 2);
    let cycle = lengths.filter(|length| *length > 0).find_map(|length| {
        let (before, again) = calls.split_at_checked(calls.len().checked_sub(length)?)?;
        let before = before.get(before.len().checked_sub(length)?..)?;
        is_repetition(before, again).then_some([before, again])
    })?;
    let cycle_seqs = cycle.into_iter().flatten().map(|call| call.seq).collect();
    Some(LoopViolation {
        kind: LoopKind::RepeatingSequence,
        cycle_seqs,
    })
}

/// The same tools in the same order. One tool many times is work on many things, unless its
/// arguments are repeated too.
fn is_repetition(before: &[&Call], again: &[&Call]) -> bool {
    let mut pairs = before.iter().zip(again);
    let same_tools = pairs.clone().all(|(a, b)| a.tool_name == b.tool_name);
    let several_tools = again.windows(2).any(|two| match two {
        [one, other] => one.tool_name != other.tool_name,
        _ => false,
    });
    same_tools && (several_tools || pairs.all(|(a, b)| a.args == b.args))
}

fn same_outcomes(run: &Run, rules: &LoopRules) -> Option<LoopViolation> {
    let reached = rules.no_progress_steps > 0 && run.steps >= rules.no_progress_steps.into();
    reached.then(|| LoopViolation {
        kind: LoopKind::NoProgress,
        cycle_seqs: run.seqs.as_slice().to_vec(),
    })
}
