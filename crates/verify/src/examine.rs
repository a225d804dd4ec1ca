//! What can be checked about one event by itself. This is the costly part, so batches of events are
//! examined on all cores.

use std::borrow::Cow;

use countersign_canon::{Digest, Hash};
use countersign_event::{EventType, Line, Opening, Refs, Scope, SealText};

use crate::report::Problem;

/// Sealed values by their place in the payload.
pub type Openings = Vec<(String, Opening)>;

/// Opens ciphertexts, for whoever has the keys.
pub trait Opener: Sync {
    /// The sealed values; `None` when the key was erased.
    fn open(&self, ciphertext: &[u8], scope: &Scope) -> Result<Option<Openings>, String>;
}

/// One event as it was read.
pub(crate) struct Item<'a> {
    pub(crate) text: &'a [u8],
    /// What a database keeps beside the text; a stream has nothing there.
    pub(crate) stored: Option<StoredColumns<'a>>,
}

impl<'a> Item<'a> {
    /// The row of the table of events, if it is from a database.
    pub(crate) fn row(&self) -> Option<i64> {
        self.stored.as_ref().map(|stored| stored.id)
    }

    /// Recomputes the hash of the line, and holds what is stored beside it against it.
    fn check(&self, line: &Line<'_>, opener: Option<&dyn Opener>) -> Result<Sealing, Problem> {
        let computed = line.computed_hash();
        if computed != line.hash {
            return Err(Problem::Hash {
                stated: line.hash,
                computed,
            });
        }
        match (&self.stored, line.seal) {
            (None, None) => Ok(Sealing::None),
            (None, Some(_)) => Ok(Sealing::NotHere),
            (Some(stored), seal) => {
                compare_columns(stored, line)?;
                check_sealed(stored, seal, opener)
            }
        }
    }

    fn bytes(&self) -> u64 {
        let ciphertext = self.stored.as_ref().and_then(|stored| stored.ciphertext);
        (self.text.len() + ciphertext.map_or(0, <[u8]>::len)) as u64
    }
}

/// The columns of an event's row that repeat or complete its text.
pub(crate) struct StoredColumns<'a> {
    pub(crate) id: i64,
    pub(crate) seq: i64,
    pub(crate) tenant_id: &'a str,
    pub(crate) session_id: &'a str,
    pub(crate) ciphertext: Option<&'a [u8]>,
}

/// Events up to the first that is bad by itself.
pub(crate) struct Examination<'a> {
    pub(crate) good: Vec<Examined<'a>>,
    pub(crate) bad: Option<(Item<'a>, Problem)>,
}

/// An event that is good by itself, with what it takes to see whether it follows the others.
///
/// Every event waits as one of these for those before it, so it holds no more than that.
pub(crate) struct Examined<'a> {
    pub(crate) row: Option<i64>,
    pub(crate) text: &'a [u8],
    pub(crate) bytes: u64,
    pub(crate) sealing: Sealing,
    pub(crate) event_type: EventType,
    pub(crate) hash: Hash,
    pub(crate) prev_hash: Option<Hash>,
    pub(crate) seq: u64,
    pub(crate) session_id: Cow<'a, str>,
    pub(crate) tenant_id: Cow<'a, str>,
    pub(crate) refs: Refs<'a>,
}

/// How far the sealed content of an event could be checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sealing {
    /// The event has none.
    None,
    /// Only the commitments are here.
    NotHere,
    /// The ciphertext is the one that was committed to; nobody opened it.
    Closed,
    /// The key was erased.
    Erased,
    /// Every value is the one that was committed to.
    Opened,
}

impl<'a> Examination<'a> {
    /// Examines events until one is bad.
    pub(crate) fn of(items: impl Iterator<Item = Item<'a>>, opener: Option<&dyn Opener>) -> Self {
        let mut good = Vec::with_capacity(USUAL_BATCH);
        for item in items {
            // Looked at where it was read to: to move a line costs as much as to link it.
            let bad = match &Line::read(item.text) {
                Ok(line) => match item.check(line, opener) {
                    Ok(sealing) => {
                        good.push(Examined {
                            row: item.row(),
                            text: item.text,
                            bytes: item.bytes(),
                            sealing,
                            event_type: line.event_type,
                            hash: line.hash,
                            prev_hash: line.prev_hash,
                            seq: line.seq,
                            session_id: line.session_id.clone(),
                            tenant_id: line.tenant_id.clone(),
                            refs: line.refs.clone(),
                        });
                        continue;
                    }
                    Err(problem) => problem,
                },
                Err(error) => error.clone().into(),
            };
            return Self {
                good,
                bad: Some((item, bad)),
            };
        }
        Self { good, bad: None }
    }
}

fn compare_columns(stored: &StoredColumns<'_>, line: &Line<'_>) -> Result<(), Problem> {
    if u64::try_from(stored.seq) != Ok(line.seq) {
        return Err(Problem::Column("seq"));
    }
    if stored.tenant_id != line.tenant_id {
        return Err(Problem::Column("tenant_id"));
    }
    if stored.session_id != line.session_id {
        return Err(Problem::Column("session_id"));
    }
    Ok(())
}

fn check_sealed(
    stored: &StoredColumns<'_>,
    seal: Option<SealText<'_>>,
    opener: Option<&dyn Opener>,
) -> Result<Sealing, Problem> {
    let (seal, ciphertext) = match (seal, stored.ciphertext) {
        (None, None) => return Ok(Sealing::None),
        (None, Some(_)) => return Err(Problem::Ciphertext("belongs to no sealed member")),
        (Some(_), None) => return Err(Problem::Ciphertext("is missing")),
        (Some(seal), Some(ciphertext)) => (seal, ciphertext),
    };
    if Digest::of(ciphertext) != seal.ciphertext {
        return Err(Problem::Ciphertext("was changed"));
    }
    let Some(opener) = opener else {
        return Ok(Sealing::Closed);
    };
    let scope = Scope::new(stored.tenant_id, stored.session_id)
        .map_err(|error| Problem::NotAnEvent(error.into()))?;
    match opener.open(ciphertext, &scope).map_err(Problem::Unopened)? {
        Some(openings) => check_commitments(&seal.read()?.commitments, &openings),
        None => Ok(Sealing::Erased),
    }
}

/// Commitments and openings must be the same places, each with the committed value.
fn check_commitments(
    commitments: &[(String, Digest)],
    openings: &Openings,
) -> Result<Sealing, Problem> {
    for (place, opening) in openings {
        let committed = commitments.iter().find(|(name, _)| name == place);
        let answers = opening
            .commitment()
            .is_ok_and(|found| committed.is_some_and(|(_, committed)| *committed == found));
        if !answers {
            return Err(Problem::Commitment(place.clone()));
        }
    }
    let unopened = commitments
        .iter()
        .find(|(name, _)| !openings.iter().any(|(place, _)| place == name));
    match unopened {
        Some((place, _)) => Err(Problem::Commitment(place.clone())),
        None => Ok(Sealing::Opened),
    }
}

/// Room for the events of most batches, without growing.
const USUAL_BATCH: usize = 448;
