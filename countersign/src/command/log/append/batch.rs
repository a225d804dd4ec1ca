//! Many events at once, one a line.

use std::io::BufRead;
use std::iter::repeat_with;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use countersign_canon::{Json, Limits};
use countersign_event::Scope;
use countersign_store::{At, Draft, Pending, Recorded, Store};

use super::{draft, parse_type, print};
use crate::errors::{Code, Failure};
use crate::exit::Exit;
use crate::input;
use crate::output::Format;

/// Appends the lines in their order, and ends at the first that cannot be used. Lines that are there at
/// the same time share commits.
pub(super) fn append(
    source: Box<dyn BufRead + Send>,
    scope: &Scope,
    store: &Store,
    format: Format,
) -> Result<Exit, Failure> {
    let lines = read(source);
    let mut number = 0;
    // Whoever writes slowly hears of each line as it is recorded: nothing waits for lines to come.
    while let Ok(first) = lines.recv() {
        let more = lines.try_iter().take(MOST - 1);
        let mut drafts = Vec::new();
        let mut refused = None;
        for line in [first].into_iter().chain(more) {
            match line.and_then(|line| read_draft(&line, scope)) {
                Ok(draft) => drafts.push(draft),
                Err(failure) => {
                    let line = number + drafts.len() as u64 + 1;
                    refused = Some(failure.at_line(line));
                    break;
                }
            }
        }
        for recorded in together(drafts, store) {
            number += 1;
            let recorded = recorded.map_err(|failure| failure.at_line(number))?;
            print(&recorded, format).map_err(Failure::loud)?;
        }
        if let Some(failure) = refused {
            return Err(failure);
        }
    }
    Ok(Exit::Done)
}

/// What became of each; whoever hears of one that was not recorded asks no further.
fn together(drafts: Vec<Draft>, store: &Store) -> impl Iterator<Item = Result<Recorded, Failure>> {
    let mut sent = Vec::new();
    let mut stopped = None;
    let mut place = At::Next;
    for draft in &drafts {
        // INVARIANT: right after the one before it or nowhere, so none overtakes one that failed.
        match store.append(draft.clone(), place) {
            Ok(pending) => {
                place = At::Head(pending.head());
                sent.push(pending);
            }
            Err(error) => {
                stopped = Some(error);
                break;
            }
        }
    }
    // All of them are answered before one is tried again.
    let answers: Vec<_> = sent.into_iter().map(Pending::wait).collect();
    let answers = answers.into_iter().chain(stopped.map(Err)).map(Some);
    let answers = answers.chain(repeat_with(|| None));
    drafts
        .into_iter()
        .zip(answers)
        .map(|(draft, answer)| match answer {
            None => Ok(store.record(draft)?),
            // Another process was faster, and so it was with everything that was to follow.
            Some(Err(error)) if error.is_retryable() => Ok(store.record(draft)?),
            Some(answer) => Ok(answer?),
        })
}

/// Reads ahead, no further than one commit takes.
fn read(mut source: Box<dyn BufRead + Send>) -> Receiver<Result<Vec<u8>, Failure>> {
    let (sender, lines) = sync_channel(MOST);
    thread::spawn(move || {
        let next = || input::next_line(&mut *source, Limits::event().max_bytes).transpose();
        for line in std::iter::from_fn(next) {
            let ended = line.is_err();
            if sender.send(line).is_err() || ended {
                return;
            }
        }
    });
    lines
}

fn read_draft(line: &[u8], scope: &Scope) -> Result<Draft, Failure> {
    let limits = Limits {
        max_depth: Limits::event().max_depth + 1,
        ..Limits::event()
    };
    let mut members = Json::admit(line, &limits)?
        .into_object()
        .ok_or_else(|| Failure::new(Code::Json, "expected an object"))?;
    let event_type = members
        .remove("type")
        .and_then(Json::into_string)
        .unwrap_or_default();
    let payload = members
        .remove("payload")
        .ok_or_else(|| Failure::new(Code::Member, "`payload` is missing"))?;
    let ts_unix_ms = match members.remove("ts_unix_ms") {
        None => None,
        Some(ts) => Some(ts.as_u64().ok_or_else(|| {
            Failure::new(Code::Moment, "`ts_unix_ms` is not a time in milliseconds")
        })?),
    };
    if let Some((name, _)) = members.iter().next() {
        return Err(Failure::new(
            Code::Member,
            format!("unknown member `{name}`"),
        ));
    }
    draft(parse_type(&event_type)?, payload, ts_unix_ms, scope)
}

/// How many events are on their way at the same time.
const MOST: usize = 256;
