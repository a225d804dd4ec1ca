//! `countersign approval stats`

use clap::Args;
use countersign_approval::State;
use countersign_canon::Json;
use countersign_event::EventType;
use countersign_store::{Approval, Filter, Reader};

use super::card::duration;
use crate::cli::DataFolder;
use crate::clock;
use crate::errors::Failure;
use crate::exit::Exit;
use crate::output::{self, Format};

#[derive(Args)]
#[command(after_help = "\
People who are asked too often stop reading. A high share of approvals within a second says so;
leases (`countersign lease preview`) and a finer manifest make the questions fewer.

Examples:
  countersign approval stats
  countersign approval stats --since 7d --format json")]
pub(crate) struct Stats {
    /// Only what was asked from this time on: 2026-11-15T08:00:00Z, or 7d for seven days ago
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    #[command(flatten)]
    data: DataFolder,
}

impl Stats {
    pub(crate) fn run(self, format: Format) -> Result<Exit, Failure> {
        let since = self.since.as_deref().map(clock::parse_moment).transpose()?;
        let reader = self.data.reader()?;
        let mut rows = reader.newest_approvals(MOST)?;
        rows.retain(|row| row.issued.get() >= since.unwrap_or_default());
        let figures = Figures::of(&rows, actions(since, &reader)?);
        match format {
            Format::Text => output::text(&figures.text())?,
            Format::Json => output::json(&figures.json())?,
        }
        Ok(Exit::Done)
    }
}

/// How many actions agents wanted.
fn actions(since: Option<u64>, reader: &Reader) -> Result<u64, Failure> {
    let filter = Filter {
        event_type: Some(EventType::ToolCallProposed),
        since_unix_ms: since,
        ..Filter::default()
    };
    let mut count = 0;
    reader.each(&filter, 0, |_| {
        count += 1;
        Ok::<(), Failure>(())
    })?;
    Ok(count)
}

/// How people are asked, and how they answer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    actions: u64,
    asked: u64,
    approved: u64,
    denied: u64,
    unanswered: u64,
    pending: u64,
    /// The middle one of the times from question to answer.
    median_ms: Option<u64>,
    /// Approvals that came within a second of the question.
    hasty: u64,
}

impl Figures {
    fn of(rows: &[Approval], actions: u64) -> Self {
        let mut figures = Self {
            actions,
            asked: rows.len() as u64,
            ..Self::default()
        };
        let mut times = Vec::new();
        for row in rows {
            let took = row.decided.map(|at| at.distance(row.issued));
            times.extend(took);
            match row.state {
                State::Pending => figures.pending += 1,
                State::Denied => figures.denied += 1,
                State::Expired | State::Cancelled | State::Superseded => figures.unanswered += 1,
                _ => {
                    figures.approved += 1;
                    figures.hasty += u64::from(took.is_some_and(|took| took < HASTY_MS));
                }
            }
        }
        times.sort_unstable();
        figures.median_ms = times.get(times.len() / 2).copied();
        figures
    }

    fn text(&self) -> String {
        let median = self.median_ms.map_or("–".to_owned(), precise);
        let lines = [
            format!("actions     {}", self.actions),
            format!(
                "asked       {} ({})",
                self.asked,
                share(self.asked, self.actions)
            ),
            format!("approved    {}", self.approved),
            format!("denied      {}", self.denied),
            format!("unanswered  {}", self.unanswered),
            format!("pending     {}", self.pending),
            format!("median time to decide            {median}"),
            format!(
                "approvals in less than a second  {} ({})",
                self.hasty,
                share(self.hasty, self.approved)
            ),
        ];
        lines.join("\n")
    }

    fn json(&self) -> Json {
        Json::object([
            ("actions", Json::from(self.actions)),
            ("asked", Json::from(self.asked)),
            ("approved", Json::from(self.approved)),
            ("denied", Json::from(self.denied)),
            ("unanswered", Json::from(self.unanswered)),
            ("pending", Json::from(self.pending)),
            (
                "median_decision_ms",
                self.median_ms.map_or(Json::Null, Json::from),
            ),
            ("approved_within_a_second", Json::from(self.hasty)),
        ])
    }
}

fn precise(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        _ => duration(ms),
    }
}

/// `12 %`; of nothing there is no share.
fn share(part: u64, whole: u64) -> String {
    match part.saturating_mul(100).checked_div(whole) {
        Some(percent) => format!("{percent} %"),
        None => "–".to_owned(),
    }
}

const HASTY_MS: u64 = 1000;
const MOST: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use countersign_approval::{ApprovalId, Nonce, UnixMs};
    use countersign_event::Scope;

    use super::*;

    fn row(number: u8, state: State, took_ms: Option<u64>) -> Approval {
        let issued = UnixMs::new(1_000_000);
        Approval {
            id: ApprovalId::from_random([number; 16]),
            nonce: Nonce::from_random([number; 16]),
            scope: Scope::new("t", "s").unwrap(),
            seq: 0,
            plan_hash: "0".repeat(64).parse().unwrap(),
            state,
            issued,
            decide_by: None,
            decided: took_ms.map(|ms| issued.plus(ms)),
            ends: None,
            owner: None,
        }
    }

    #[test]
    fn p04_how_often_people_are_asked_and_how_fast_they_answer() {
        let rows = [
            row(1, State::Executed, Some(400)),
            row(2, State::Approved, Some(999)),
            row(3, State::Failed, Some(1000)),
            row(4, State::Denied, Some(90_000)),
            row(5, State::Expired, None),
            row(6, State::Pending, None),
        ];
        let figures = Figures::of(&rows, 24);
        let expected = Figures {
            actions: 24,
            asked: 6,
            approved: 3,
            denied: 1,
            unanswered: 1,
            pending: 1,
            median_ms: Some(1000),
            hasty: 2,
        };
        assert_eq!(figures, expected);
        let text = figures.text();
        assert!(text.contains("asked       6 (25 %)"), "{text}");
        assert!(text.contains("less than a second  2 (66 %)"), "{text}");
        assert!(text.contains("decide            1.0s"), "{text}");
    }

    #[test]
    fn p04_nothing_has_no_share() {
        let text = Figures::of(&[], 0).text();
        assert!(text.contains("asked       0 (–)"), "{text}");
    }
}
