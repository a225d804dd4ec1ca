//! A session that was recorded once: the state before each call is the one that its decision names.
//!
//! This is the fold of exact replay (`crates/replay/tests/recorded.rs` takes the decisions again, too), and
//! quick enough to be done for every change of the reducer: `.ci/reducer-mutations`.

use std::collections::HashMap;
use std::path::Path;

use countersign_session::Snapshot;
use serde_json::Value;

use crate::history::{Event, apply};

#[test]
fn every_decision_names_the_state_that_the_events_fold_to() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/replay/recorded.json");
    let recorded: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let mut snapshot = Snapshot::default();
    let mut before = HashMap::new();
    let mut compared = 0;
    for (seq, event) in recorded["events"].as_array().unwrap().iter().enumerate() {
        let (time, kind) = (event[0].as_u64().unwrap(), event[1].as_str().unwrap());
        let call = event[2]["call_id"].as_str().unwrap_or_default().to_owned();
        match kind {
            "TOOL_CALL_PROPOSED" => {
                before.insert(call, snapshot.hash().to_string());
            }
            "POLICY_DECISION" => {
                // One that people have taken names no state.
                if let Some(named) = event[2]["snapshot_hash"].as_str() {
                    assert_eq!(before[&call], named, "event {seq}");
                    compared += 1;
                }
            }
            _ => {}
        }
        let next = Event::new(time, kind.parse().unwrap(), &event[2].to_string());
        apply(&mut snapshot, &next).unwrap();
    }
    assert!(compared > 60, "{compared}");
}
