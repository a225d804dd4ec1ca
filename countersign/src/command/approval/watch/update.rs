//! What happens to the inbox.

use countersign_approval::{ApprovalId, State, UnixMs};

use super::keys::{Act, Key, act};
use super::model::{Choice, Detail, Item, Model, Open, Question};

/// Something that happened.
pub(super) enum Message {
    Key(Key),
    Resize(u16, u16),
    /// What is held now, and the time.
    Items(Vec<Item>, UnixMs),
    /// The request on the screen, as it is now.
    Detail(Box<Detail>),
    /// What became of a decision.
    Told(String),
}

/// Something to do.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Effect {
    Quit,
    Refresh,
    Open(ApprovalId),
    Decide(ApprovalId, Choice),
}

pub(super) fn update(model: &mut Model, message: Message, now_ms: u64) -> Option<Effect> {
    match message {
        // Leaving is always possible, and decides nothing.
        Message::Key(Key::Interrupt) => Some(Effect::Quit),
        // SECURITY: what was typed for the last screen is no answer to this one.
        Message::Key(_) if now_ms < model.quiet_until_ms => None,
        Message::Key(key) => match model.question.take() {
            Some(question) => answer(model, question, key),
            None => act(key).and_then(|act| perform(model, act, now_ms)),
        },
        Message::Resize(width, height) => {
            (model.width, model.height) = (width, height);
            let page = model.page();
            if let Some(open) = &mut model.open {
                open.lay_out(width, page);
            }
            None
        }
        Message::Items(items, time) => {
            arrive(model, items, now_ms);
            model.time = time;
            None
        }
        Message::Detail(detail) => {
            show(model, *detail, now_ms);
            None
        }
        Message::Told(told) => {
            model.notice = told;
            None
        }
    }
}

fn perform(model: &mut Model, act: Act, now_ms: u64) -> Option<Effect> {
    model.notice.clear();
    let page = isize::try_from(model.page()).unwrap_or(isize::MAX);
    match act {
        Act::Quit => return Some(Effect::Quit),
        Act::Refresh => return Some(Effect::Refresh),
        Act::Help => ask(model, Question::Help, now_ms),
        Act::Down => go(model, 1),
        Act::Up => go(model, -1),
        Act::PageDown => go(model, page),
        Act::PageUp => go(model, -page),
        Act::Open if model.open.is_some() => go(model, page),
        Act::Open => {
            let item = model.items.get(model.place());
            return item.map(|item| Effect::Open(item.id));
        }
        Act::Back => model.open = None,
        Act::Full => expand(model),
        Act::Approve => match obstacle(model) {
            None => ask(model, Question::Code(String::new()), now_ms),
            Some(obstacle) => model.notice = obstacle.to_owned(),
        },
        Act::Deny => match undecidable(model) {
            None => ask(model, Question::Reason(String::new()), now_ms),
            Some(obstacle) => model.notice = obstacle.to_owned(),
        },
    }
    None
}

/// A key while something is being asked. The question was taken out, and is put back to go on.
fn answer(model: &mut Model, question: Question, key: Key) -> Option<Effect> {
    let id = model.open_id();
    match (question, key) {
        (Question::Help, _) | (_, Key::Escape) => None,
        (Question::Code(typed), Key::Enter) if !typed.is_empty() => {
            model.notice = NOT_ITS_CODE.to_owned();
            None
        }
        (Question::Code(typed), key) => {
            let typed = type_on(typed, key);
            let open = model.open.as_ref()?;
            if typed == open.detail.code {
                return Some(Effect::Decide(id?, Choice::Approve));
            }
            match typed.len() < open.detail.code.len() {
                true => model.question = Some(Question::Code(typed)),
                false => model.notice = NOT_ITS_CODE.to_owned(),
            }
            None
        }
        (Question::Reason(typed), Key::Enter) => {
            Some(Effect::Decide(id?, Choice::Deny(typed.trim().to_owned())))
        }
        (Question::Reason(typed), key) => {
            model.question = Some(Question::Reason(type_on(typed, key)));
            None
        }
    }
}

const NOT_ITS_CODE: &str = "that is not its code; nothing was decided";

fn type_on(mut typed: String, key: Key) -> String {
    match key {
        Key::Char(character) if typed.chars().count() < LONGEST => typed.push(character),
        Key::Backspace => drop(typed.pop()),
        // Enter as well: it answers nothing here.
        _ => {}
    }
    typed
}

fn ask(model: &mut Model, question: Question, now_ms: u64) {
    model.question = Some(question);
    model.quiet_until_ms = now_ms + QUIET_MS;
}

fn go(model: &mut Model, lines: isize) {
    let page = model.page();
    if let Some(open) = &mut model.open {
        return open.scroll(lines, page);
    }
    let last = model.items.len().saturating_sub(1);
    let place = model.place().saturating_add_signed(lines).min(last);
    model.selected = model.items.get(place).map(|item| item.id);
}

fn expand(model: &mut Model) {
    let (width, page) = (model.width, model.page());
    if let Some(open) = &mut model.open {
        open.is_full = !open.is_full;
        (open.top, open.seen) = (0, false);
        open.lay_out(width, page);
    }
}

/// Why nobody can decide about what is on the screen.
fn undecidable(model: &Model) -> Option<&'static str> {
    match &model.open {
        None => Some("open it first, with Enter"),
        Some(open) if open.detail.state != State::Pending => Some("it is decided, or over"),
        Some(_) => None,
    }
}

/// Why nobody can approve it yet.
fn obstacle(model: &Model) -> Option<&'static str> {
    let open = match (undecidable(model), &model.open) {
        (None, Some(open)) => open,
        (obstacle, _) => return obstacle,
    };
    if model.width < MIN_WIDTH || model.height < MIN_HEIGHT {
        return Some("the window is too small to see what it is");
    }
    match (open.is_complete(), open.seen) {
        (false, _) => Some("parts of it are not shown: look at everything first, with e"),
        (true, false) if open.detail.irreversible => {
            Some("this cannot be undone: go through all of it first, with Space")
        }
        (true, _) => None,
    }
}

/// What cannot be undone comes first, then what has waited longest.
fn arrive(model: &mut Model, mut items: Vec<Item>, now_ms: u64) {
    items.sort_by_key(|item| (!item.irreversible, item.issued, item.id));
    let known = |item: &Item| model.items.iter().any(|old| old.id == item.id);
    let is_new = !items.iter().all(known);
    let place = model.place();
    let stays = |id| items.iter().any(|item| item.id == id);
    if !model.selected.is_some_and(stays) {
        let place = place.min(items.len().saturating_sub(1));
        model.selected = items.get(place).map(|item| item.id);
    }
    model.items = items;
    // A list that moved under somebody's finger; a card that is open did not.
    if is_new && model.open.is_none() {
        model.quiet_until_ms = now_ms + QUIET_MS;
    }
}

fn show(model: &mut Model, detail: Detail, now_ms: u64) {
    let (width, page) = (model.width, model.page());
    match &mut model.open {
        Some(open) if open.detail.id == detail.id => {
            let decided = open.detail.state == State::Pending && detail.state != State::Pending;
            open.detail = detail;
            open.lay_out(width, page);
            if decided {
                model.question = None;
                if model.notice.is_empty() {
                    model.notice = format!("decided elsewhere: {}", open.word());
                }
                model.quiet_until_ms = now_ms + QUIET_MS;
            }
        }
        _ => {
            model.selected = Some(detail.id);
            model.open = Some(Open::new(detail, width, page));
            model.question = None;
            model.quiet_until_ms = now_ms + QUIET_MS;
        }
    }
}

/// How long keys do nothing after something new appeared.
pub(super) const QUIET_MS: u64 = 300;
const LONGEST: usize = 4096;
/// The smallest window in which somebody can read.
const MIN_WIDTH: u16 = 20;
const MIN_HEIGHT: u16 = 6;

#[cfg(test)]
mod tests;
