//! What can be checked about one event by itself. This is the costly part, so batches of events are
//! examined on all cores.

use countersign_canon::Digest;
use countersign_event::{Line, Opening, Scope, SealText};

use crate::report::{Place, Problem};

/// Sealed values by their place in the payload.
pub type Openings = Vec<(String, Opening)>;

/// Opens ciphertexts, for whoever has the keys.
pub trait Opener: Sync {
    /// The sealed values; `None` when the key was erased.
    fn open(&self, ciphertext: &[u8], scope: &Scope) -> Result<Option<Openings>, String>;
}

/// One event as it was read.
pub(crate) struct Item<'a> {
    pub(crate) place: Place,
    pub(crate) text: &'a [u8],
    /// What a database keeps beside the text; a stream has nothing there.
    pub(crate) stored: Option<StoredColumns<'a>>,
}

impl Item<'_> {
    pub(crate) fn bytes(&self) -> u64 {
        let ciphertext = self.stored.as_ref().and_then(|stored| stored.ciphertext);
        (self.text.len() + ciphertext.map_or(0, <[u8]>::len)) as u64
    }
}

/// The columns of an event's row that repeat or complete its text.
pub(crate) struct StoredColumns<'a> {
    pub(crate) seq: i64,
    pub(crate) tenant_id: &'a str,
    pub(crate) session_id: &'a str,
    pub(crate) ciphertext: Option<&'a [u8]>,
}

/// An event that is good by itself.
pub(crate) struct Examined<'a> {
    pub(crate) line: Line<'a>,
    pub(crate) sealing: Sealing,
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

/// Examines a batch on all cores; the results are in the order of the items.
pub(crate) fn examine_all<'a>(
    items: &[Item<'a>],
    opener: Option<&dyn Opener>,
) -> Vec<Result<Examined<'a>, Problem>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(cores).max(MIN_SHARE);
    if items.len() <= share {
        return items.iter().map(|item| examine(item, opener)).collect();
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = items
            .chunks(share)
            .map(|chunk| {
                scope.spawn(move || chunk.iter().map(|item| examine(item, opener)).collect())
            })
            .collect();
        threads.into_iter().flat_map(joined).collect()
    })
}

/// The result of a thread; its panic, should there be one, is ours.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Vec<T>>) -> Vec<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn examine<'a>(item: &Item<'a>, opener: Option<&dyn Opener>) -> Result<Examined<'a>, Problem> {
    let line = Line::read(item.text)?;
    let computed = line.computed_hash();
    if computed != line.hash {
        return Err(Problem::Hash { stated: line.hash, computed });
    }
    let sealing = match (&item.stored, line.seal) {
        (None, None) => Sealing::None,
        (None, Some(seal)) => {
            // The report speaks of commitments, so they have to be some.
            seal.read()?;
            Sealing::NotHere
        }
        (Some(stored), seal) => {
            compare_columns(stored, &line)?;
            check_sealed(stored, seal, opener)?
        }
    };
    Ok(Examined { line, sealing })
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
        (Some(seal), Some(ciphertext)) => (seal.read()?, ciphertext),
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
        Some(openings) => check_commitments(&seal.commitments, &openings),
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
        let answers = opening.commitment().is_ok_and(|found| {
            committed.is_some_and(|(_, committed)| *committed == found)
        });
        if !answers {
            return Err(Problem::Commitment(place.clone()));
        }
    }
    let unopened = commitments.iter().find(|(name, _)| !openings.iter().any(|(place, _)| place == name));
    match unopened {
        Some((place, _)) => Err(Problem::Commitment(place.clone())),
        None => Ok(Sealing::Opened),
    }
}

/// Below this many events a thread costs more than it saves.
const MIN_SHARE: usize = 64;
