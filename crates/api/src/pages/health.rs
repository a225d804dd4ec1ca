//! How the daemon is, and how people answer.

use countersign_approval::State;
use countersign_console::{Figures, Health, Html, Tab};
use countersign_event::{EventType, Line};
use countersign_store::{Filter, Reader};

use super::{Maker, follow, make};
use crate::call::Call;
use crate::problem::Problem;
use crate::reply::Reply;

mod doors;

pub(super) async fn show(call: &Call) -> Result<Reply, Problem> {
    make(call, page).await
}

fn page(maker: &Maker) -> Result<Html, Problem> {
    let api = &maker.api;
    let reader = api.engine.store().reader();
    let events = reader.last_id();
    let integrated = reader.tree_size()?;
    let checkpoint = reader.last_checkpoint()?.map(|published| {
        let size = published.checkpoint.size;
        (size, newest_covered(reader, size))
    });
    let metrics = api.settings.metrics.as_ref().map(|metrics| metrics());
    let (doors, looked_at) = doors::seen(api)?;
    let health = Health {
        doors: &doors,
        looked_at,
        is_ready: events.is_ok(),
        events: events.unwrap_or_default(),
        integrated,
        checkpoint,
        bytes: bytes(reader),
        figures: figures(reader)?,
        metrics: metrics.as_deref(),
    };
    let follows = follow(&[("q", "type:POLICY_DECISION type:APPROVAL_*")]);
    let frame = maker.frame(Tab::Health, Some(&follows))?;
    Ok(countersign_console::health(&frame, &health))
}

/// When the newest event happened that the checkpoint covers.
fn newest_covered(reader: &Reader, size: u64) -> Option<u64> {
    enum Found {
        At(u64),
        Failed,
    }
    impl From<countersign_store::Error> for Found {
        fn from(_: countersign_store::Error) -> Self {
            Self::Failed
        }
    }
    let read = reader.each(&Filter::default(), size.checked_sub(1)?, |event| {
        let line = Line::read(&event.line).map_err(|_| Found::Failed)?;
        Err::<(), _>(Found::At(line.ts_unix_ms))
    });
    match read {
        Err(Found::At(at)) => Some(at),
        _ => None,
    }
}

/// How large the files of the data folder are.
fn bytes(reader: &Reader) -> Option<u64> {
    let entries = std::fs::read_dir(reader.folder().path()).ok()?;
    let sizes = entries.filter_map(|entry| entry.ok()?.metadata().ok());
    Some(
        sizes
            .filter(|file| file.is_file())
            .map(|file| file.len())
            .sum(),
    )
}

fn figures(reader: &Reader) -> Result<Figures, Problem> {
    let rows = reader.newest_approvals(MOST)?;
    let proposed = Filter {
        event_type: Some(EventType::ToolCallProposed),
        // Where there are more requests than are looked at, only actions of their time count.
        since_unix_ms: match rows.len() < MOST {
            true => None,
            false => rows.iter().map(|row| row.issued.get()).min(),
        },
        ..Filter::default()
    };
    let actions = reader.last(&proposed, MOST * 10)?.len() as u64;
    let mut figures = Figures {
        actions: actions.max(rows.len() as u64),
        asked: rows.len() as u64,
        ..Figures::default()
    };
    let mut times = Vec::new();
    for row in &rows {
        let took = row.decided.map(|at| at.distance(row.issued));
        times.extend(took);
        match row.state {
            State::Denied => figures.denied += 1,
            State::Pending | State::Expired | State::Cancelled | State::Superseded => {}
            _ => {
                figures.approved += 1;
                figures.hasty += u64::from(took.is_some_and(|took| took < HASTY_MS));
            }
        }
    }
    times.sort_unstable();
    figures.median_ms = times.get(times.len() / 2).copied();
    Ok(figures)
}

/// The newest requests that figures are made of.
const MOST: usize = 1000;
const HASTY_MS: u64 = 1000;
