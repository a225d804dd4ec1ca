//! Changes of verdicts, counted by what they have in common.

use std::collections::BTreeMap;

use countersign_canon::Json;
use countersign_event::Scope;

/// What a change is counted by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// What was decided: `allow`, `escalate`, `deny`, …
    pub from: String,
    /// What would have been.
    pub to: String,
    /// The rule that decided.
    pub from_rule: String,
    /// The rule that would have.
    pub to_rule: String,
    /// The tool.
    pub tool: String,
    /// The agent, if the log knows it.
    pub agent: String,
}

/// Changes, how often each was seen, and where to look.
#[derive(Debug, Default)]
pub struct Changes(BTreeMap<Change, Seen>);

#[derive(Debug, Default)]
struct Seen {
    count: u64,
    examples: Vec<(Scope, u64)>,
}

impl Changes {
    pub(super) fn add(&mut self, change: Change, scope: &Scope, seq: u64) {
        let change = self.kind(change);
        let seen = self.0.entry(change).or_default();
        seen.count += 1;
        if seen.examples.len() < MOST_EXAMPLES {
            seen.examples.push((scope.clone(), seq));
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (change, seen) in other.0 {
            let change = self.kind(change);
            let mine = self.0.entry(change).or_default();
            mine.count += seen.count;
            mine.examples.extend(seen.examples);
            // Whatever thread found them, the same ones are shown.
            mine.examples.sort_by(|one, other| {
                (one.0.session.as_str(), one.1).cmp(&(other.0.session.as_str(), other.1))
            });
            mine.examples.truncate(MOST_EXAMPLES);
        }
    }

    /// What a change is counted as. Names come from agents, who may make up as many as they like; past
    /// some number of kinds only the verdicts are told apart.
    fn kind(&self, change: Change) -> Change {
        match self.0.len() < MOST_KINDS || self.0.contains_key(&change) {
            true => change,
            false => Change {
                from_rule: OTHER.to_owned(),
                to_rule: OTHER.to_owned(),
                tool: OTHER.to_owned(),
                agent: String::new(),
                ..change
            },
        }
    }

    /// How many actions would have been judged differently.
    pub fn total(&self) -> u64 {
        self.0.values().map(|seen| seen.count).sum()
    }

    /// Each kind of change with its number and places to look at, the most frequent first.
    pub fn iter(&self) -> impl Iterator<Item = (&Change, u64, &[(Scope, u64)])> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.count));
        all.into_iter()
            .map(|(change, seen)| (change, seen.count, seen.examples.as_slice()))
    }

    /// The number of changes by something that they have in common.
    pub fn by<K: Ord>(&self, key: impl Fn(&Change) -> K) -> BTreeMap<K, u64> {
        let mut by = BTreeMap::new();
        for (change, seen) in &self.0 {
            *by.entry(key(change)).or_default() += seen.count;
        }
        by
    }

    /// The changes as a document.
    pub fn to_json(&self) -> Json {
        let one = |(change, count, examples): (&Change, u64, &[(Scope, u64)])| {
            let example = |(scope, seq): &(Scope, u64)| {
                Json::object([
                    ("tenant_id", Json::from(scope.tenant.as_str())),
                    ("session_id", Json::from(scope.session.as_str())),
                    ("seq", Json::from(*seq)),
                ])
            };
            Json::object([
                ("from", Json::from(change.from.as_str())),
                ("to", Json::from(change.to.as_str())),
                ("from_rule", Json::from(change.from_rule.as_str())),
                ("to_rule", Json::from(change.to_rule.as_str())),
                ("tool", Json::from(change.tool.as_str())),
                ("agent", Json::from(change.agent.as_str())),
                ("count", Json::from(count)),
                (
                    "examples",
                    Json::Array(examples.iter().map(example).collect()),
                ),
            ])
        };
        Json::Array(self.iter().map(one).collect())
    }
}

const MOST_EXAMPLES: usize = 3;
const MOST_KINDS: usize = 10_000;
const OTHER: &str = "(others)";
