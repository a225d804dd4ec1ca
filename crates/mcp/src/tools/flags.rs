//! Text in a definition that looks as if it were meant for the model, not about the tool.
//!
//! A flag is a hint for the person who reviews a definition. Its absence means nothing.

use countersign_canon::Json;
use countersign_display::is_invisible;

/// Something for a reviewer to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What is odd about it.
    pub suspicion: Suspicion,
}

/// What is odd about a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspicion {
    /// It tells the model what to do.
    Instructions,
    /// It wants something kept from the person.
    Secrecy,
    /// It is marked up like a prompt.
    Markup,
    /// It has characters that nobody sees.
    Invisible,
    /// It steers a terminal.
    Control,
    /// It has a gap that pushes text out of sight.
    Gap,
}

impl Suspicion {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instructions => "tells the model what to do",
            Self::Secrecy => "wants something kept from the person",
            Self::Markup => "is marked up like a prompt",
            Self::Invisible => "has characters that nobody sees",
            Self::Control => "steers a terminal",
            Self::Gap => "has a gap that pushes text out of sight",
        }
    }
}

/// Everything in a definition that is odd. Names of members count as text.
pub fn flags(definition: &Json) -> Vec<Flag> {
    let mut flags = Vec::new();
    walk(definition, String::new(), &mut flags);
    flags
}

fn walk(value: &Json, at: String, flags: &mut Vec<Flag>) {
    match value {
        Json::String(text) => look(text, &at, flags),
        Json::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                walk(element, format!("{at}/{index}"), flags);
            }
        }
        Json::Object(members) => {
            for (key, value) in members {
                let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                look(key, &place, flags);
                walk(value, place, flags);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn look(text: &str, at: &str, flags: &mut Vec<Flag>) {
    let plain = plain(text);
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| plain.contains(phrase));
    let found = [
        (says(INSTRUCTIONS), Suspicion::Instructions),
        (says(SECRECY) || is_silent(&plain), Suspicion::Secrecy),
        (says(MARKUP), Suspicion::Markup),
        (text.chars().any(is_invisible), Suspicion::Invisible),
        (text.chars().any(is_control), Suspicion::Control),
        (has_gap(text), Suspicion::Gap),
    ];
    for (_, suspicion) in found.into_iter().filter(|(is, _)| *is) {
        flags.push(Flag {
            pointer: at.to_owned(),
            suspicion,
        });
    }
}

/// Whether something is to happen that nobody notices.
fn is_silent(plain: &str) -> bool {
    let benign = |text: String, phrase: &&str| text.replace(phrase, "");
    let rest = SILENTLY.iter().fold(plain.to_owned(), benign);
    rest.contains("silently")
}

/// Lower case, without what nobody sees, words parted by single spaces.
fn plain(text: &str) -> String {
    let visible: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let lower = visible.to_lowercase();
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\r' | '\t')
}

fn has_gap(text: &str) -> bool {
    let mut blank = 0;
    text.chars().any(|c| {
        blank = if c.is_whitespace() { blank + 1 } else { 0 };
        blank >= GAP
    })
}

const INSTRUCTIONS: &[&str] = &[
    "ignore all previous",
    "ignore any previous",
    "ignore previous",
    "ignore the above",
    "disregard previous",
    "disregard all",
    "before using this tool",
    "before you use this tool",
    "before calling",
    "after using this tool",
    "you must first",
    "you must always",
    "always call this",
    "always use this tool",
    "instead of the",
    "system prompt",
    "your instructions",
    "new instructions",
    "you are now",
    "read the file",
    "pass its content",
    "include the contents of",
    "~/.ssh",
    "id_rsa",
    ".env file",
    "api key",
];
const SECRECY: &[&str] = &[
    "do not tell",
    "don't tell",
    "do not mention",
    "don't mention",
    "never mention",
    "do not inform",
    "without telling",
    "without informing",
    "keep this secret",
    "hide this from",
    "not reveal",
];
/// What a program does so when nothing is wrong, or wrong with itself.
const SILENTLY: &[&str] = &[
    "succeed silently",
    "succeeds silently",
    "silently succeed",
    "fail silently",
    "fails silently",
    "silently fail",
];
const MARKUP: &[&str] = &[
    "<important>",
    "<system",
    "</system",
    "<instructions",
    "<secret",
    "<hidden",
    "[inst]",
    "<|im_start|>",
    "<!--",
    "### instruction",
];
const GAP: usize = 60;
