//! How the inbox looks.

use countersign_approval::UnixMs;
use countersign_display::Kind;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;

use super::keys::KEYS;
use super::model::{Item, Model, Open, Question};
use super::row::Row;
use crate::command::approval::card::duration;
use crate::output::inline;

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let lines = match (&model.question, &model.open) {
        (Some(Question::Help), _) => help(),
        (_, Some(open)) => card(open, model),
        (_, None) => list(model),
    };
    let last = area.height.saturating_sub(1);
    put(frame, title(model), 0);
    for (line, row) in lines.into_iter().take(model.page()).zip(2..last) {
        put(frame, line, row);
    }
    put(
        frame,
        Line::from(notice(model)).style(bold()),
        last.saturating_sub(1),
    );
    put(frame, footer(model), last);
}

fn put(frame: &mut Frame<'_>, line: Line<'_>, row: u16) {
    let area = frame.area();
    if row < area.height {
        let area = Rect::new(area.x, area.y + row, area.width, 1);
        frame.render_widget(Clear, area);
        frame.render_widget(line, area);
    }
}

fn title(model: &Model) -> Line<'static> {
    let held = model.items.len();
    let text = match &model.open {
        None => format!("{held} held, for {}", inline(&model.person)),
        Some(open) => {
            let (from, to) = (open.top + 1, (open.top + model.page()).min(open.rows.len()));
            let rest = match open.is_complete() {
                true => "",
                false => ", long texts cut",
            };
            let (word, all) = (open.word(), open.rows.len());
            format!("{word}  lines {from}–{to} of {all}{rest}")
        }
    };
    Line::from(text).style(Style::new().add_modifier(Modifier::REVERSED))
}

fn list(model: &Model) -> Vec<Line<'static>> {
    if model.items.is_empty() {
        return vec![Line::from("nothing is held")];
    }
    let place = model.place();
    let first = place.saturating_sub(model.page().saturating_sub(1));
    let items = model.items.iter().enumerate().skip(first);
    items
        .map(|(number, item)| {
            let style = match number == place {
                true => Style::new().add_modifier(Modifier::REVERSED),
                false => Style::new(),
            };
            let mark = if number == place { "▸" } else { " " };
            Line::from(format!("{mark} {}", entry(item, model.time))).style(style)
        })
        .collect()
}

fn entry(item: &Item, time: UnixMs) -> String {
    let age = duration(time.distance(item.issued));
    let left = match item.decide_by {
        Some(end) if time.is_before(end) => format!("{} left", duration(time.distance(end))),
        Some(_) => "over".to_owned(),
        None => "waits".to_owned(),
    };
    let (code, risk) = (&item.code, item.risk);
    let (what, who) = (inline(&item.what), inline(&item.who));
    format!("{code}  {age:>5}  {left:>10}  {risk:<15}  {what}  {who}")
}

fn card(open: &Open, model: &Model) -> Vec<Line<'static>> {
    let rows = open.rows.iter().skip(open.top).take(model.page());
    rows.map(|row| marked(row, model.colour)).collect()
}

fn marked(row: &Row, colour: bool) -> Line<'static> {
    let spans = row.0.iter();
    let spans = spans.map(|(kind, text)| Span::styled(text.clone(), style(*kind, colour)));
    Line::from(spans.collect::<Vec<_>>())
}

/// Colours say nothing that the text does not.
fn style(kind: Kind, colour: bool) -> Style {
    let plain = Style::new();
    match kind {
        Kind::Warning | Kind::Escape | Kind::Truncation if colour => bold().fg(Color::Yellow),
        Kind::Warning | Kind::Escape | Kind::Truncation | Kind::Heading => bold(),
        Kind::Key if colour => plain.fg(Color::Cyan),
        Kind::Gutter | Kind::Mark | Kind::Note => plain.add_modifier(Modifier::DIM),
        _ => plain,
    }
}

fn notice(model: &Model) -> String {
    let typed = match (&model.question, &model.open) {
        (Some(Question::Code(typed)), Some(open)) => {
            let what = match open.detail.irreversible {
                true => "this cannot be undone; type all 16 digits of its code",
                false => "type its code",
            };
            format!(
                "{what} to approve ({}): {}",
                open.detail.code,
                inline(typed)
            )
        }
        (Some(Question::Reason(typed)), Some(_)) => {
            format!("why not? Enter denies: {}", inline(typed))
        }
        _ => inline(&model.notice),
    };
    // The end of what is typed stays in sight.
    let width = usize::from(model.width);
    let hidden = typed.chars().count().saturating_sub(width);
    typed.chars().skip(hidden).collect()
}

fn footer(model: &Model) -> Line<'static> {
    let text = match &model.question {
        Some(Question::Help) => "any key: back".to_owned(),
        Some(_) => "Esc: decide nothing".to_owned(),
        None => {
            let short = |name: &str| name.chars().count() == 1;
            let keys = KEYS.iter().filter(|binding| short(binding.name));
            let keys: Vec<String> = keys
                .map(|binding| {
                    let word = binding.help.split([',', ' ']).next().unwrap_or_default();
                    format!("{} {word}", binding.name)
                })
                .collect();
            format!("Enter open · {}", keys.join(" · "))
        }
    };
    Line::from(text).style(Style::new().add_modifier(Modifier::DIM))
}

fn help() -> Vec<Line<'static>> {
    let keys = KEYS.iter();
    keys.map(|binding| Line::from(format!("{:<12} {}", binding.name, binding.help)))
        .collect()
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}
