//! Which information a tool may see.

/// The labels that a clearance does not cover. A tool without a clearance was not asked about.
///
/// FAIL-CLOSED: a label outside the ladder is covered by itself alone, so two labels that cannot be
/// compared never flow.
pub(super) fn uncleared(clearance: Option<&str>, labels: &[String]) -> Vec<String> {
    let Some(clearance) = clearance else {
        return Vec::new();
    };
    labels
        .iter()
        .filter(|label| !covers(clearance, label))
        .cloned()
        .collect()
}

fn covers(clearance: &str, label: &str) -> bool {
    let step = |name: &str| LADDER.iter().position(|known| *known == name);
    clearance == label
        || step(clearance)
            .zip(step(label))
            .is_some_and(|(c, l)| c >= l)
}

/// From what everybody may see to what hardly anybody may.
const LADDER: [&str; 4] = ["public", "internal", "confidential", "secret"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(clearance: Option<&str>, labels: &[&str], expect: &[&str]) {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        assert_eq!(uncleared(clearance, &labels), expect);
    }

    #[test]
    fn information_flows_up_the_ladder_only() {
        for (at, clearance) in LADDER.iter().enumerate() {
            check(Some(clearance), &LADDER, &LADDER[at + 1..]);
        }
        check(Some("internal"), &[], &[]);
        check(None, &["secret"], &[]);
    }

    #[test]
    fn labels_outside_the_ladder_are_covered_by_themselves_alone() {
        check(Some("secret"), &["hr"], &["hr"]);
        check(
            Some("hr"),
            &["hr", "public", "(more labels)"],
            &["public", "(more labels)"],
        );
        check(Some("Secret"), &["secret"], &["secret"]);
    }
}
