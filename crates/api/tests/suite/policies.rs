//! Policies that are tried, put in force and taken back over the API.

use countersign_api::Role;
use countersign_canon::Json;

use crate::scene::Scene;

/// A set whose manifest declares this tool.
fn set(tool: &str) -> String {
    format!(
        r#"{{"manifest":{{"schema":"countersign/manifest/v1","name":"n","version":"1.0.0","publisher":"p","permissions":{{"tools":{{"{tool}":{{"side_effect":"read"}}}}}}}}}}"#
    )
}

/// A version whose coming into force is not in the log does not come into force, also not later.
#[test]
fn policies_that_cannot_be_recorded_are_no_version() {
    let scene = Scene::new(None);
    let operator = scene.token(Role::Operator);
    let first = scene.post("/v1/policies/activate", &operator, &set("one"));
    assert_eq!(first.status, 201);
    scene.terminate("countersign", "policy");
    let second = scene.post("/v1/policies/activate", &operator, &set("two"));
    assert!(second.status >= 400, "{}", second.status);
    let shown = scene.get("/v1/policies", &operator);
    assert_eq!(shown.json().get("version").and_then(Json::as_u64), Some(1));
    let book = countersign_api::PolicyBook::in_folder(scene.folder.path());
    let found = book.current().unwrap().unwrap();
    assert_eq!(found.digest().to_string(), first.text("digest"));
}

#[test]
fn policies_are_tried_put_in_force_and_taken_back() {
    let scene = Scene::new(None);
    let operator = scene.token(Role::Operator);
    let auditor = scene.token(Role::Auditor);
    let agent = scene.token(Role::Agent);
    let allows = |tool: &str| {
        let body = format!(
            r#"{{"event":{{"event_type":"TOOL_CALL_PROPOSED","payload":{{"tool_name":"{tool}","args":{{}}}}}},"snapshot":{{}}}}"#
        );
        scene
            .post("/v1/policy/decide", &agent, &body)
            .text("outcome")
            == "allow"
    };
    let tried = scene.post("/v1/policies/validate", &auditor, &set("one"));
    assert_eq!(
        tried.status,
        200,
        "{}",
        String::from_utf8_lossy(&tried.body)
    );
    assert!(!allows("one"));
    let broken = r#"{"policies":[{"name":"p.rego","text":"package p\n\nverdict := "}]}"#;
    assert_eq!(
        scene.post("/v1/policies/validate", &auditor, broken).status,
        422
    );
    assert_eq!(
        scene
            .post("/v1/policies/activate", &auditor, &set("one"))
            .status,
        403
    );
    assert_eq!(
        scene
            .post("/v1/policies/activate", &agent, &set("one"))
            .status,
        403
    );
    let first = scene.post("/v1/policies/activate", &operator, &set("one"));
    assert_eq!(
        (
            first.status,
            first.json().get("version").and_then(Json::as_u64)
        ),
        (201, Some(1))
    );
    assert!(allows("one"));
    let lost = format!("Authorization: Bearer {operator}\r\nIf-Match: \"other\"\r\n");
    let refused = scene.say("POST", "/v1/policies/activate", &lost, Some(&set("two")));
    assert_eq!(refused.text("code"), "C0917");
    let known = format!(
        "Authorization: Bearer {operator}\r\nIf-Match: \"{}\"\r\n",
        first.text("digest")
    );
    assert_eq!(
        scene
            .say("POST", "/v1/policies/activate", &known, Some(&set("two")))
            .status,
        201
    );
    assert!(allows("two") && !allows("one"));
    let policy = r#"{"policies":[{"name":"p.rego","text":"package p\n\nimport rego.v1\n\nverdict := {\"decision\": \"deny\", \"reason\": \"NEVER\"}\n"}]}"#;
    let shadowed = scene.post("/v1/policies/shadow", &operator, policy);
    assert_eq!(
        shadowed.status,
        201,
        "{}",
        String::from_utf8_lossy(&shadowed.body)
    );
    assert!(allows("two"));
    assert_eq!(
        scene
            .post("/v1/policies/activate", &operator, broken)
            .status,
        422
    );
    assert!(allows("two"));
    let back = scene.post("/v1/policies/rollback", &operator, r#"{"version":1}"#);
    assert_eq!(
        (back.status, back.text("digest")),
        (201, first.text("digest"))
    );
    assert!(allows("one"));
    let tools = scene.get("/v1/tools", &auditor).json();
    assert!(tools.get("tools").unwrap().get("one").is_some());
    // Which policies came into force is in the log, and a new start finds the last of them.
    let events = scene
        .get(
            "/v1/events?tenant_id=countersign&session_id=policy",
            &auditor,
        )
        .json();
    assert_eq!(
        events.get("events").and_then(Json::as_array).unwrap().len(),
        4
    );
    let book = countersign_api::PolicyBook::in_folder(scene.folder.path());
    let found = book.current().unwrap().unwrap();
    assert_eq!(found.digest().to_string(), first.text("digest"));
}
