//! What the reader kept, against the events of the pack.

use std::collections::BTreeMap;

use super::events::Events;
use super::{Noted, PackProblem, PackReport};
use crate::Selection;
use crate::expectation::{End, Expectation};

/// The pack as a whole was checked before; here it is only held against what the reader knows.
pub(super) fn check(
    noted: &Noted,
    events: &Events<'_>,
    report: &mut PackReport,
) -> Result<(), PackProblem> {
    let mut ends: BTreeMap<(&str, &str), End> = BTreeMap::new();
    let (mut contained, mut others) = (false, 0);
    for line in &events.lines {
        let (tenant, session) = (line.tenant_id.as_ref(), line.session_id.as_ref());
        if !noted.selection.takes(tenant, session) {
            others += 1;
            continue;
        }
        contained |= noted.contains == Some(line.hash);
        let end = ends.entry((tenant, session)).or_insert(End {
            head: None,
            count: 0,
        });
        end.head = Some(line.hash);
        end.count += 1;
    }
    let expected = Expectation {
        head: noted.head,
        count: noted.count,
        contains: noted.contains,
        checkpoint: None,
    };
    let ends: Vec<End> = ends.into_values().collect();
    match expected.check(&ends, contained, others) {
        Some(problem) => return Err(PackProblem::Noted(problem)),
        None if noted.selection != Selection::default() => {
            report.check("that events of the given session or tenant are in it");
        }
        None => {}
    }
    expected.words().for_each(|given| report.check(given));
    Ok(())
}
