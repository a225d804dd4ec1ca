use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::row::Row;
use super::super::view;
use super::*;

const SHORT: &str = "9c1d33b0";
const TYPED: &str = "9c1d33b0aabbccdd";

fn id(number: u8) -> ApprovalId {
    ApprovalId::from_random([number; 16])
}

fn item(number: u8, irreversible: bool) -> Item {
    Item {
        id: id(number),
        code: SHORT.to_owned(),
        irreversible,
        risk: if irreversible {
            "irreversible"
        } else {
            "mutate-local"
        },
        what: format!("tool{number}"),
        who: "agent:coder".to_owned(),
        issued: UnixMs::new(u64::from(number) * 1000),
        decide_by: None,
    }
}

/// A request of sixty lines; its summary has two and is not complete.
fn detail(number: u8, irreversible: bool) -> Detail {
    let line = |number: usize| Row::says(&format!("│ line {number}"));
    Detail {
        id: id(number),
        state: State::Pending,
        irreversible,
        code: if irreversible { TYPED } else { SHORT }.to_owned(),
        summary: vec![line(1), Row::says("[truncated]")],
        full: (1..=60).map(line).collect(),
        summary_is_complete: false,
    }
}

struct Scene {
    model: Model,
    now_ms: u64,
    effects: Vec<Effect>,
}

impl Scene {
    /// Two requests: 1 can be undone, 2 cannot.
    fn new() -> Self {
        let mut scene = Self {
            model: Model::new("dana", false),
            now_ms: 0,
            effects: Vec::new(),
        };
        scene.tell(Message::Items(
            vec![item(1, false), item(2, true)],
            UnixMs::new(60_000),
        ));
        scene
    }

    fn tell(&mut self, message: Message) {
        match update(&mut self.model, message, self.now_ms) {
            // What the terminal around it would do.
            Some(Effect::Open(open)) => {
                let irreversible = open == id(2);
                let number = if irreversible { 2 } else { 1 };
                self.tell(Message::Detail(Box::new(detail(number, irreversible))));
            }
            Some(effect) => self.effects.push(effect),
            None => {}
        }
    }

    fn key(&mut self, key: Key) {
        self.tell(Message::Key(key));
    }

    /// Types slowly. `\n` is Enter, `\x1b` Escape.
    fn types(mut self, text: &str) -> Self {
        for character in text.chars() {
            self.now_ms += 1000;
            self.key(match character {
                '\n' => Key::Enter,
                '\x1b' => Key::Escape,
                '\x08' => Key::Backspace,
                other => Key::Char(other),
            });
        }
        self
    }

    fn screen(&self) -> String {
        let (width, height) = (self.model.width, self.model.height);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| view::draw(&self.model, frame))
            .unwrap();
        terminal.backend().to_string()
    }
}

/// After these keys the screen shows this.
fn check(keys: &str, expect: &str) {
    let screen = Scene::new().types(keys).screen();
    assert!(
        screen.contains(expect),
        "{keys:?}: no {expect:?} in\n{screen}"
    );
}

/// These keys lead to this, and nothing else.
fn decides(keys: &str, expect: &[Effect]) {
    assert_eq!(Scene::new().types(keys).effects, expect, "{keys:?}");
}

#[test]
fn what_cannot_be_undone_stands_first() {
    check("", "2 held, for dana");
    check("", "▸ 9c1d33b0");
    let screen = Scene::new().screen();
    let (first, second) = (screen.find("tool2").unwrap(), screen.find("tool1").unwrap());
    assert!(first < second);
    check(
        "j",
        "▸ 9c1d33b0    59s       waits  mutate-local     tool1  agent:coder",
    );
}

#[test]
fn help_is_made_from_the_table() {
    for binding in super::super::keys::KEYS {
        check("?", binding.help);
    }
    check("?x", "held, for dana");
}

#[test]
fn p01_enter_never_approves() {
    decides("\n\n\n\n\n\n\n\n", &[]);
    decides("j\nea\n\n\n", &[]);
    decides("j\nea9c1d33b\n\n", &[]);
}

#[test]
fn an_approval_needs_its_code() {
    let approved = || Effect::Decide(id(1), Choice::Approve);
    decides("j\nea9c1d33b0", &[approved()]);
    decides("j\nea9c1d33c\x08b0", &[approved()]);
    decides("j\nea9c1d33b1", &[]);
    check("j\nea9c1d33b1", "that is not its code");
    decides("j\nea9c1d\x1b33b0", &[]);
    decides("ja9c1d33b0", &[]);
    check("ja", "open it first");
}

#[test]
fn h05_what_is_not_shown_in_full_cannot_be_approved() {
    decides("j\na9c1d33b0", &[]);
    check("j\na", "parts of it are not shown");
    check("j\nea", "type its code to approve (9c1d33b0)");
    // Enter is an answer too, and a wrong one closes the question.
    check("j\neax\n", "that is not its code");
    check("j\nea\n", "type its code to approve");
}

#[test]
fn p03_what_cannot_be_undone_is_read_to_its_end_and_needs_the_long_code() {
    check("\nea", "go through all of it first");
    decides("\nea9c1d33b0aabbccdd", &[]);
    let read = "\ne   ";
    check(&format!("{read}a"), "type all 16 digits");
    decides(&format!("{read}a9c1d33b0"), &[]);
    decides(
        &format!("{read}a9c1d33b0aabbccdd"),
        &[Effect::Decide(id(2), Choice::Approve)],
    );
    // The other view has to be read again.
    check(&format!("{read}eea"), "go through all of it first");
}

#[test]
fn p02_keys_for_the_last_screen_do_nothing() {
    let mut scene = Scene::new().types("j\ne");
    scene.now_ms += 1000;
    scene.key(Key::Char('a'));
    for character in SHORT.chars() {
        scene.now_ms += 10;
        scene.key(Key::Char(character));
    }
    assert_eq!(scene.effects, []);
    assert_eq!(scene.model.question, Some(Question::Code(String::new())));
    scene.now_ms += QUIET_MS;
    scene = scene.types(SHORT);
    assert_eq!(scene.effects.len(), 1);

    // A new request must not slip under a finger that is about to open another.
    let mut scene = Scene::new();
    scene.now_ms += 1000;
    let items = vec![item(0, true), item(1, false), item(2, true)];
    scene.tell(Message::Items(items, UnixMs::new(0)));
    scene.now_ms += QUIET_MS - 1;
    scene.key(Key::Enter);
    assert!(scene.model.open.is_none());
    scene.now_ms += 1;
    scene.key(Key::Enter);
    assert_eq!(scene.model.open_id(), Some(id(2)));
}

#[test]
fn a_denial_has_a_reason_and_can_be_left() {
    let denied = |reason: &str| Effect::Decide(id(1), Choice::Deny(reason.to_owned()));
    decides("j\ndtoo dear\n", &[denied("too dear")]);
    decides("j\nd\n", &[denied("")]);
    decides("j\ndtoo dear\x1b\n", &[]);
    check("j\ndtoo d", "why not? Enter denies: too d");
    check("jd", "open it first");
}

#[test]
fn o01_what_another_decides_ends_the_question() {
    let mut scene = Scene::new().types("j\nea9c1d33b");
    let mut decided = detail(1, false);
    decided.state = State::Approved;
    scene.tell(Message::Detail(Box::new(decided)));
    assert!(scene.screen().contains("decided elsewhere: APPROVED ✓"));
    scene = scene.types("0a");
    assert_eq!(scene.effects, []);
    assert!(scene.screen().contains("it is decided, or over"));
}

#[test]
fn the_selection_stays_with_its_request() {
    let mut scene = Scene::new().types("j");
    scene.tell(Message::Items(vec![item(1, false)], UnixMs::new(0)));
    assert_eq!(scene.model.selected, Some(id(1)));
    scene.tell(Message::Items(Vec::new(), UnixMs::new(0)));
    assert_eq!(scene.model.selected, None);
    assert!(scene.screen().contains("nothing is held"));
    scene.now_ms += 1000;
    scene.key(Key::Enter);
    assert!(scene.model.open.is_none());
}

#[test]
fn every_line_of_a_card_can_be_reached_in_any_window() {
    for (width, height) in [(80, 24), (20, 6), (7, 6), (200, 100)] {
        let mut scene = Scene::new();
        scene.tell(Message::Resize(width, height));
        scene = scene.types("\ne");
        let mut seen = String::new();
        for _ in 0..400 {
            seen.push_str(&scene.screen());
            let before = scene.model.open.as_ref().unwrap().top;
            scene = scene.types("j");
            if scene.model.open.as_ref().unwrap().top == before {
                break;
            }
        }
        assert!(
            scene.model.open.as_ref().unwrap().seen,
            "{width} × {height}"
        );
        for row in &scene.model.open.as_ref().unwrap().rows {
            let row = row.text();
            assert!(seen.contains(row.trim_end()), "{width} × {height}: {row}");
        }
    }
}

#[test]
fn nobody_approves_in_a_window_that_shows_nothing() {
    let mut scene = Scene::new();
    scene.tell(Message::Resize(80, 5));
    scene = scene.types("j\nea");
    assert_eq!(scene.model.question, None);
    scene.tell(Message::Resize(80, 24));
    scene = scene.types("a");
    assert!(scene.model.question.is_some());
}

#[test]
fn leaving_is_always_possible() {
    decides("q", &[Effect::Quit]);
    for keys in ["", "\n", "\nd", "?"] {
        let mut scene = Scene::new().types(keys);
        scene.key(Key::Interrupt);
        assert_eq!(scene.effects, [Effect::Quit], "{keys:?}");
    }
}
