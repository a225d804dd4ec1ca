//! The description of the API is what the API does.

use countersign_api::{ROUTES, Role, Verb, openapi};
use countersign_canon::Json;
use countersign_event::EventType;

use crate::scene::{Scene, json};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");

/// `COUNTERSIGN_BLESS=1` writes what the table says now.
#[test]
fn the_description_is_the_one_in_the_repository() {
    let text = pretty(&openapi(), 0) + "\n";
    if std::env::var_os("COUNTERSIGN_BLESS").is_some() {
        std::fs::write(GOLDEN, &text).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    assert!(
        golden == text,
        "run with COUNTERSIGN_BLESS=1 and look at the difference"
    );
}

#[test]
fn the_description_names_every_route_and_event_type() {
    let api = openapi();
    let paths = api.get("paths").unwrap();
    for route in ROUTES {
        if route.is_page() && route.path != "/login" {
            assert!(paths.get(route.path).is_none(), "{}", route.path);
            continue;
        }
        if route.path == "/login" && route.method == Verb::Post {
            continue;
        }
        let verb = route.method.as_str().to_ascii_lowercase();
        let operation = paths.get(route.path).and_then(|path| path.get(&verb));
        assert!(operation.is_some(), "{verb} {}", route.path);
    }
    let schemas = api.get("components").unwrap().get("schemas").unwrap();
    let new_event = schemas.get("NewEvent").unwrap().get("properties").unwrap();
    let types = new_event.get("event_type").unwrap().get("enum").unwrap();
    let types: Vec<&str> = types
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Json::as_str)
        .collect();
    let all: Vec<&str> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(types, all);
}

#[test]
fn the_description_is_served_and_can_be_browsed() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Auditor);
    let served = scene.get("/v1/openapi.json", &token);
    assert_eq!(served.json(), openapi());
    let tag = served.header("etag").unwrap().to_owned();
    let headers = format!("Authorization: Bearer {token}\r\nIf-None-Match: {tag}\r\n");
    assert_eq!(
        scene.say("GET", "/v1/openapi.json", &headers, None).status,
        304
    );
    let page = scene.get("/docs", &token);
    let text = String::from_utf8(page.body.clone()).unwrap();
    assert!(text.contains("Countersign API"));
    // The page asks nobody else for anything.
    for foreign in ["http://", "https://", "//cdn", "@import", "src="] {
        assert!(!text.contains(foreign), "{foreign}");
    }
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .contains("default-src 'none'")
    );
}

#[test]
fn answers_have_the_shapes_that_are_described() {
    let scene = Scene::new(Some(r#"{"permissions":{"tools":["read_file"]}}"#));
    let token = scene.token(Role::Operator);
    let event = r#"{"session_id":"s1","event_type":"TOOL_CALL_PROPOSED","payload":{"call_id":"c1","tool_name":"read_file","args":{"path":"/a"}}}"#;
    let asked = [
        ("POST", "/v1/events", "/v1/events", Some(event)),
        ("GET", "/v1/events", "/v1/events?limit=2", None),
        ("GET", "/v1/sessions", "/v1/sessions", None),
        ("GET", "/v1/sessions/{session}", "/v1/sessions/s1", None),
        ("GET", "/v1/sessions/{session}", "/v1/sessions/s2", None),
        (
            "GET",
            "/v1/sessions/{session}/snapshot",
            "/v1/sessions/s1/snapshot",
            None,
        ),
        (
            "GET",
            "/v1/sessions/{session}/verify",
            "/v1/sessions/s1/verify",
            None,
        ),
        ("POST", "/v1/policy/decide", "/v1/policy/decide", Some("{}")),
        ("POST", "/v1/policy/decide", "/v1/policy/decide", Some("[]")),
        ("GET", "/v1/me", "/v1/me", None),
        ("GET", "/healthz", "/healthz", None),
        ("GET", "/readyz", "/readyz", None),
    ];
    for (method, path, target, body) in asked {
        let answer = scene.ask(method, target, Some(&token), body);
        let route = ROUTES
            .iter()
            .find(|route| route.path == path && route.method.as_str() == method);
        let fits = route.unwrap().fits(answer.status, &answer.json());
        assert!(
            fits.is_ok(),
            "{method} {target}: {fits:?}\n{:?}",
            answer.json()
        );
    }
}

fn pretty(value: &Json, depth: usize) -> String {
    let pad = "  ".repeat(depth + 1);
    let end = "  ".repeat(depth);
    match value {
        Json::Object(members) if !members.is_empty() => {
            let lines = members.iter().map(|(name, value)| {
                let name = String::from_utf8(Json::from(name).to_sorted_ascii()).unwrap();
                format!("{pad}{name}: {}", pretty(value, depth + 1))
            });
            format!("{{\n{}\n{end}}}", lines.collect::<Vec<_>>().join(",\n"))
        }
        Json::Array(values) if !values.is_empty() => {
            let lines = values
                .iter()
                .map(|value| format!("{pad}{}", pretty(value, depth + 1)));
            format!("[\n{}\n{end}]", lines.collect::<Vec<_>>().join(",\n"))
        }
        other => String::from_utf8(other.to_sorted_ascii()).unwrap(),
    }
}

#[test]
fn pretty_text_means_the_same() {
    assert_eq!(json(&pretty(&openapi(), 0)), openapi());
}
