//! The known name that an unknown one was probably meant to be.

/// The nearest known name, if one is near enough to be a slip of the hand.
pub fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let name: Vec<char> = name.chars().take(LONGEST).collect();
    let allowed = (name.len() / 3).clamp(1, 4);
    known
        .iter()
        .map(|candidate| (distance(&name, candidate), *candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many characters have to be inserted, removed or replaced (Levenshtein); case, `-` and `_`
/// count as half-right and cost nothing.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, a) in from.iter().enumerate() {
        let mut next = vec![index + 1];
        let mut left = index + 1;
        for ((b, diagonal), up) in to.iter().zip(&row).zip(row.iter().skip(1)) {
            let replaced = diagonal + usize::from(folded(*a) != folded(*b));
            left = replaced.min(up + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

fn folded(c: char) -> char {
    match c {
        '-' => '_',
        _ => c.to_ascii_lowercase(),
    }
}

const LONGEST: usize = 40;

#[cfg(test)]
mod tests;
