//! Signs that a text speaks to the model rather than to its reader.
//!
//! Heuristics: they find the well-known forms and miss what is put in other words. A score is a
//! reason to look, to ask or to mark as tainted, never a reason to trust.

use std::collections::BTreeSet;

use countersign_canon::Json;
use regex_lite::Regex;

use super::texts;

pub(super) struct Injection {
    signs: Vec<(&'static str, u64, Regex)>,
}

impl Injection {
    pub(super) fn new() -> Self {
        let signs = SIGNS.iter().filter_map(|(name, weight, pattern)| {
            Some((*name, *weight, Regex::new(pattern).ok()?))
        });
        Self {
            signs: signs.collect(),
        }
    }

    /// `{label: clean | suspicious, score: 0..=100, signals: [...], places: [...]}`
    pub(super) fn look(&self, value: &Json) -> Json {
        let mut signals: BTreeSet<(&'static str, u64)> = BTreeSet::new();
        let mut places = Vec::new();
        texts::each(value, &mut |text| {
            let found = self.signals(text.text);
            if !found.is_empty() && places.len() < MOST_PLACES {
                places.push(Json::from(text.at.as_str()));
            }
            signals.extend(found);
        });
        let score: u64 = signals.iter().map(|(_, weight)| weight).sum();
        let label = match score >= SUSPICIOUS {
            true => "suspicious",
            false => "clean",
        };
        let names = signals.iter().map(|(name, _)| Json::from(*name));
        Json::object([
            ("label", Json::from(label)),
            ("score", score.min(100).into()),
            ("signals", Json::Array(names.collect())),
            ("places", Json::Array(places)),
        ])
    }

    fn signals(&self, text: &str) -> Vec<(&'static str, u64)> {
        let mut found = Vec::new();
        if text.chars().any(is_hidden) {
            found.push(("hidden_characters", 40));
        }
        let plain = plain(text);
        let matching = self
            .signs
            .iter()
            .filter(|(_, _, sign)| sign.is_match(&plain));
        found.extend(matching.map(|(name, weight, _)| (*name, *weight)));
        found
    }
}

/// Without what is not seen, in lower case, with single spaces.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_hidden(*c)) {
        if c.is_whitespace() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else {
            out.extend(c.to_lowercase());
        }
    }
    out
}

/// Characters that a reader does not see and a model reads: zero width, direction marks, tags.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{00ad}' | '\u{e0000}'..='\u{e007f}')
}

const SIGNS: &[(&str, u64, &str)] = &[
    (
        "ignore_instructions",
        60,
        r"\b(ignore|disregard|forget|override|bypass)\b.{0,40}\b(previous|prior|above|earlier|all|any|your|the|system)\b.{0,40}\b(instruction|prompt|rule|guideline|direction|context|policy|policies)",
    ),
    (
        "new_instructions",
        40,
        r"\b(new|updated|real|actual) (system )?(instruction|task|objective|prompt)s?\b ?(:|are|is)",
    ),
    (
        "role_change",
        40,
        r"\b(you are now|from now on you|act as|pretend (to be|you are)|you must now)\b",
    ),
    (
        "prompt_markup",
        50,
        r"<\|(im_start|im_end|system|user|assistant|endoftext)|\[/?inst\]|<<sys>>|</?(system|assistant)>|^ ?(system|assistant) ?:|### ?(instruction|system)",
    ),
    (
        "asks_for_prompt",
        40,
        r"\b(reveal|print|repeat|show|output|leak)\b.{0,30}\b(system prompt|your (instructions|prompt|rules)|initial prompt)",
    ),
    (
        "secrecy",
        40,
        r"\b(do not|don't|never) (tell|inform|mention|reveal|show|notify|alert)\b.{0,30}\b(user|human|operator|anyone)|without (telling|informing|asking) the (user|human|operator)",
    ),
    (
        "exfiltration",
        50,
        r"\b(send|post|upload|forward|exfiltrate|email|copy)\b.{0,60}\b(password|secret|api[ _-]?key|token|credential|env|\.ssh|conversation|history|file)s?\b.{0,60}\b(to|at)\b.{0,20}(https?://|@|www\.)",
    ),
    (
        "image_beacon",
        40,
        r"!\[[^\]]{0,200}\]\(https?://[^)]{0,500}\?[^)]{0,500}=",
    ),
    (
        "tool_imitation",
        40,
        r#"<(tool_call|function_call|tool_use|invoke|antml:invoke)\b|"tool_calls?" ?: ?[\[{]"#,
    ),
    (
        "jailbreak",
        50,
        r"\b(developer mode|dan mode|jailbreak|do anything now|no (restrictions|limitations|filters)|without (any )?(restrictions|limitations))\b",
    ),
    (
        "urgency",
        15,
        r"\b(important|urgent|attention|critical)\b ?[:!].{0,40}\b(assistant|ai|model|agent|chatbot|llm)\b",
    ),
];

const SUSPICIOUS: u64 = 40;
const MOST_PLACES: usize = 64;
