//! Every route and every role: what the table says is what the door does.

use std::io::Write as _;

use countersign_api::{Permission, ROUTES, Role, Verb};

use crate::scene::{Answer, Scene};

/// A path of the route that leads nowhere in particular.
fn path(route: &str) -> String {
    let parts = route.split('/').map(|part| match part.starts_with('{') {
        true => "nothing",
        false => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn every_route_answers_every_role_as_the_table_says() {
    let scene = Scene::new(None);
    for role in Role::ALL {
        let token = scene.token(role);
        for route in ROUTES {
            let body = (route.method != Verb::Get).then_some("{}");
            let method = route.method.as_str();
            let answer = scene.ask(method, &path(route.path), Some(&token), body);
            let name = format!("{role} {method} {}", route.path);
            assert_ne!(answer.status, 0, "{name}");
            assert!(answer.status < 500, "{name}: {}", answer.status);
            if answer.header("content-type") == Some("text/event-stream") {
                assert!(role.may(route.permission), "{name}");
                continue;
            }
            let is_refused = answer.status == 403 && answer.text("code") == "C0902";
            assert_eq!(
                is_refused,
                !role.may(route.permission),
                "{name}: {}",
                answer.status
            );
            if route.permission != Permission::Enter {
                assert_ne!(answer.status, 401, "{name}");
            }
        }
    }
}

#[test]
fn nothing_answers_without_a_token_but_health() {
    let scene = Scene::new(None);
    let operator = scene.token(Role::Operator);
    let last = if operator.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{last}", &operator[..operator.len() - 1]);
    assert_eq!(scene.get("/v1/me", &operator).status, 200);
    assert_eq!(scene.get("/v1/me", &wrong).status, 401);
    let mut open = Vec::new();
    for route in ROUTES {
        let body = (route.method != Verb::Get).then_some("{}");
        let method = route.method.as_str();
        for token in [None, Some("x"), Some(""), Some("cst_0123456789abcdef_00")] {
            let answer = scene.ask(method, &path(route.path), token, body);
            match answer.status {
                401 => assert_eq!(answer.text("code"), "C0901"),
                // Whoever comes with so many wrong tokens is not even looked at.
                429 => assert!(token.is_some()),
                status => open.push((status, route.path)),
            }
        }
    }
    open.dedup();
    // The files of pages are the same for everybody, and stand in the binary.
    let known = [(200, "/healthz"), (200, "/readyz"), (404, "/assets/{name}")];
    assert_eq!(open, known);
    // What is not there is not told to strangers either.
    assert_eq!(scene.ask("GET", "/v1/nothing", None, None).status, 401);
    assert_eq!(scene.get("/v1/nothing", &operator).status, 404);
    let wrong_method = scene.ask("DELETE", "/v1/events", Some(&operator), None);
    assert_eq!(wrong_method.status, 405);
    assert_eq!(wrong_method.header("allow"), Some("POST, GET"));
}

#[test]
fn agents_see_their_own_sessions_only() {
    let scene = Scene::new(None);
    let mine = scene.token_for(Role::Agent, "a", Some("acme"), None);
    let other = scene.token_for(Role::Agent, "b", Some("acme"), None);
    let foreign = scene.token_for(Role::Agent, "c", Some("other"), None);
    let bound = scene.token_for(Role::Agent, "d", Some("acme"), Some("s9"));
    let auditor = scene.token(Role::Auditor);
    let event = r#"{"session_id":"s1","event_type":"MEMORY_WRITE","payload":{"memory_key":"k"}}"#;
    assert_eq!(scene.post("/v1/events", &mine, event).status, 201);
    for path in [
        "/v1/sessions/s1",
        "/v1/sessions/s1/snapshot",
        "/v1/sessions/s1/verify",
        "/v1/events?session_id=s1",
    ] {
        assert_eq!(scene.get(path, &mine).status, 200, "{path}");
        assert_eq!(scene.get(path, &other).status, 404, "{path}");
        assert_eq!(scene.get(path, &foreign).status, 404, "{path}");
        assert_eq!(scene.get(path, &bound).status, 403, "{path}");
        let all = format!(
            "{path}{}tenant_id=acme",
            if path.contains('?') { "&" } else { "?" }
        );
        assert_eq!(scene.get(&all, &auditor).status, 200, "{path}");
        assert_eq!(scene.get(&all, &foreign).status, 403, "{path}");
    }
    // Nor do they write into others', nor take over what others have begun.
    assert_eq!(scene.post("/v1/events", &other, event).status, 403);
    assert_eq!(scene.post("/v1/events", &bound, event).status, 403);
    assert_eq!(scene.get("/v1/events", &mine).status, 400);
    let listed = |token: &str| {
        let answer = scene.get("/v1/sessions", token).json();
        answer.get("sessions").unwrap().as_array().unwrap().len()
    };
    assert_eq!((listed(&mine), listed(&other), listed(&auditor)), (1, 0, 1));
}

#[test]
fn a_session_that_began_elsewhere_is_no_agents() {
    use countersign_event::{EventType, Payload, Scope};
    let scene = Scene::new(None);
    let token = scene.token(Role::Agent);
    let elsewhere = Scope::new("acme", "s1").unwrap();
    let payload = Payload::admit(EventType::Termination, crate::scene::json("{}")).unwrap();
    let recorded = scene
        .engine
        .record(&elsewhere, EventType::MemoryWrite, payload.clone());
    assert!(recorded.is_ok());
    let event = r#"{"session_id":"s1","event_type":"MEMORY_WRITE","payload":{}}"#;
    assert_eq!(scene.post("/v1/events", &token, event).status, 403);
    assert_eq!(scene.get("/v1/sessions/s1", &token).status, 404);
}

#[test]
fn tokens_end() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Auditor);
    assert_eq!(scene.get("/v1/me", &token).status, 200);
    let id = token.split('_').nth(1).unwrap();
    assert!(scene.engine.store().revoke_token(id, 2).unwrap());
    assert!(!scene.engine.store().revoke_token(id, 3).unwrap());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while scene.get("/v1/me", &token).status != 401 {
        assert!(
            std::time::Instant::now() < until,
            "the door never heard of it"
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_browser_comes_in_once_and_pages_must_be_ours() {
    let scene = Scene::new(None);
    let link = scene.api.login_path().unwrap();
    let entered = scene.ask("GET", &link, None, None);
    assert_eq!(entered.status, 303);
    assert_eq!(scene.ask("GET", &link, None, None).status, 401);
    let cookie = entered.header("set-cookie").unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    let me = scene.say("GET", "/v1/me", &cookie, None);
    assert_eq!((me.status, me.text("role").as_str()), (200, "operator"));
    let event = Some(r#"{"session_id":"s","event_type":"MEMORY_WRITE","payload":{}}"#);
    let refused = scene.say("POST", "/v1/events", &cookie, event);
    assert_eq!(
        (refused.status, refused.text("code").as_str()),
        (403, "C0909")
    );
    let ours = format!("{cookie}Countersign-Csrf: {}\r\n", me.text("csrf_token"));
    assert_eq!(scene.say("POST", "/v1/events", &ours, event).status, 201);
    let both = format!("{cookie}{cookie}");
    assert_eq!(scene.say("GET", "/v1/me", &both, None).status, 401);
}

#[test]
fn o04_approvals_answer_to_no_stranger_no_foreign_page_and_no_other_name() {
    let scene = Scene::new(None);
    let entered = scene.ask("GET", &scene.api.login_path().unwrap(), None, None);
    let cookie = entered.header("set-cookie").unwrap();
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    let foreign = format!("{cookie}Origin: https://evil.example\r\n");
    let mut seen = 0;
    for route in ROUTES
        .iter()
        .filter(|route| route.path.starts_with("/v1/approvals"))
    {
        let (method, path) = (route.method.as_str(), path(route.path));
        let body = (route.method != Verb::Get).then_some("{}");
        let ask = |headers: &str| scene.say(method, &path, headers, body).status;
        assert_eq!(ask(""), 401, "{path}");
        assert_eq!(ask(&foreign), 403, "{path}");
        if route.method != Verb::Get {
            let forged = scene.say(method, &path, &cookie, body);
            assert_eq!(forged.text("code"), "C0909", "{path}");
        }
        // A name that leads to this machine, and is not one of its own.
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: rebound.example\r\n{cookie}Connection: close\r\nContent-Length: 0\r\n\r\n"
        );
        let mut stream = scene.connect();
        stream.write_all(head.as_bytes()).unwrap();
        assert_eq!(Answer::read(stream, false).status, 403, "{path}");
        seen += 1;
    }
    assert_eq!(seen, 4);
}

#[test]
fn the_sessions_that_tell_who_may_decide_take_nothing_from_outside() {
    let scene = Scene::new(None);
    let refused = |answer: Answer| {
        assert_eq!(
            (answer.status, answer.text("code").as_str()),
            (403, "C0209")
        );
    };
    for role in [Role::Agent, Role::Operator] {
        let events = |tenant: &str, session: &str| {
            let token = scene.token_for(role, "who", Some(tenant), None);
            let body = format!(
                r#"{{"session_id":"{session}","event_type":"MEMORY_WRITE","payload":{{}}}}"#
            );
            scene.post("/v1/events", &token, &body)
        };
        refused(events("default", "approvers"));
        refused(events("countersign", "policy"));
        assert_eq!(events("acme", "approvers").status, 201, "{role}");
        let token = scene.token_for(role, "who", Some("default"), None);
        let body = r#"{"session_id":"approvers","tool_name":"read_file","args":{}}"#;
        refused(scene.post("/v1/actions", &token, body));
    }
}
