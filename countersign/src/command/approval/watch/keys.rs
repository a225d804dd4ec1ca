//! The keys of the inbox: one table, from which the help is made as well.

/// A key as the inbox understands it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Interrupt,
}

/// What a key does outside of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Down,
    Up,
    PageDown,
    PageUp,
    Open,
    Back,
    Approve,
    Deny,
    Full,
    Refresh,
    Help,
    Quit,
}

pub(super) struct Binding {
    pub(super) keys: &'static [Key],
    /// How the keys are written.
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) act: Act,
}

/// Every key that does something.
pub(super) const KEYS: &[Binding] = &[
    bind(&[Key::Char('j'), Key::Down], "j ↓", "down", Act::Down),
    bind(&[Key::Char('k'), Key::Up], "k ↑", "up", Act::Up),
    bind(&[Key::PageDown], "PgDn", "a page down", Act::PageDown),
    bind(&[Key::PageUp], "PgUp", "a page up", Act::PageUp),
    bind(
        &[Key::Enter, Key::Char(' ')],
        "Enter Space",
        "open; then a page down",
        Act::Open,
    ),
    bind(&[Key::Escape], "Esc", "back", Act::Back),
    bind(
        &[Key::Char('a')],
        "a",
        "approve, by typing its code",
        Act::Approve,
    ),
    bind(&[Key::Char('d')], "d", "deny, with a reason", Act::Deny),
    bind(
        &[Key::Char('e')],
        "e",
        "everything, or long texts cut",
        Act::Full,
    ),
    bind(&[Key::Char('r')], "r", "look again now", Act::Refresh),
    bind(&[Key::Char('?')], "?", "this help", Act::Help),
    bind(&[Key::Char('q'), Key::Interrupt], "q", "quit", Act::Quit),
];

pub(super) fn act(key: Key) -> Option<Act> {
    let binding = KEYS.iter().find(|binding| binding.keys.contains(&key));
    binding.map(|binding| binding.act)
}

const fn bind(keys: &'static [Key], name: &'static str, help: &'static str, act: Act) -> Binding {
    Binding {
        keys,
        name,
        help,
        act,
    }
}
