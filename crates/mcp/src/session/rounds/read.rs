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

/// Where a server may ask in an answer, or in what it says about a task.
pub(super) fn spans(frame: &Frame, is_task: bool) -> Vec<Span> {
    let whole = match frame.kind() {
        Kind::Response { result, .. } => Some(*result),
        Kind::Notification { params, .. } => params.whole,
        Kind::Request { .. } | Kind::Error { .. } => None,
    };
    let inside = whole.filter(|_| is_task);
    let inside = inside.and_then(|whole| frame.member(Some(whole), "result"));
    whole.into_iter().chain(inside).collect()
}

/// Whether anything is asked in a frame; what cannot be read is looked at.
pub(super) fn asks(frame: &Frame, is_task: bool) -> bool {
    let asked = |span| asked_in(frame, span).map_or(true, |asked| asked.is_some());
    links(frame).map_or(true, |links| links.is_some())
        || spans(frame, is_task).into_iter().any(asked)
}

/// Where an error says that a human has to follow links first: what each says of itself. `None` if there are none.
///
/// SECURITY: readers differ in what they take for the code of such errors, so it does not matter here.
pub(super) fn links(frame: &Frame) -> Result<Option<Vec<Span>>, Unfit> {
    let mut at = match frame.kind() {
        Kind::Error { error, .. } => *error,
        _ => return Ok(None),
    };
    for key in ["data", "elicitations"] {
        if !frame.part(at).starts_with(b"{") {
            return Ok(None);
        }
        match scanned(frame, at, &[key])?.into_iter().next() {
            Some((_, span)) => at = span,
            None => return Ok(None),
        }
    }
    elements(frame, at).map(Some)
}

/// What is asked there; `None` if nothing is.
///
/// SECURITY: some clients take another key for this one. What they would be asked is not understood.
pub(super) fn asked_in(frame: &Frame, of: Span) -> Result<Option<Span>, Unfit> {
    if !frame.part(of).starts_with(b"{") {
        return Ok(None);
    }
    let found = scanned(frame, of, &[ASKED])?;
    let asked = found.into_iter().find(|(name, _)| name == ASKED);
    let asked = asked.map(|(_, span)| span);
    Ok(asked.filter(|span| frame.part(*span) != b"null"))
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
        let parts = scanned(frame, whole, &["method", "params"])?;
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
    scanned(frame, of, &[])
}

/// The members of an object, none of which may pose as one of those that are known.
fn scanned(frame: &Frame, of: Span, known: &[&'static str]) -> Result<Vec<(String, Span)>, Unfit> {
    let mut scan = Scan::new(frame.part(of), &LIMITS).map_err(|_| Unfit)?;
    let (mut found, mut poses) = (Vec::new(), false);
    let scanned = scan.object(|scan, key| {
        poses |= frame::poses(&key, known);
        let place = scan.value()?;
        let place = Span::from(of.start + place.start..of.start + place.end);
        if known.is_empty() || known.contains(&&*key) {
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
/// So many things one result may ask.
const MOST_AT_ONCE: usize = 64;
/// The frame was read before, within narrower limits.
const LIMITS: Limits = Limits {
    max_bytes: usize::MAX,
    max_depth: 512,
    numbers: Numbers::Exact,
};
