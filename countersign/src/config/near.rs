//! What somebody may have meant who wrote a name that nobody knows.

use super::{KEYS, variable};
use crate::errors::{Code, Failure};

/// Perhaps that was meant: a key or a section that is written nearly so, or a key that goes on where this ends.
pub(super) fn near(name: &str) -> String {
    let sections = KEYS.iter().filter_map(|key| key.name.split_once('.'));
    let names = KEYS.iter().map(|key| key.name);
    let names = names.chain(sections.map(|(section, _)| section));
    let nearest = names.map(|known| (distance(name, known), known)).min();
    let longer = KEYS.iter().find(|key| key.name.starts_with(name));
    match (nearest, longer) {
        (Some((far, known)), _) if far <= 3 => format!("; `{known}`?"),
        (_, Some(longer)) => format!("; `{}`?", longer.name),
        _ => "; `countersign config show --origin` lists the keys".to_owned(),
    }
}

/// A variable that nobody reads and that is written nearly as one that sets a key.
pub(super) fn misspelt(variables: impl Iterator<Item = String>) -> Result<(), Failure> {
    let known: Vec<String> = KEYS.iter().map(|key| variable(key.name)).collect();
    let others = [
        "COUNTERSIGN_CONFIG",
        "COUNTERSIGN_TOKEN",
        "COUNTERSIGN_TOKEN_FILE",
    ];
    let ours = variables.filter(|name| name.starts_with("COUNTERSIGN_"));
    for name in ours.filter(|name| !known.contains(name) && !others.contains(&name.as_str())) {
        let near = known.iter().find(|known| distance(&name, known) <= 2);
        if let Some(near) = near {
            let text = format!("nothing reads the variable `{name}`; `{near}`?");
            return Err(Failure::new(Code::Settings, text));
        }
    }
    Ok(())
}

/// How many letters have to change to make one text of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut next = vec![above + 1];
        for (place, against) in other.chars().enumerate() {
            let old = |at: usize| row.get(at).copied().unwrap_or(usize::MAX - 1);
            let changed = old(place) + usize::from(letter != against);
            let left = next.last().copied().unwrap_or(usize::MAX - 1);
            next.push(changed.min(old(place + 1) + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
