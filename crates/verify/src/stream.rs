//! Verifying an exported stream: one event a line.

use std::convert::Infallible;
use std::io::{self, BufRead, Read};

use countersign_event::Line;

use crate::chains::Chains;
use crate::examine::{Examination, Examined, Item, Sealing};
use crate::pipeline::{self, Batch};
use crate::report::{Finding, Place, Problem, Progress, Report};
use crate::tree::{Later, Leaves};
use crate::{Expectation, Selection};

/// Verifies a stream of lines, each the canonical form of one event.
///
/// Reads block by block, so a stream of any length needs the same memory, plus what each open
/// session needs. Fails only if reading fails; what the stream holds is in the report.
pub fn verify_stream(
    mut source: impl BufRead + Send,
    selection: &Selection,
    expectation: &Expectation,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> io::Result<Report> {
    let mut run = Run::new(selection, expectation);
    let read = pipeline::take_all(&mut run, None, progress, |spare| {
        Block::read(&mut source, spare)
    });
    if !run.has_failed() {
        read?;
    }
    Ok(run.concluded())
}

/// Verifies lines that are in memory, where they are: like [`verify_stream`], without a copy.
pub fn verify_text(
    mut text: &[u8],
    selection: &Selection,
    expectation: &Expectation,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Report {
    let mut run = Run::new(selection, expectation);
    let Ok(()) = pipeline::take_all(&mut run, None, progress, |_| {
        Ok::<_, Infallible>(Block::split_off(&mut text))
    });
    run.concluded()
}

/// The state of one verification.
pub(crate) struct Run<'e> {
    chains: Chains,
    selection: &'e Selection,
    expectation: &'e Expectation,
    contained: bool,
    /// Whether everything was read, so that what is missing can be told.
    finished: bool,
    /// Everything that was found good by itself, also outside the selection.
    seen: Progress,
    events: u64,
    bytes: u64,
    sealed: SealedCounts,
    failure: Option<Finding>,
    tree: Option<Leaves>,
}

/// What was read, for the words of the report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Stream,
    #[cfg(feature = "database")]
    Database,
}

#[derive(Default)]
struct SealedCounts {
    not_here: u64,
    closed: u64,
    erased: u64,
    opened: u64,
}

impl<'e> Run<'e> {
    pub(crate) fn new(selection: &'e Selection, expectation: &'e Expectation) -> Self {
        Self {
            chains: Chains::default(),
            selection,
            expectation,
            contained: false,
            finished: false,
            seen: Progress {
                events: 0,
                bytes: 0,
            },
            events: 0,
            bytes: 0,
            sealed: SealedCounts::default(),
            failure: None,
            tree: expectation.checkpoint.map(Leaves::new),
        }
    }

    /// Takes what is known of a batch; the first bad event ends the run. What comes back is to be done
    /// before the run is looked at again.
    pub(crate) fn take(&mut self, batch: &impl Batch, examined: Examination<'_>) -> Option<Later> {
        if self.has_failed() {
            return None;
        }
        for event in &examined.good {
            if let Err(problem) = self.follow(event) {
                self.failure = Some(self.finding(event.row, event.text, problem));
                return None;
            }
        }
        self.failure = match examined.bad {
            Some((item, problem)) => Some(self.finding(item.row(), item.text, problem)),
            None => batch.end(self.seen),
        };
        self.tree.as_mut().and_then(Leaves::work)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// What was found.
    pub(crate) fn failure(&mut self) -> Option<Finding> {
        self.failure.take()
    }

    /// The report about a stream that was read to its end, or to its first bad event.
    fn concluded(mut self) -> Report {
        let failure = match self.failure() {
            None => {
                self.finish();
                self.missing()
            }
            bad => bad,
        };
        self.report(failure, Source::Stream)
    }

    /// Everything was read.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// What must be there and is not.
    pub(crate) fn missing(&mut self) -> Option<Finding> {
        let (ends, others) = (self.chains.ends(), self.outside());
        let missing = self.expectation.check(&ends, self.contained, others);
        let problem = missing.or_else(|| self.tree.as_mut()?.check())?;
        Some(Finding {
            place: None,
            event: None,
            problem,
        })
    }

    pub(crate) fn progress(&self) -> Progress {
        self.seen
    }

    pub(crate) fn report(self, failure: Option<Finding>, source: Source) -> Report {
        Report {
            checked: self.checked(source, failure.is_some()),
            not_checked: self.not_checked(source),
            failure,
            events: self.events,
            bytes: self.bytes,
            sessions: self.chains.report(),
        }
    }

    /// How many events are not of the selection.
    fn outside(&self) -> u64 {
        self.seen.events.saturating_sub(self.events)
    }

    fn follow(&mut self, examined: &Examined<'_>) -> Result<(), Problem> {
        let bytes = examined.bytes;
        let selected = self
            .selection
            .takes(&examined.tenant_id, &examined.session_id);
        if selected {
            self.chains.follow(examined)?;
        }
        self.seen.events += 1;
        self.seen.bytes += bytes;
        if let Some(tree) = &mut self.tree {
            let everything = *self.selection == Selection::default();
            let chains = &self.chains;
            tree.push(examined.hash, || everything.then(|| chains.heads()));
        }
        if !selected {
            return Ok(());
        }
        self.contained |= self.expectation.contains == Some(examined.hash);
        self.events += 1;
        self.bytes += bytes;
        match examined.sealing {
            Sealing::None => {}
            Sealing::NotHere => self.sealed.not_here += 1,
            Sealing::Closed => self.sealed.closed += 1,
            Sealing::Erased => self.sealed.erased += 1,
            Sealing::Opened => self.sealed.opened += 1,
        }
        Ok(())
    }

    /// A stream holds one event a line, so the number of events seen is a place in it.
    fn finding(&self, row: Option<i64>, text: &[u8], problem: Problem) -> Finding {
        let place = row.map_or(Place::Line(self.seen.events + 1), Place::Row);
        let names = |line: Line<'_>| {
            (
                line.tenant_id.into_owned(),
                line.session_id.into_owned(),
                line.seq,
            )
        };
        Finding {
            place: Some(place),
            event: Line::read(text).ok().map(names),
            problem,
        }
    }

    fn checked(&self, source: Source, failed: bool) -> Vec<String> {
        if self.events == 0 {
            return Vec::new();
        }
        let until = if self.finished {
            ""
        } else {
            " before the first bad one"
        };
        let mut checked = vec![
            format!(
                "the hash of each of {} event(s){until}, recomputed",
                self.events
            ),
            "the link of each of them to the one before it, from the first of its session on"
                .to_owned(),
            "their order within each call, approval and hand-off".to_owned(),
        ];
        if source != Source::Stream {
            checked.push("the row of each of them against its content".to_owned());
            if self.finished {
                checked.push("that no row is missing before the last one".to_owned());
            }
            if !failed {
                checked.push("the pages and indexes of the database file".to_owned());
            }
            let ciphertexts = self.sealed.closed + self.sealed.erased + self.sealed.opened;
            if ciphertexts > 0 {
                checked.push(format!("the digest of {ciphertexts} ciphertext(s)"));
            }
        }
        if self.sealed.opened > 0 {
            checked.push(format!(
                "the sealed content of {} event(s) against its commitments",
                self.sealed.opened
            ));
        }
        if !failed {
            checked.extend(self.expectation.words().map(str::to_owned));
        }
        if let (false, Some(kept)) = (failed, self.expectation.checkpoint) {
            checked.push(format!(
                "the first {} event(s) of the log against the given checkpoint: none was changed, \
                 moved, added or removed",
                kept.size
            ));
            if self.tree.as_ref().is_some_and(Leaves::saw_sessions) {
                checked.push("where each session ended then, against the checkpoint".to_owned());
            }
        }
        checked
    }

    fn not_checked(&self, source: Source) -> Vec<String> {
        let mut not_checked = Vec::new();
        if !self.finished {
            not_checked.push("everything after the place where the check ended".to_owned());
            if !self.expectation.is_empty() {
                not_checked
                    .push("what was given to compare with: the check ended before".to_owned());
            }
        }
        if let Some(kept) = self.expectation.checkpoint {
            not_checked.push(format!(
                "that nothing after the first {} event(s) was cut or written anew: \
                 keep a newer checkpoint",
                kept.size
            ));
        } else if self.expectation.head.is_none() && self.expectation.count.is_none() {
            not_checked.push(
                "that no event was cut from the end: give --head or --count from your own notes"
                    .to_owned(),
            );
        }
        if self.expectation.head.is_none() && self.expectation.checkpoint.is_none() {
            not_checked.push(
                "that the whole history was not written anew: give --head from your own notes"
                    .to_owned(),
            );
        } else if self.chains.len() > 1 && self.expectation.checkpoint.is_none() {
            not_checked.push(format!(
                "that the other {} session(s) were not cut at the end or written anew: \
                 a head speaks of one session",
                self.chains.len() - 1
            ));
        }
        let whole = self.expectation.checkpoint.is_some();
        if !whole && (self.selection.tenant_id.is_none() || self.selection.session_id.is_none()) {
            not_checked.push("that no whole session was left out".to_owned());
        }
        if self.chains.len() > 1 && !whole {
            not_checked
                .push("in which order events of different sessions were recorded".to_owned());
        }
        if self.sealed.not_here > 0 {
            not_checked.push(format!(
                "the sealed content of {} event(s): an export holds commitments only",
                self.sealed.not_here
            ));
        }
        if self.sealed.closed > 0 {
            not_checked.push(format!(
                "the sealed content of {} event(s): the master key is not here",
                self.sealed.closed
            ));
        }
        if self.sealed.erased > 0 {
            not_checked.push(format!(
                "the sealed content of {} event(s): their session keys were erased",
                self.sealed.erased
            ));
        }
        let outside = self.outside();
        if outside > 0 {
            not_checked.push(format!(
                "the links and the order of {outside} event(s) outside the selection"
            ));
        }
        if source != Source::Stream {
            not_checked
                .push("the audit of approvals: `countersign approval audit` does".to_owned());
            not_checked.push(
                "what else the database holds: approvals, leases, tokens, the stored tree and its \
                 checkpoints"
                    .to_owned(),
            );
        }
        not_checked.push(
            "that the recorded clocks were right, and that tools did what they reported".to_owned(),
        );
        not_checked
    }
}

/// Whole lines of a stream.
struct Block<T> {
    text: T,
    /// Whether the next line is longer than any event.
    cut: bool,
}

impl Block<Vec<u8>> {
    /// The next block, in the memory of another.
    fn read(source: &mut impl BufRead, spare: Option<Self>) -> io::Result<Option<Self>> {
        let mut text = spare.map_or_else(Vec::new, |block| block.text);
        text.clear();
        source.by_ref().take(BLOCK as u64).read_to_end(&mut text)?;
        let last_line = memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1);
        let begun = text.len() - last_line;
        if begun > 0 {
            let rest = (MAX_LINE + 1).saturating_sub(begun);
            source
                .by_ref()
                .take(rest as u64)
                .read_until(b'\n', &mut text)?;
        }
        let cut = text.len() - last_line > MAX_LINE && text.last() != Some(&b'\n');
        if cut {
            text.truncate(last_line);
        }
        Ok((cut || !text.is_empty()).then_some(Self { text, cut }))
    }
}

impl<'t> Block<&'t [u8]> {
    /// The next block of a text, which is left with the rest.
    fn split_off(rest: &mut &'t [u8]) -> Option<Self> {
        let end = match rest.get(BLOCK..) {
            None => rest.len(),
            Some(after) => memchr::memchr(b'\n', after).map_or(rest.len(), |end| BLOCK + end + 1),
        };
        let (text, after) = rest.split_at_checked(end)?;
        *rest = after;
        let whole = text.strip_suffix(b"\n").unwrap_or(text);
        let last_line = memchr::memrchr(b'\n', whole).map_or(0, |end| end + 1);
        let cut = whole.len() - last_line > MAX_LINE;
        let text = if cut { text.get(..last_line)? } else { text };
        (cut || !text.is_empty()).then_some(Self { text, cut })
    }
}

impl<T: AsRef<[u8]> + Send> Batch for Block<T> {
    fn items(&self) -> impl Iterator<Item = Item<'_>> {
        lines(self.text.as_ref()).map(|text| Item { text, stored: None })
    }

    fn is_last(&self) -> bool {
        self.cut
    }

    fn end(&self, seen: Progress) -> Option<Finding> {
        self.cut.then(|| Finding {
            place: Some(Place::Line(seen.events + 1)),
            event: None,
            problem: Problem::TooLong { limit: MAX_LINE },
        })
    }
}

/// The lines of a block, without their ends.
fn lines(mut block: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (line, rest) = match memchr::memchr(b'\n', block) {
            Some(end) => (block.get(..end)?, block.get(end + 1..)?),
            None if block.is_empty() => return None,
            None => (block, &[][..]),
        };
        block = rest;
        Some(line)
    })
}

/// How much is examined at a time.
const BLOCK: usize = 256 << 10;
/// Longer than any event: the largest payload, every character escaped, and two ids.
const MAX_LINE: usize = 64 << 20;
