//! The events of a pack: each by itself, in its session, and in the log.

use std::collections::{BTreeMap, HashMap};
use std::thread;

use countersign_canon::{Hash, Json};
use countersign_event::{Head, Line, Order};
use countersign_pack::{DisclosedOpening, Selected, member};
use countersign_tlog::{batch, hash, session_entry};

use super::members::{Log, Members, form};
use super::{PackProblem, PackReport};

/// The events of a pack, all of them good.
pub(super) struct Events<'a> {
    pub(super) lines: Vec<Line<'a>>,
    by_hash: HashMap<Hash, usize>,
}

/// Disclosed values by event and place.
pub(super) type Opened = HashMap<(Hash, String), Json>;

/// Where a session ended at the checkpoint.
struct SessionHead {
    index: u64,
    count: u64,
    head: Hash,
}

impl<'a> Events<'a> {
    pub(super) fn read(
        members: &Members<'a>,
        log: &Log,
        report: &mut PackReport,
    ) -> Result<Self, PackProblem> {
        let texts = members.lines(member::EVENTS)?;
        let lines = examine(&texts)?;
        let count = lines.len() as u64;
        if count != members.statement.events {
            return Err(PackProblem::Count {
                stated: members.statement.events,
                found: count,
            });
        }
        report.events = count;
        report.check(format!("the hash of each of {count} event(s), recomputed"));
        let inclusion = members.json(member::INCLUSION)?;
        check_inclusion(&lines, &inclusion, log)?;
        report.check("that each of them is in the log at its stated place, up to the signed root");
        let by_hash = (0..)
            .zip(&lines)
            .map(|(at, line)| (line.hash, at))
            .collect();
        let events = Self { lines, by_hash };
        events.check_sessions(members, log, report)?;
        Ok(events)
    }

    /// The event with this hash.
    pub(super) fn get(&self, hash: &Hash) -> Option<&Line<'a>> {
        self.lines.get(*self.by_hash.get(hash)?)
    }

    /// Disclosed values, each of them the one that was committed to.
    pub(super) fn openings(
        &self,
        members: &Members<'_>,
        report: &mut PackReport,
    ) -> Result<Opened, PackProblem> {
        let mut opened = Opened::new();
        for (number, line) in (1..).zip(members.lines(member::OPENINGS)?) {
            let refuse = |error| PackProblem::Opening {
                line: number,
                error,
            };
            let disclosed = DisclosedOpening::read(line).map_err(refuse)?;
            let DisclosedOpening {
                event,
                place,
                opening,
            } = disclosed;
            let committed = self.get(&event).and_then(|line| {
                let seal = line.seal.as_ref()?.read().ok()?;
                let found = seal
                    .commitments
                    .into_iter()
                    .find(|(name, _)| *name == place);
                found.map(|(_, commitment)| commitment)
            });
            if committed.is_none() || opening.commitment().ok() != committed {
                return Err(PackProblem::Commitment { event, place });
            }
            opened.insert((event, place), opening.value);
        }
        if !opened.is_empty() {
            report.check(format!(
                "{} disclosed value(s) against their commitments",
                opened.len()
            ));
        }
        let sealed = self.lines.iter().filter_map(|line| line.seal.as_ref());
        let sealed: usize = sealed
            .filter_map(|seal| seal.read().ok())
            .map(|seal| seal.commitments.len())
            .sum();
        if sealed > opened.len() {
            report.leave(format!(
                "{} sealed value(s) that the pack does not disclose",
                sealed - opened.len()
            ));
        }
        Ok(opened)
    }

    fn check_sessions(
        &self,
        members: &Members<'_>,
        log: &Log,
        report: &mut PackReport,
    ) -> Result<(), PackProblem> {
        // INVARIANT: a pack without sessions would have nothing that could be incomplete.
        if self.lines.is_empty() {
            return Err(PackProblem::Count {
                stated: members.statement.events,
                found: 0,
            });
        }
        let heads = heads(&members.json(member::SESSIONS)?, log, report)?;
        let selected = &members.statement.selected;
        let mut chains: BTreeMap<(&str, &str), Chain<'_, 'a>> = BTreeMap::new();
        for line in &self.lines {
            if !belongs(line, selected) {
                return Err(PackProblem::NotSelected(line.hash));
            }
            let name = (line.tenant_id.as_ref(), line.session_id.as_ref());
            chains.entry(name).or_default().push(line)?;
        }
        let is_whole = !matches!(selected, Selected::Range { .. });
        for ((tenant, session), chain) in &chains {
            let head = heads.get(&((*tenant).to_owned(), (*session).to_owned()));
            let head = head.ok_or(PackProblem::Sessions)?;
            chain.check(session, head, is_whole)?;
        }
        if chains.len() != heads.len() {
            return Err(PackProblem::Sessions);
        }
        report.check("the links between events that follow each other in their sessions");
        match selected {
            Selected::Range {
                since_unix_ms: None,
                until_unix_ms: None,
            } => self.check_all(log, report)?,
            Selected::Range { .. } => {
                let missing = chains.values().map(Chain::missing).sum();
                leave_range(missing, report);
            }
            // What the checkpoint does not say cannot be held against the pack.
            _ if log.says.is_none() => {
                report.check(
                    "that the session has no gap from its first event on, each in its order",
                );
            }
            _ => report.check(
                "that the session is whole: from its first event to where it ended at the \
                 checkpoint, each in its order",
            ),
        }
        report.leave("what happened after the checkpoint");
        Ok(())
    }

    /// A range without bounds is the whole log.
    fn check_all(&self, log: &Log, report: &mut PackReport) -> Result<(), PackProblem> {
        let (stated, found) = (log.checkpoint.size, self.lines.len() as u64);
        if stated != found {
            return Err(PackProblem::NotTheLog { stated, found });
        }
        report.check("that the pack holds every event of the log up to its checkpoint");
        Ok(())
    }
}

/// The events of one session, as far as the pack has them.
#[derive(Default)]
struct Chain<'e, 'a> {
    events: Vec<&'e Line<'a>>,
}

impl<'e, 'a> Chain<'e, 'a> {
    fn push(&mut self, line: &'e Line<'a>) -> Result<(), PackProblem> {
        if let Some(last) = self.events.last() {
            let head = Head::after(last.seq, last.hash);
            // A time range may leave events out; those that follow each other must be linked.
            if line.seq <= last.seq + 1 {
                head.accepts(line.seq, line.prev_hash.as_ref())
                    .map_err(|error| PackProblem::Link {
                        event: line.hash,
                        error,
                    })?;
            }
        }
        self.events.push(line);
        Ok(())
    }

    /// How many events of the session are missing between those that are here.
    fn missing(&self) -> u64 {
        let ends = self.events.first().zip(self.events.last());
        let span = ends.map_or(0, |(first, last)| last.seq + 1 - first.seq);
        span.saturating_sub(self.events.len() as u64)
    }

    fn check(&self, session: &str, head: &SessionHead, is_whole: bool) -> Result<(), PackProblem> {
        let incomplete = || PackProblem::Incomplete {
            session: session.to_owned(),
            stated: head.count,
            found: self.events.len() as u64,
        };
        let last = self.events.last().ok_or_else(incomplete)?;
        let is_last = last.seq + 1 == head.count;
        if last.seq >= head.count || (is_last && last.hash != head.head) {
            return Err(incomplete());
        }
        if !is_whole {
            return Ok(());
        }
        if !is_last || self.events.len() as u64 != head.count {
            return Err(incomplete());
        }
        let (mut chain, mut order) = (Head::GENESIS, Order::default());
        for line in &self.events {
            let event = line.hash;
            chain
                .accepts(line.seq, line.prev_hash.as_ref())
                .map_err(|error| PackProblem::Link { event, error })?;
            order
                .admit(line.event_type, &line.refs)
                .map_err(|error| PackProblem::Order { event, error })?;
            chain = Head::after(line.seq, line.hash);
        }
        Ok(())
    }
}

/// What the events of a time range cannot show.
fn leave_range(missing: u64, report: &mut PackReport) {
    report.leave("what happened in these sessions before and after the time of the pack");
    report.leave("that no event of that time was left out");
    // Times are those of clocks, so what stands between two events of a range may have another one.
    match missing {
        0 => report
            .check("that no event is missing between the first and the last of each session here"),
        missing => report.leave(format!(
            "{missing} event(s) between those of the pack, in the same sessions: they are not in it"
        )),
    }
}

fn belongs(line: &Line<'_>, selected: &Selected) -> bool {
    match selected {
        Selected::Session { tenant, session }
        | Selected::Approval {
            tenant, session, ..
        } => line.tenant_id == tenant.as_str() && line.session_id == session.as_str(),
        Selected::Range {
            since_unix_ms,
            until_unix_ms,
        } => {
            since_unix_ms.is_none_or(|since| line.ts_unix_ms >= since)
                && until_unix_ms.is_none_or(|until| line.ts_unix_ms < until)
        }
    }
}

/// Reads the lines and recomputes their hashes, on all cores.
fn examine<'a>(texts: &[&'a [u8]]) -> Result<Vec<Line<'a>>, PackProblem> {
    let share = texts.len().div_ceil(cores()).max(LEAST_SHARE);
    let parts: Vec<Result<Vec<Line<'a>>, PackProblem>> = thread::scope(|scope| {
        let shares = (0..).zip(texts.chunks(share));
        let workers: Vec<_> = shares
            .map(|(number, texts)| scope.spawn(move || examine_share(number * share, texts)))
            .collect();
        workers
            .into_iter()
            .map(|worker| {
                let ended = worker.join();
                ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let mut lines = Vec::with_capacity(texts.len());
    for part in parts {
        lines.extend(part?);
    }
    Ok(lines)
}

fn examine_share<'a>(first: usize, texts: &[&'a [u8]]) -> Result<Vec<Line<'a>>, PackProblem> {
    let mut lines = Vec::with_capacity(texts.len());
    for (number, text) in (first as u64 + 1..).zip(texts) {
        let line = Line::read(text).map_err(|error| PackProblem::NotAnEvent {
            line: number,
            error,
        })?;
        if line.computed_hash() != line.hash {
            return Err(PackProblem::Hash(line.hash));
        }
        lines.push(line);
    }
    Ok(lines)
}

fn check_inclusion(lines: &[Line<'_>], proof: &Json, log: &Log) -> Result<(), PackProblem> {
    let (indices, hashes) = (
        numbers(proof, "indices").ok_or_else(|| form(member::INCLUSION, "`indices`"))?,
        hashes(proof).ok_or_else(|| form(member::INCLUSION, "`hashes`"))?,
    );
    if indices.len() != lines.len() {
        return Err(PackProblem::Inclusion);
    }
    let leaves: Vec<batch::Leaf> = indices
        .into_iter()
        .zip(lines)
        .map(|(index, line)| (index, hash::leaf_of_hash(&line.hash)))
        .collect();
    let root = batch::root(&leaves, log.checkpoint.size, &hashes, cores());
    match root == Some(log.checkpoint.root) {
        true => Ok(()),
        false => Err(PackProblem::Inclusion),
    }
}

/// The heads of the sessions, proven from what the checkpoint says of them.
fn heads(
    sessions: &Json,
    log: &Log,
    report: &mut PackReport,
) -> Result<BTreeMap<(String, String), SessionHead>, PackProblem> {
    let bad = |what: &str| form(member::SESSIONS, format!("`{what}`"));
    let listed = sessions.get("heads").and_then(Json::as_array);
    let mut heads = BTreeMap::new();
    let mut leaves = Vec::new();
    for one in listed.ok_or_else(|| bad("heads"))? {
        let text = |name| one.get(name).and_then(Json::as_str).unwrap_or_default();
        let number = |name| {
            one.get(name)
                .and_then(Json::as_u64)
                .ok_or_else(|| bad(name))
        };
        let head = SessionHead {
            index: number("index")?,
            count: number("count")?,
            head: text("head").parse().map_err(|_| bad("head"))?,
        };
        let (tenant, session) = (text("tenant_id"), text("session_id"));
        let entry = session_entry(tenant, session, head.count, &head.head);
        leaves.push((head.index, hash::leaf(&entry)));
        heads.insert((tenant.to_owned(), session.to_owned()), head);
    }
    let proof = hashes(sessions).ok_or_else(|| bad("hashes"))?;
    let Some(says) = log.says else {
        report.leave("where the sessions ended: the checkpoint does not say");
        return Ok(heads);
    };
    match batch::root(&leaves, says.sessions.count, &proof, 1) == Some(says.sessions.hash) {
        true => Ok(heads),
        false => Err(PackProblem::Sessions),
    }
}

fn numbers(json: &Json, name: &str) -> Option<Vec<u64>> {
    json.get(name)?
        .as_array()?
        .iter()
        .map(Json::as_u64)
        .collect()
}

fn hashes(json: &Json) -> Option<Vec<Hash>> {
    let hashes = json.get("hashes")?.as_array()?.iter();
    hashes.map(|hash| hash.as_str()?.parse().ok()).collect()
}

pub(super) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Below this many events another thread is not worth its start.
const LEAST_SHARE: usize = 512;
