//! Sessions decided again over the API, shadow policies that differ, and promoting them.

use std::sync::{Arc, Mutex};

use countersign_api::{Observed, Role, Settings, ShadowDifference};
use countersign_canon::Json;

use crate::scene::Scene;

const MANIFEST: &str = r#"{"permissions":{"tools":["read_file"]}}"#;
const SHADOW: &str = r#"{"policies":[{"name":"limits.rego","text":"package limits\nimport rego.v1\nverdict := {\"decision\": \"deny\", \"reason\": \"NO\"} if input.action.args.n > 1\nelse := {\"decision\": \"allow\"}\n"}]}"#;

fn act(scene: &Scene, token: &str, session: &str, n: u64) -> String {
    let body =
        format!(r#"{{"session_id":"{session}","tool_name":"read_file","args":{{"n":{n}}}}}"#);
    scene.post("/v1/actions", token, &body).text("state")
}

fn replayed(scene: &Scene, token: &str, session: &str) -> Json {
    let body = format!(r#"{{"session_id":"{session}"}}"#);
    let started = scene.post("/v1/replays", token, &body);
    assert_eq!(started.status, 201);
    let path = format!("/v1/replays/{}?wait_ms=30000", started.text("replay_id"));
    scene.get(&path, token).json()
}

#[test]
fn a_replay_is_a_job_of_whoever_asked() {
    let scene = Scene::new(Some(MANIFEST));
    let agent = scene.token(Role::Agent);
    assert_eq!(act(&scene, &agent, "s1", 1), "running");
    let job = replayed(&scene, &agent, "s1");
    assert_eq!(job.get("state"), Some(&Json::from("done")));
    let report = job.get("report").unwrap();
    assert_eq!(report.get("identical"), Some(&Json::from(true)));
    assert_eq!(report.get("decisions_replayed"), Some(&Json::from(1_u64)));
    // Nobody else sees it, and what is not there is not identical to anything.
    let id = job.get("replay_id").and_then(Json::as_str).unwrap();
    let auditor = scene.token(Role::Auditor);
    assert_eq!(
        scene.get(&format!("/v1/replays/{id}"), &auditor).status,
        404
    );
    let other = scene.token_for(Role::Agent, "b", Some("acme"), None);
    let refused = scene.post("/v1/replays", &other, r#"{"session_id":"s1"}"#);
    assert_eq!(refused.status, 404);
    let operator = scene.token(Role::Operator);
    let body = r#"{"session_id":"none"}"#;
    let started = scene.post("/v1/replays", &operator, body);
    let path = format!("/v1/replays/{}?wait_ms=30000", started.text("replay_id"));
    let job = scene.get(&path, &operator).json();
    assert_eq!(job.get("state"), Some(&Json::from("failed")));
    assert_eq!(job.get("report"), None);
}

#[test]
fn shadow_policies_that_differ_are_seen_and_promoting_them_is_one_step_that_can_be_undone() {
    let seen: Arc<Mutex<Vec<ShadowDifference>>> = Arc::default();
    let keep = Arc::clone(&seen);
    let settings = Settings {
        observer: Some(Arc::new(move |observed: &Observed<'_>| {
            keep.lock().unwrap().extend(observed.shadow_differences());
        })),
        ..Settings::default()
    };
    let scene = Scene::with(None, settings);
    let (operator, agent) = (scene.token(Role::Operator), scene.token(Role::Agent));
    let manifest = r#"{"manifest":{"schema":"countersign/manifest/v1","name":"n","version":"1.0.0","publisher":"p","permissions":{"tools":{"read_file":{"side_effect":"read"}}}}}"#;
    assert_eq!(
        scene.post("/v1/policies/promote", &operator, "{}").status,
        404
    );
    assert_eq!(
        scene
            .post("/v1/policies/activate", &operator, manifest)
            .status,
        201
    );
    assert_eq!(
        scene.post("/v1/policies/shadow", &operator, SHADOW).status,
        201
    );
    assert_eq!(act(&scene, &agent, "s1", 1), "running");
    assert_eq!(act(&scene, &agent, "s1", 2), "running");
    let expected = ShadowDifference {
        policy: "limits".to_owned(),
        decided: "allow".to_owned(),
        would: "deny".to_owned(),
    };
    for _ in 0..200 {
        if !seen.lock().unwrap().is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(*seen.lock().unwrap(), [expected]);

    // An agent promotes nothing; nor does somebody who thinks of other policies.
    assert_eq!(scene.post("/v1/policies/promote", &agent, "{}").status, 403);
    let guarded = format!("Authorization: Bearer {operator}\r\nIf-Match: \"sha256:0\"\r\n");
    let stale = scene.say("POST", "/v1/policies/promote", &guarded, Some("{}"));
    assert_eq!(stale.status, 412);
    assert_eq!(
        scene.post("/v1/policies/promote", &operator, "{}").status,
        201
    );
    assert_eq!(act(&scene, &agent, "s2", 1), "running");
    assert_eq!(act(&scene, &agent, "s2", 2), "denied");
    assert_eq!(
        scene.post("/v1/policies/promote", &operator, "{}").status,
        404
    );
    assert_eq!(
        scene.post("/v1/policies/rollback", &operator, "{}").status,
        201
    );
    assert_eq!(act(&scene, &agent, "s3", 2), "running");
    // Who put what in force is in the log, and all of it comes out again.
    let log = scene
        .get("/v1/sessions/policy?tenant_id=countersign", &operator)
        .json();
    assert_eq!(log.get("events"), Some(&Json::from(4_u64)));
    for session in ["s1", "s2", "s3"] {
        let job = replayed(&scene, &agent, session);
        let identical = job.get("report").and_then(|report| report.get("identical"));
        assert_eq!(identical, Some(&Json::from(true)), "{session}");
    }
}
