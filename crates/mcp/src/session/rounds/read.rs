//! Where a server asks by what it says, and what it asks there.

use countersign_canon::scan::Scan;
use countersign_canon::{Limits, Numbers};

use crate::frame::{self, Frame, Kind, Span};
use crate::method::{Method, Route};

use super::Unknown;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Model,
    Human,
    /// The client, from what it knows.
    Client,
}

/// A question as it stands in a result.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) of: Of,
    pub(super) whole: Span,
    pub(super) params: Option<Span>,
}

/// What cannot be understood.
pub(super) struct Unfit;

/// An object of a frame in which a server asks.
pub(super) struct Asking {
    pub(super) within: Span,
    /// The questions, by their names.
    pub(super) questions: Option<Span>,
    /// What each link says of itself that a human has to follow first.
    pub(super) links: Vec<Span>,
}

/// Whether anything is asked in a frame; what cannot be read is looked at.
pub(super) fn asks(frame: &Frame, is_task: bool) -> bool {
    asking(frame, is_task).map_or(true, |asking| !asking.is_empty())
}

/// Where a server asks in an answer, or in what it says about a task.
pub(super) fn asking(frame: &Frame, is_task: bool) -> Result<Vec<Asking>, Unfit> {
    let mut found = Vec::new();
    match frame.kind() {
        Kind::Response { result, .. } => asking_in(frame, *result, is_task, &mut found)?,
        Kind::Notification { params, .. } => {
            if let Some(whole) = params.whole {
                asking_in(frame, whole, is_task, &mut found)?;
            }
        }
        Kind::Error { error, .. } => note(&mut found, *error, None, links(frame, *error)?),
        Kind::Request { .. } => {}
    }
    Ok(found)
}

fn asking_in(
    frame: &Frame,
    whole: Span,
    is_task: bool,
    found: &mut Vec<Asking>,
) -> Result<(), Unfit> {
    for inner in asked_at(frame, whole, found)? {
        // What came of a task stands in what is said about it.
        if is_task || inner.0 == TASK {
            let _deeper = asked_at(frame, inner.1, found)?;
        }
    }
    Ok(())
}

/// Notes what is asked at one place; gives what else may ask there.
///
/// SECURITY: some clients take another key for that of the questions. What they would be asked is not understood.
fn asked_at(
    frame: &Frame,
    whole: Span,
    found: &mut Vec<Asking>,
) -> Result<Vec<(String, Span)>, Unfit> {
    if !frame.part(whole).starts_with(b"{") {
        return Ok(Vec::new());
    }
    let mut members = scanned(frame, whole, &[ASKED], &[ERROR, TASK, RESULT])?;
    let mut take = |name: &str| {
        let at = members.iter().position(|(found, _)| found == name)?;
        Some(members.swap_remove(at).1)
    };
    let questions = take(ASKED).filter(|span| frame.part(*span) != b"null");
    let links = match take(ERROR) {
        Some(error) => links(frame, error)?,
        None => None,
    };
    note(found, whole, questions, links);
    Ok(members)
}

fn note(found: &mut Vec<Asking>, within: Span, questions: Option<Span>, links: Option<Vec<Span>>) {
    if questions.is_some() || links.is_some() {
        found.push(Asking {
            within,
            questions,
            links: links.unwrap_or_default(),
        });
    }
}

/// Where an error says that a human has to follow links first. `None` if there are none.
///
/// SECURITY: readers differ in what they take for the code of such errors, so it does not matter here.
fn links(frame: &Frame, error: Span) -> Result<Option<Vec<Span>>, Unfit> {
    let mut at = error;
    for key in ["data", "elicitations"] {
        if !frame.part(at).starts_with(b"{") {
            return Ok(None);
        }
        match scanned(frame, at, &[key], &[])?.into_iter().next() {
            Some((_, span)) => at = span,
            None => return Ok(None),
        }
    }
    elements(frame, at).map(Some)
}

pub(super) fn found_in(frame: &Frame, asked: Span, unknown: Unknown) -> Result<Vec<Found>, Unfit> {
    let found = members(frame, asked)?;
    if found.len() > MOST_AT_ONCE {
        return Err(Unfit);
    }
    let found = found.into_iter().map(|(name, whole)| {
        if !frame.part(whole).starts_with(b"{") {
            return Err(Unfit);
        }
        let parts = scanned(frame, whole, &["method", "params"], &[])?;
        let part = |key: &str| {
            let mut parts = parts.iter();
            parts.find_map(|(name, span)| (name == key).then_some(*span))
        };
        let method = frame.text(part("method")).ok_or(Unfit)?;
        let method = Method::of(&method);
        let of = match method.from_server() {
            Route::Sample => Of::Model,
            Route::Elicit => Of::Human,
            Route::Pass if method == Method::RootsList => Of::Client,
            Route::Unknown if unknown == Unknown::Pass => Of::Client,
            _ => return Err(Unfit),
        };
        let params = part("params");
        let is_fit = params.is_none_or(|params| frame.part(params).starts_with(b"{"));
        is_fit
            .then_some(Found {
                name,
                of,
                whole,
                params,
            })
            .ok_or(Unfit)
    });
    found.collect()
}

/// Who answers so, where nobody remembers the question: a human, unless it looks like something else.
pub(super) fn shape(frame: &Frame, answer: Span) -> Of {
    let has = |key: &str| frame.member(Some(answer), key).is_some();
    match () {
        () if has("action") => Of::Human,
        () if has("content") => Of::Model,
        () if has("roots") => Of::Client,
        () => Of::Human,
    }
}

pub(super) fn members(frame: &Frame, of: Span) -> Result<Vec<(String, Span)>, Unfit> {
    scanned(frame, of, &[], &[])
}

/// These members of an object, or all of them; none may pose as one of the first.
fn scanned(
    frame: &Frame,
    of: Span,
    known: &[&'static str],
    others: &[&'static str],
) -> Result<Vec<(String, Span)>, Unfit> {
    let mut scan = Scan::new(frame.part(of), &LIMITS).map_err(|_| Unfit)?;
    let (mut found, mut poses) = (Vec::new(), false);
    let scanned = scan.object(|scan, key| {
        poses |= frame::poses(&key, known);
        let place = scan.value()?;
        let place = Span::from(of.start + place.start..of.start + place.end);
        if known.is_empty() || known.contains(&&*key) || others.contains(&&*key) {
            found.push((key.into_owned(), place));
        }
        Ok(())
    });
    match scanned.is_ok() && !poses {
        true => Ok(found),
        false => Err(Unfit),
    }
}

/// The objects of a list.
fn elements(frame: &Frame, of: Span) -> Result<Vec<Span>, Unfit> {
    let mut scan = Scan::new(frame.part(of), &LIMITS).map_err(|_| Unfit)?;
    let mut found = Vec::new();
    let scanned = scan.array(|scan| {
        let place = scan.value()?;
        found.push(Span::from(of.start + place.start..of.start + place.end));
        Ok(())
    });
    let is_object = |span: &Span| frame.part(*span).starts_with(b"{");
    match scanned.is_ok() && found.len() <= MOST_AT_ONCE && found.iter().all(is_object) {
        true => Ok(found),
        false => Err(Unfit),
    }
}

const ASKED: &str = "inputRequests";
const ERROR: &str = "error";
const RESULT: &str = "result";
const TASK: &str = "task";
/// So many things one result may ask.
const MOST_AT_ONCE: usize = 64;
/// The frame was read before, within narrower limits.
const LIMITS: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 512,
    numbers: Numbers::Exact,
};
