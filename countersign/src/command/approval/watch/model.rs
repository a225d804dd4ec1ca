//! What the inbox knows and shows.

use countersign_approval::{ApprovalId, State, UnixMs};
use countersign_display::View;
use countersign_engine::Standing;

use super::row::{Row, rows, wrapped};
use crate::command::approval::card::{Card, word};
use crate::command::approval::list::{risk, what};
use crate::errors::Failure;

/// The inbox.
pub(super) struct Model {
    pub(super) person: String,
    pub(super) colour: bool,
    pub(super) items: Vec<Item>,
    /// The time of the store when it was last read.
    pub(super) time: UnixMs,
    pub(super) selected: Option<ApprovalId>,
    pub(super) open: Option<Open>,
    pub(super) question: Option<Question>,
    pub(super) notice: String,
    pub(super) width: u16,
    pub(super) height: u16,
    /// Until then keys do nothing: they were meant for what was on the screen before.
    pub(super) quiet_until_ms: u64,
}

/// One request in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) id: ApprovalId,
    pub(super) code: String,
    pub(super) irreversible: bool,
    pub(super) risk: &'static str,
    pub(super) what: String,
    pub(super) who: String,
    pub(super) issued: UnixMs,
    pub(super) decide_by: Option<UnixMs>,
}

/// One request with everything that there is to see.
#[derive(Debug, Clone)]
pub(super) struct Detail {
    pub(super) id: ApprovalId,
    pub(super) state: State,
    pub(super) irreversible: bool,
    /// What has to be typed to approve it.
    pub(super) code: String,
    pub(super) summary: Vec<Row>,
    pub(super) full: Vec<Row>,
    /// Whether the summary leaves nothing out.
    pub(super) summary_is_complete: bool,
}

/// The request on the screen.
pub(super) struct Open {
    pub(super) detail: Detail,
    pub(super) is_full: bool,
    pub(super) rows: Vec<Row>,
    pub(super) top: usize,
    /// Whether its last line has been on the screen, in this view.
    pub(super) seen: bool,
}

/// What is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Question {
    Code(String),
    Reason(String),
    Help,
}

/// What somebody decided here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    Approve,
    Deny(String),
}

impl Model {
    pub(super) fn new(person: &str, colour: bool) -> Self {
        Self {
            person: person.to_owned(),
            colour,
            items: Vec::new(),
            time: UnixMs::new(0),
            selected: None,
            open: None,
            question: None,
            notice: String::new(),
            width: 80,
            height: 24,
            quiet_until_ms: 0,
        }
    }

    pub(super) fn open_id(&self) -> Option<ApprovalId> {
        self.open.as_ref().map(|open| open.detail.id)
    }

    /// How many lines there are between the first and the last two.
    pub(super) fn page(&self) -> usize {
        usize::from(self.height).saturating_sub(CHROME).max(1)
    }

    pub(super) fn place(&self) -> usize {
        let place = |id| self.items.iter().position(|item| item.id == id);
        self.selected.and_then(place).unwrap_or(0)
    }
}

impl Item {
    pub(super) fn of(standing: &Standing) -> Self {
        let envelope = &standing.envelope;
        Self {
            id: envelope.id(),
            code: envelope.plan().hash().short(),
            irreversible: envelope.plan().is_irreversible(),
            risk: risk(standing),
            what: what(standing),
            who: envelope.lineage().requester().to_string(),
            issued: standing.row.issued,
            decide_by: standing.row.decide_by,
        }
    }
}

impl Detail {
    pub(super) fn of(card: &Card) -> Result<Self, Failure> {
        let summary = card.rendering(View::Summary)?;
        let lines = |view, rendering: &countersign_display::Rendering| {
            let facts = card.facts(rendering.is_complete());
            let mut all: Vec<Row> = facts.iter().map(|fact| Row::says(fact)).collect();
            all.push(Row::says(""));
            all.extend(rows(rendering.sheet()));
            if let Some(said) = card.said(view) {
                all.push(Row::says(""));
                all.extend(rows(said.sheet()));
            }
            all
        };
        Ok(Self {
            id: card.standing.envelope.id(),
            state: card.standing.row.state,
            irreversible: card.is_irreversible(),
            code: card.code(),
            summary: lines(View::Summary, &summary),
            full: lines(View::Full, &card.standing.rendering),
            summary_is_complete: summary.is_complete(),
        })
    }
}

impl Open {
    pub(super) fn new(detail: Detail, width: u16, page: usize) -> Self {
        let mut open = Self {
            detail,
            is_full: false,
            rows: Vec::new(),
            top: 0,
            seen: false,
        };
        open.lay_out(width, page);
        open
    }

    /// Whether everything of the plan is in the lines of this view.
    pub(super) fn is_complete(&self) -> bool {
        self.is_full || self.detail.summary_is_complete
    }

    pub(super) fn lay_out(&mut self, width: u16, page: usize) {
        let source = match self.is_full {
            true => &self.detail.full,
            false => &self.detail.summary,
        };
        self.rows = wrapped(source, usize::from(width));
        self.scroll(0, page);
    }

    pub(super) fn scroll(&mut self, lines: isize, page: usize) {
        let most = self.rows.len().saturating_sub(page);
        self.top = self.top.saturating_add_signed(lines).min(most);
        self.seen |= self.top + page >= self.rows.len();
    }

    pub(super) fn word(&self) -> &'static str {
        word(self.detail.state)
    }
}

/// The lines at the top and at the bottom that are not the list or the card.
const CHROME: usize = 4;
