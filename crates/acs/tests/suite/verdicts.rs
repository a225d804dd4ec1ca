//! What a verdict carries on.

use countersign_acs::{Mode, Point};

use crate::scene::{json, saying};

#[test]
fn evidence_and_labels_come_back_and_absent_members_are_left_out() {
    let snapshot = json(r#"{"input":1}"#);
    let runtime = saying(
        r#"{"decision":"allow","result_labels":["internal","confidential"],
            "evidence":{"artefact":"sha256:ab","verification_pointers":{"k":"https://x"}}}"#,
    );
    let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    assert_eq!(
        found.to_json().get("verdict"),
        Some(&json(
            r#"{"decision":"allow","result_labels":["internal","confidential"],
                "evidence":{"artefact":"sha256:ab","verification_pointers":{"k":"https://x"}}}"#
        ))
    );
    let runtime = saying(r#"{"decision":"allow","result_labels":[],"reason":null}"#);
    let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
    assert_eq!(
        found.to_json().get("verdict"),
        Some(&json(r#"{"decision":"allow"}"#))
    );
}

#[test]
fn only_three_decisions_permit() {
    let snapshot = json(r#"{"input":1}"#);
    for (answer, permits) in [
        (r#"{"decision":"allow"}"#, true),
        (r#"{"decision":"warn"}"#, true),
        (
            r#"{"decision":"transform","transform":{"path":"$policy_target","value":2}}"#,
            true,
        ),
        (r#"{"decision":"escalate"}"#, false),
        (r#"{"decision":"deny"}"#, false),
    ] {
        let runtime = saying(answer);
        let found = runtime.evaluate(Point::Input, &snapshot, Mode::Enforce);
        assert_eq!(found.verdict().decision().permits(), permits, "{answer}");
    }
}
