//! The API that clients of other daemons know.

use countersign_api::Role;
use countersign_canon::Json;

use crate::scene::{Answer, Scene, json};

const CASES: &str = include_str!("../../../../corpus/policy/decide.json");

fn fits(expect: &Json, answer: &Answer) -> bool {
    let text = |name: &str| expect.get(name).and_then(Json::as_str);
    if text("outcome_not").is_some() && (400..500).contains(&answer.status) {
        return true;
    }
    let found = answer.json();
    let outcome = found
        .get("outcome")
        .and_then(Json::as_str)
        .unwrap_or_default();
    let reason = found.get("reason").and_then(Json::as_str);
    answer.status == 200
        && text("outcome").is_none_or(|wanted| wanted == outcome)
        && text("outcome_not").is_none_or(|unwanted| unwanted != outcome)
        && text("reason").is_none_or(|wanted| Some(wanted) == reason)
        && expect
            .get("constraints")
            .is_none_or(|wanted| found.get("constraints") == Some(wanted))
}

#[test]
fn every_decision_case_over_http() {
    let corpus = json(CASES);
    let cases = corpus.get("cases").unwrap().as_array().unwrap();
    assert!(cases.len() >= 39);
    let scene = Scene::new(None);
    let token = scene.token(Role::Agent);
    for case in cases {
        let request = case.get("request").unwrap().to_sorted_ascii();
        let answer = scene.post(
            "/v1/policy/decide",
            &token,
            &String::from_utf8(request).unwrap(),
        );
        let id = case.get("id").and_then(Json::as_str).unwrap();
        let found = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            fits(case.get("expect").unwrap(), &answer),
            "{id}: {} {found}",
            answer.status
        );
    }
}

#[test]
fn a_callers_manifest_does_not_take_the_place_of_the_operators() {
    let scene = Scene::new(Some(r#"{"permissions":{"tools":["read_file"]}}"#));
    let question = |tool: &str| {
        format!(
            r#"{{"event":{{"event_type":"TOOL_CALL_PROPOSED","payload":{{"tool_name":"{tool}","args":{{}}}}}},"snapshot":{{}},"manifest":{{"permissions":{{"tools":["write_file"]}}}}}}"#
        )
    };
    let agent = scene.token(Role::Agent);
    let operator = scene.token(Role::Operator);
    let ask = |tool, token: &str| {
        scene
            .post("/v1/policy/decide", token, &question(tool))
            .text("outcome")
    };
    assert_eq!(ask("write_file", &agent), "deny");
    assert_eq!(ask("read_file", &agent), "allow");
    assert_eq!(ask("write_file", &operator), "allow");
    assert_eq!(ask("read_file", &operator), "deny");
    // Nothing of it was recorded.
    assert_eq!(scene.engine.store().reader().last_id().unwrap(), 0);
}

fn event(seq: Option<u64>, prev: Option<&str>, kind: &str, payload: &str) -> String {
    let seq = seq.map_or(String::new(), |seq| format!(r#","seq":{seq}"#));
    let prev = prev.map_or(String::new(), |prev| format!(r#","prev_hash":"{prev}""#));
    format!(r#"{{"session_id":"s1","event_type":"{kind}","payload":{payload}{seq}{prev}}}"#)
}

#[test]
fn events_are_chained_and_conflicts_are_told() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Agent);
    let post = |body: String| scene.post("/v1/events", &token, &body);
    let first = post(event(
        Some(0),
        None,
        "MODEL_CALL_STARTED",
        r#"{"call_id":"m1"}"#,
    ));
    assert_eq!(
        (first.status, first.json().get("seq").and_then(Json::as_u64)),
        (201, Some(0))
    );
    let hash = first.text("hash");
    assert_eq!(hash.len(), 64);
    assert_eq!(first.text("head.prev_hash"), hash);
    let again = post(event(
        Some(0),
        None,
        "MODEL_CALL_STARTED",
        r#"{"call_id":"m2"}"#,
    ));
    assert_eq!((again.status, again.text("code").as_str()), (409, "C0201"));
    let gap = post(event(Some(5), Some(&hash), "MEMORY_WRITE", "{}"));
    assert_eq!(gap.status, 409);
    let zeros = "0".repeat(64);
    assert_eq!(
        post(event(Some(1), Some(&zeros), "MEMORY_WRITE", "{}")).status,
        409
    );
    assert_eq!(post(event(Some(3), None, "MEMORY_WRITE", "{}")).status, 409);
    let second = post(event(
        Some(1),
        Some(&hash),
        "MODEL_CALL_FINISHED",
        r#"{"call_id":"m1"}"#,
    ));
    assert_eq!(second.status, 201);
    assert_eq!(post(event(Some(2), None, "MEMORY_WRITE", "{}")).status, 201);
    assert_eq!(post(event(None, None, "TERMINATION", "{}")).status, 201);
    let late = post(event(None, None, "MEMORY_WRITE", "{}"));
    assert_eq!((late.status, late.text("code").as_str()), (409, "C0202"));
    let verified = scene.get("/v1/sessions/s1/verify", &token).json();
    assert_eq!(verified.get("valid"), Some(&Json::from(true)));
    assert_eq!(verified.get("events").and_then(Json::as_u64), Some(4));
}

#[test]
fn a_proposed_call_is_decided_and_both_are_recorded() {
    let scene = Scene::new(Some(
        r#"{"permissions":{"tools":["read_file","write_file"],"approval_required":["write_file"],"budgets":{"max_tool_calls":3}}}"#,
    ));
    let token = scene.token(Role::Agent);
    let propose = |call: &str, tool: &str| {
        let payload =
            format!(r#"{{"call_id":"{call}","tool_name":"{tool}","args":{{"path":"/w/{call}"}}}}"#);
        scene.post(
            "/v1/events",
            &token,
            &event(None, None, "TOOL_CALL_PROPOSED", &payload),
        )
    };
    let allowed = propose("c1", "read_file");
    assert_eq!(
        (allowed.status, allowed.text("decision.outcome").as_str()),
        (201, "allow")
    );
    assert_eq!(allowed.json().get("seq").and_then(Json::as_u64), Some(0));
    let held = propose("c2", "write_file");
    assert_eq!(held.text("decision.outcome"), "require_approval");
    let denied = propose("c3", "exec");
    assert_eq!(denied.text("decision.reason"), "PERMISSION_UNDECLARED");
    let over = propose("c4", "read_file");
    assert_eq!(over.text("decision.reason"), "BUDGET_EXCEEDED");
    let events = scene.get("/v1/events?session_id=s1", &token).json();
    let kinds: Vec<&str> = events
        .get("events")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event.get("event_type").unwrap().as_str().unwrap())
        .collect();
    assert_eq!(
        kinds[..3],
        ["TOOL_CALL_PROPOSED", "POLICY_DECISION", "TOOL_CALL_ALLOWED"]
    );
    assert!(kinds.contains(&"TOOL_CALL_DENIED"));
    // A denied call cannot be said to have run.
    let ran = event(None, None, "TOOL_CALL_EXECUTED", r#"{"call_id":"c3"}"#);
    assert_eq!(scene.post("/v1/events", &token, &ran).status, 409);
    let ran = event(None, None, "TOOL_CALL_EXECUTED", r#"{"call_id":"c1"}"#);
    assert_eq!(scene.post("/v1/events", &token, &ran).status, 201);
    let result = event(
        None,
        None,
        "TOOL_RESULT",
        r#"{"call_id":"c1","content":"x"}"#,
    );
    assert_eq!(scene.post("/v1/events", &token, &result).status, 201);
    let snapshot = scene.get("/v1/sessions/s1/snapshot", &token).json();
    let state = snapshot.get("state").unwrap();
    assert_eq!(state.get("is_tainted"), Some(&Json::from(true)));
    assert_eq!(
        state.get("tool_calls_consumed").and_then(Json::as_u64),
        Some(4)
    );
}

#[test]
fn nobody_writes_decisions_but_the_engine() {
    let scene = Scene::new(None);
    for role in [Role::Agent, Role::Operator] {
        let token = scene.token(role);
        for kind in [
            "POLICY_DECISION",
            "TOOL_CALL_ALLOWED",
            "TOOL_CALL_DENIED",
            "APPROVAL_REQUESTED",
            "APPROVAL_DECIDED",
        ] {
            let answer = scene.post("/v1/events", &token, &event(None, None, kind, "{}"));
            assert_eq!(
                (answer.status, answer.text("code").as_str()),
                (422, "C0910"),
                "{kind}"
            );
        }
    }
    assert_eq!(scene.engine.store().reader().last_id().unwrap(), 0);
}

#[test]
fn verifying_recomputes_what_is_stored() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Agent);
    for number in 0..3 {
        let payload = format!(r#"{{"memory_key":"k{number}"}}"#);
        assert_eq!(
            scene
                .post(
                    "/v1/events",
                    &token,
                    &event(None, None, "MEMORY_WRITE", &payload)
                )
                .status,
            201
        );
    }
    let verify = || scene.get("/v1/sessions/s1/verify", &token).json();
    assert_eq!(verify().get("valid"), Some(&Json::from(true)));
    // Somebody changes a payload behind our back and leaves every hash as it was.
    let python = "import sqlite3,sys; db=sqlite3.connect(sys.argv[1]); \
        db.execute('DROP TRIGGER events_keep_content'); \
        db.execute(\"UPDATE events SET line=replace(line,'k1','k9') WHERE seq=1\"); db.commit()";
    let database = scene.folder.path().join("log.db");
    let database = match database.exists() {
        true => database,
        false => countersign_store::Folder::new(scene.folder.path()).database(),
    };
    let ran = std::process::Command::new("python3")
        .args(["-c", python])
        .arg(database)
        .status();
    assert!(ran.unwrap().success());
    let found = verify();
    assert_eq!(found.get("valid"), Some(&Json::from(false)));
    assert_eq!(found.get("first_bad_seq").and_then(Json::as_u64), Some(1));
}

#[test]
fn pages_of_events_lose_and_repeat_nothing() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Operator);
    for number in 0..30 {
        let body = format!(
            r#"{{"session_id":"s{}","event_type":"MEMORY_WRITE","payload":{{"memory_key":"k{number}"}}}}"#,
            number % 3
        );
        assert_eq!(scene.post("/v1/events", &token, &body).status, 201);
    }
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = scene
            .get(&format!("/v1/events?limit=7&cursor={cursor}"), &token)
            .json();
        let events = page.get("events").unwrap().as_array().unwrap().to_vec();
        seen.extend(
            events
                .iter()
                .map(|event| event.get("id").unwrap().as_u64().unwrap()),
        );
        match page.get("next").and_then(Json::as_str) {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, (1..=30).collect::<Vec<u64>>());
}
