//! Progress: whether outcomes still differ from one another.
//!
//! A run is a row of outcomes that were all the same while nothing else in the snapshot changed. Tool
//! outcomes are compared with tool outcomes, whatever the model said between them; model outcomes
//! with one another as long as no tool is called. What is not known does not count as a repetition:
//! a result without content or a denial without a code ends the run.

use countersign_canon::{Hash, Json};

use crate::Name;
use crate::calls::Call;
use crate::form::{Form, Malformed, read_list, record, write_list};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The last event that changed the state apart from counters, ids and calls.
    changed_at: Option<u64>,
    /// Tool outcomes that are all the same.
    tool: Option<Run>,
    /// Model outcomes that are all the same.
    model: Option<Run>,
}

/// Outcomes that were all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    outcome: Hash,
    /// How many.
    pub(crate) steps: u64,
    /// The newest of their events, oldest first.
    pub(crate) seqs: Seqs,
    /// The tool they came from; `None` for a model.
    tool_name: Option<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seqs(Vec<u64>);

/// How a tool call came out, as far as it is known.
pub(crate) enum Outcome {
    /// It gave this content. The same answer to other arguments is another outcome: a tool that
    /// writes says `ok` each time.
    Content(Hash),
    /// It failed with this content. The same error is the same outcome whatever the arguments.
    Error(Hash),
    /// It was denied for this reason.
    Denied(Hash),
}

impl Progress {
    /// The run of tool outcomes, if it is one of this tool.
    pub(crate) fn tool_run(&self, tool_name: &Name) -> Option<&Run> {
        let run = self.tool.as_ref()?;
        (run.tool_name.as_ref() == Some(tool_name)).then_some(run)
    }

    pub(crate) fn model_run(&self) -> Option<&Run> {
        self.model.as_ref()
    }

    /// Something else than counters, ids and calls is different from now on.
    pub(crate) fn changed(&mut self, seq: u64) {
        self.changed_at = Some(seq);
    }

    pub(crate) fn tool_proposed(&mut self) {
        self.model = None;
    }

    pub(crate) fn tool_finished(&mut self, seq: u64, call: Option<Call>, outcome: Option<Outcome>) {
        let (Some(call), Some(outcome)) = (call, outcome) else {
            self.tool = None;
            return;
        };
        let tool = Hash::of(call.tool_name.as_str().as_bytes());
        let outcome = match &outcome {
            Outcome::Content(content) => self.mark(CONTENT, &[&tool, &call.args, content]),
            Outcome::Error(content) => self.mark(ERROR, &[&tool, content]),
            Outcome::Denied(reason) => self.mark(DENIED, &[&tool, reason]),
        };
        match &mut self.tool {
            // Proposed before the last outcome was known, so the agent is not repeating itself.
            Some(run) if run.outcome == outcome && call.seq <= run.seqs.last() => {}
            Some(run) if run.outcome == outcome => run.extend(seq),
            run => *run = Some(Run::begin(outcome, Some(call.tool_name), seq)),
        }
    }

    pub(crate) fn model_finished(&mut self, seq: u64, content: Option<Hash>) {
        let outcome = content.map(|content| self.mark(MODEL, &[&content]));
        match (&mut self.model, outcome) {
            (Some(run), Some(outcome)) if run.outcome == outcome => run.extend(seq),
            (run, outcome) => *run = outcome.map(|outcome| Run::begin(outcome, None, seq)),
        }
    }

    /// An outcome together with the state it was reached in.
    fn mark(&self, kind: &[u8], parts: &[&Hash]) -> Hash {
        let state = self.changed_at.unwrap_or(u64::MAX).to_be_bytes();
        // INVARIANT: the number of parts follows from the kind, and each has a fixed width.
        let parts = parts.iter().map(|part| part.as_bytes().as_slice());
        let all: Vec<&[u8]> = [kind, &state].into_iter().chain(parts).collect();
        Hash::of_parts(&all)
    }
}

impl Run {
    fn begin(outcome: Hash, tool_name: Option<Name>, seq: u64) -> Self {
        Self {
            outcome,
            steps: 1,
            seqs: Seqs(vec![seq]),
            tool_name,
        }
    }

    fn extend(&mut self, seq: u64) {
        self.steps += 1;
        self.seqs.push(seq);
    }
}

impl Seqs {
    const MAX: usize = 32;

    pub(crate) fn as_slice(&self) -> &[u64] {
        &self.0
    }

    fn last(&self) -> u64 {
        self.0.last().copied().unwrap_or_default()
    }

    fn push(&mut self, seq: u64) {
        if self.0.len() >= Self::MAX {
            self.0.remove(0);
        }
        self.0.push(seq);
    }
}

record!(Progress {
    changed_at,
    model,
    tool
});
record!(Run {
    outcome,
    seqs,
    steps,
    tool_name
});

impl Form for Seqs {
    fn write(&self, out: &mut Vec<u8>) {
        write_list(self.0.iter(), out, u64::write);
    }

    fn read(json: &Json) -> Result<Self, Malformed> {
        read_list(json, Self::MAX, u64::read).map(Self)
    }
}

const CONTENT: &[u8] = b"countersign/outcome/content/v1\0";
const ERROR: &[u8] = b"countersign/outcome/error/v1\0";
const DENIED: &[u8] = b"countersign/outcome/denied/v1\0";
const MODEL: &[u8] = b"countersign/outcome/model/v1\0";
