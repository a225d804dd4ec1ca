//! Sessions: page by page, and after their end.

use countersign_api::Role;
use countersign_canon::Json;

use crate::scene::Scene;

fn write(scene: &Scene, token: &str, session: &str) {
    let event = format!(
        r#"{{"session_id":"{session}","event_type":"MEMORY_WRITE","payload":{{"memory_key":"k"}}}}"#
    );
    assert_eq!(scene.post("/v1/events", token, &event).status, 201);
}

/// The sessions of each page, and the last cursor that was used.
fn pages(scene: &Scene, token: &str, limit: usize) -> (Vec<Vec<String>>, Option<String>) {
    let (mut pages, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let after = cursor.as_ref().map(|cursor| format!("&cursor={cursor}"));
        let path = format!("/v1/sessions?limit={limit}{}", after.unwrap_or_default());
        let answer = scene.get(&path, token);
        assert_eq!(answer.status, 200);
        let json = answer.json();
        let sessions = json.get("sessions").unwrap().as_array().unwrap();
        let name = |it: &Json| it.get("session_id").unwrap().as_str().unwrap().to_owned();
        pages.push(sessions.iter().map(name).collect());
        match json.get("next").and_then(Json::as_str) {
            Some(next) => cursor = Some(next.to_owned()),
            None => return (pages, cursor),
        }
    }
}

#[test]
fn sessions_come_page_by_page_and_agents_page_through_their_own() {
    let scene = Scene::new(None);
    let (one, two) = (
        scene.token_for(Role::Agent, "a", Some("acme"), None),
        scene.token_for(Role::Agent, "b", Some("acme"), None),
    );
    for number in 0..5 {
        write(&scene, &one, &format!("a{number}"));
        write(&scene, &two, &format!("b{number}"));
    }
    let auditor = scene.token(Role::Auditor);
    let (found, cursor) = pages(&scene, &auditor, 4);
    let lengths: Vec<usize> = found.iter().map(Vec::len).collect();
    assert_eq!(lengths, [4, 4, 2]);
    let all: Vec<String> = found.into_iter().flatten().collect();
    assert_eq!(
        all,
        ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4"]
    );
    let (own, _) = pages(&scene, &one, 2);
    assert_eq!(own, [vec!["a0", "a1"], vec!["a2", "a3"], vec!["a4"]]);
    // A cursor is good for the listing that it came from, and for nothing else.
    let stolen = format!("/v1/sessions?cursor={}", cursor.unwrap());
    assert_eq!(scene.get(&stolen, &one).status, 400);
    assert_eq!(scene.get("/v1/sessions?cursor=5", &auditor).status, 400);
}

#[test]
fn what_is_proposed_after_the_end_is_a_conflict_and_not_a_fault() {
    let manifest = r#"{"permissions":{"tools":["read_file"]}}"#;
    let scene = Scene::new(Some(manifest));
    let token = scene.token(Role::Agent);
    let action = r#"{"session_id":"s1","tool_name":"read_file","args":{}}"#;
    let begun = scene.post("/v1/actions", &token, action);
    assert_eq!(begun.status, 201);
    let end = r#"{"session_id":"s1","event_type":"TERMINATION","payload":{}}"#;
    assert_eq!(scene.post("/v1/events", &token, end).status, 201);
    let last = scene.engine.store().reader().last_id().unwrap();
    let proposed = r#"{"session_id":"s1","event_type":"TOOL_CALL_PROPOSED","payload":{"tool_name":"read_file","args":{}}}"#;
    let result = format!("/v1/actions/{}/result", begun.text("action_id"));
    let outcome = format!(r#"{{"permit":"{}","content":"x"}}"#, begun.text("permit"));
    for (path, body) in [
        ("/v1/actions", action),
        ("/v1/events", proposed),
        (result.as_str(), outcome.as_str()),
    ] {
        let answer = scene.post(path, &token, body);
        assert_eq!(
            (answer.status, answer.text("code").as_str()),
            (409, "C0202"),
            "{path}"
        );
        assert!(answer.text("detail").contains("TERMINATION"), "{path}");
    }
    assert_eq!(scene.engine.store().reader().last_id().unwrap(), last);
}

#[test]
fn the_trace_of_a_caller_is_recorded_with_what_it_proposes() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Agent);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let propose = |trace: &str, session: &str| {
        let headers = format!("Authorization: Bearer {token}\r\ntraceparent: {trace}\r\n");
        let body = format!(r#"{{"session_id":"{session}","tool_name":"x","args":{{}}}}"#);
        let answer = scene.say("POST", "/v1/actions", &headers, Some(&body));
        assert_eq!(answer.status, 201);
        let path = format!("/v1/events?session_id={session}&event_type=TOOL_CALL_PROPOSED");
        let events = scene.get(&path, &token).json();
        let event = events.get("events").unwrap().as_array().unwrap()[0].clone();
        let found = event.get("payload").unwrap().get("traceparent").cloned();
        found.and_then(Json::into_string)
    };
    assert_eq!(propose(trace, "s1").as_deref(), Some(trace));
    // What is no trace is no reason to refuse, and is not kept.
    assert_eq!(propose("00-hunter2-1-01", "s2"), None);
}
