//! `countersign approval watch`: the terminal inbox.
//!
//! State, update and view are pure; this file is the terminal around them.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use countersign_approval::{ApprovalId, Decision, Reason, State};
use countersign_engine::Desk;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::card::{Card, check_open};
use super::sign;
use crate::cli::DataFolder;
use crate::command::approver::key::{ApproverKey, KeyOption};
use crate::errors::{Code, Failure};
use crate::exit::Exit;

mod keys;
mod model;
mod row;
mod update;
mod view;

use keys::Key;
use model::{Choice, Detail, Item, Model};
use update::{Effect, Message, update};

#[derive(Args)]
#[command(after_help = "\
`?` in the inbox lists the keys. Enter approves nothing: to approve, the code of the plan has to
be typed. What others decide appears within a second.

Examples:
  countersign approval watch
  countersign approval watch --key dana.key")]
pub(crate) struct Watch {
    #[command(flatten)]
    key: KeyOption,
    #[command(flatten)]
    data: DataFolder,
}

impl Watch {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        drop(self.data.reader()?);
        let file = self.key.file(self.data.folder()?.path())?;
        let desk = self.data.desk()?;
        let key = file.open(&desk.approvers()?)?;
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Err(Failure::new(Code::Terminal, "there is no terminal"));
        }
        let ended = Arc::new(AtomicUsize::new(0));
        catch_signals(&ended).map_err(broken)?;
        // Also puts the terminal back in order when something panics.
        let terminal = ratatui::try_init().map_err(broken)?;
        let result = Inbox::new(&desk, &key).run(terminal, &ended);
        ratatui::try_restore().map_err(broken)?;
        result?;
        Ok(match u8::try_from(ended.load(Ordering::SeqCst)) {
            Ok(0) | Err(_) => Exit::Done,
            Ok(signal) => Exit::Passed(128_u8.saturating_add(signal)),
        })
    }
}

/// The inbox of one person.
struct Inbox<'d> {
    desk: &'d Desk,
    key: &'d ApproverKey,
    started: Instant,
    model: Model,
    /// What never changes of a request, by its id.
    items: HashMap<ApprovalId, Item>,
    /// How the open request was when it was last shown.
    shown: Option<Shown>,
}

/// Enough of a request to tell whether it has to be shown anew.
struct Shown {
    id: ApprovalId,
    state: State,
    votes: usize,
    at: Instant,
}

impl<'d> Inbox<'d> {
    fn new(desk: &'d Desk, key: &'d ApproverKey) -> Self {
        Self {
            desk,
            key,
            started: Instant::now(),
            model: Model::new(key.person.name(), std::env::var_os("NO_COLOR").is_none()),
            items: HashMap::new(),
            shown: None,
        }
    }

    fn run(mut self, mut terminal: DefaultTerminal, ended: &AtomicUsize) -> Result<(), Failure> {
        let size = terminal.size().map_err(broken)?;
        self.take(Message::Resize(size.width, size.height))?;
        let mut refreshed = None::<Instant>;
        while ended.load(Ordering::SeqCst) == 0 {
            if refreshed.is_none_or(|at| at.elapsed() >= REFRESH) {
                self.refresh()?;
                refreshed = Some(Instant::now());
            }
            let frame = terminal.draw(|frame| view::draw(&self.model, frame));
            frame.map_err(broken)?;
            if !event::poll(PATIENCE).map_err(broken)? {
                continue;
            }
            let message = match event::read().map_err(broken)? {
                Event::Key(key) => match translate(key) {
                    Some(key) => Message::Key(key),
                    None => continue,
                },
                Event::Resize(width, height) => Message::Resize(width, height),
                _ => continue,
            };
            if self.take(message)? {
                break;
            }
        }
        Ok(())
    }

    /// Updates the state and does what it asks for; `true` at the end.
    fn take(&mut self, message: Message) -> Result<bool, Failure> {
        let now = self.now();
        let Some(effect) = update(&mut self.model, message, now) else {
            return Ok(false);
        };
        let message = match effect {
            Effect::Quit => return Ok(true),
            Effect::Refresh => {
                self.refresh()?;
                return Ok(false);
            }
            Effect::Open(id) => match self.detail(id)? {
                Some(detail) => {
                    self.note_view(id)?;
                    Message::Detail(Box::new(detail))
                }
                None => return Ok(false),
            },
            Effect::Decide(id, choice) => {
                let told = self.decide(id, choice);
                let told = told.unwrap_or_else(|failure| failure.message().to_owned());
                update(&mut self.model, Message::Told(told), now);
                self.refresh()?;
                return Ok(false);
            }
        };
        // Neither of these asks for anything.
        let _ = update(&mut self.model, message, now);
        Ok(false)
    }

    fn refresh(&mut self) -> Result<(), Failure> {
        // What cannot be ended is told of by the commands that have a line for it.
        let _swept = self.desk.sweep()?;
        let rows = self.desk.reader().approvals_in(State::Pending)?;
        let mut items = Vec::with_capacity(rows.len());
        for row in rows {
            if !self.items.contains_key(&row.id)
                // One that cannot be read keeps nobody from the others.
                && let Ok(Some(standing)) = self.desk.approval(row.id)
            {
                self.items.insert(row.id, Item::of(&standing));
            }
            items.extend(self.items.get(&row.id).cloned());
        }
        let time = self.desk.now()?;
        let now = self.now();
        // What comes from here asks for nothing.
        let _ = update(&mut self.model, Message::Items(items, time), now);
        if let Some(id) = self.model.open_id()
            && self.has_changed(id)?
            && let Some(detail) = self.detail(id)?
        {
            let _ = update(&mut self.model, Message::Detail(Box::new(detail)), now);
        }
        Ok(())
    }

    /// Whether the open request is to be shown anew. Plans may be long; most looks find nothing new.
    fn has_changed(&mut self, id: ApprovalId) -> Result<bool, Failure> {
        let Some(row) = self.desk.reader().approval(id)? else {
            return Ok(false);
        };
        let (state, votes) = (row.state, self.desk.reader().votes(id)?.len());
        let same = self.shown.as_ref().is_some_and(|shown| {
            (shown.id, shown.state, shown.votes) == (id, state, votes) && shown.at.elapsed() < STALE
        });
        if !same {
            let at = Instant::now();
            self.shown = Some(Shown {
                id,
                state,
                votes,
                at,
            });
        }
        Ok(!same)
    }

    fn detail(&self, id: ApprovalId) -> Result<Option<Detail>, Failure> {
        let Some(standing) = self.desk.approval(id)? else {
            return Ok(None);
        };
        Detail::of(&Card::new(standing, self.desk)?).map(Some)
    }

    fn note_view(&self, id: ApprovalId) -> Result<(), Failure> {
        match self.desk.approval(id)? {
            Some(standing) => Ok(self.desk.note_view(&standing, &self.key.person)?),
            None => Ok(()),
        }
    }

    fn decide(&self, id: ApprovalId, choice: Choice) -> Result<String, Failure> {
        let standing = self.desk.approval(id)?;
        let standing = standing.ok_or_else(|| Failure::new(Code::NoApproval, "it is gone"))?;
        check_open(&standing)?;
        let decision = match choice {
            Choice::Approve => Decision::Approved,
            Choice::Deny(reason) => Decision::Denied(Reason::new(reason).ok()),
        };
        let voted = sign::decide(&decision, &standing, self.key, self.desk)?;
        Ok(sign::summary(&decision, &voted, self.key))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Whoever ends the inbox from outside gets the terminal back as it was.
#[cfg(unix)]
fn catch_signals(ended: &Arc<AtomicUsize>) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let number = usize::try_from(signal).unwrap_or_default();
        signal_hook::flag::register_usize(signal, Arc::clone(ended), number)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn catch_signals(_: &Arc<AtomicUsize>) -> io::Result<()> {
    Ok(())
}

fn translate(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char('c') if control => Key::Interrupt,
        KeyCode::Char(_) if control || event.modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char(character) => Key::Char(character),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        _ => return None,
    })
}

fn broken(error: io::Error) -> Failure {
    Failure::new(Code::Output, format!("the terminal fails: {error}"))
}

/// How soon what others decide is seen.
const REFRESH: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_millis(100);
/// How old the times on a card may get.
const STALE: Duration = Duration::from_secs(10);
