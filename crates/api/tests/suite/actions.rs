//! Actions from the proposal to the result, with people in between.

use std::io::Write as _;
use std::time::Duration;

use countersign_api::Role;
use countersign_approval::{BallotPaper, CallDecision, Decision, Human, SigningKey, UnixMs};
use countersign_canon::Json;

use crate::scene::{Answer, Scene, json};

const MANIFEST: &str =
    r#"{"permissions":{"tools":["read_file","pay"],"approval_required":["pay"]}}"#;

fn propose(scene: &Scene, token: &str, tool: &str, args: &str) -> Answer {
    let body = format!(r#"{{"session_id":"s1","tool_name":"{tool}","args":{args}}}"#);
    scene.post("/v1/actions", token, &body)
}

/// The signed decision of a person who is on the list.
fn signed(scene: &Scene, approval: &str, decision: &Decision) -> String {
    let key = SigningKey::from_bytes(&[7; 32]);
    let standing = scene
        .engine
        .approval(approval.parse().unwrap())
        .unwrap()
        .unwrap();
    let calls = standing.envelope.plan().calls().iter();
    let paper = BallotPaper {
        decisions: calls
            .map(|call| CallDecision {
                call: call.id.clone(),
                decision: decision.clone(),
            })
            .collect(),
        approver: Human::new("dana").unwrap(),
        display: standing.rendering.display_sha256(),
        signed_at: UnixMs::new(now()),
    };
    String::from_utf8(paper.sign(&standing.envelope, &key).to_text()).unwrap()
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap().as_millis()).unwrap()
}

fn with_dana(scene: &Scene) {
    let key = SigningKey::from_bytes(&[7; 32]).verifying_key();
    let dana = Human::new("dana").unwrap();
    let added = scene
        .engine
        .change_approvers(Some(&dana), |list| list.add(dana.clone(), &key).map(drop));
    assert!(added.is_ok());
}

/// A payment that waits for Dana, and those who may look at it.
struct HeldPayment {
    scene: Scene,
    agent: String,
    approver: String,
    /// An approver of another tenant.
    foreign: String,
    action: String,
    approval: String,
}

impl HeldPayment {
    fn new() -> Self {
        let scene = Scene::new(Some(MANIFEST));
        with_dana(&scene);
        let agent = scene.token(Role::Agent);
        let held = propose(&scene, &agent, "pay", r#"{"amount":5}"#);
        assert_eq!(held.text("state"), "held");
        Self {
            approver: scene.token(Role::Approver),
            foreign: scene.token_for(Role::Approver, "x", Some("other"), None),
            action: format!("/v1/actions/{}", held.text("action_id")),
            approval: held.text("approval_id"),
            agent,
            scene,
        }
    }

    fn vote(&self, decision: &Decision) -> Answer {
        let vote = signed(&self.scene, &self.approval, decision);
        self.scene
            .post(&votes(&self.approval), &self.approver, &vote)
    }

    fn card(&self, token: &str) -> Answer {
        let path = format!("/v1/approvals/{}", self.approval);
        self.scene.get(&path, token)
    }
}

fn votes(approval: &str) -> String {
    format!("/v1/approvals/{approval}/votes")
}

/// What would wait for ever is denied, and the log says so.
#[test]
fn an_action_about_which_nobody_can_be_asked_is_denied() {
    let scene = Scene::new(Some(MANIFEST));
    let agent = scene.token(Role::Agent);
    let denied = propose(&scene, &agent, "pay", r#"{"amount":5}"#);
    assert_eq!(
        (denied.status, denied.text("state").as_str()),
        (201, "denied")
    );
    let reason = "runtime_error:approval_resolver_failed";
    assert_eq!(denied.text("decision.reason"), reason);
    assert!(denied.text("error").contains("no approver is registered"));
    assert!(denied.json().get("approval_id").is_none());
    let events = scene.get("/v1/events?session_id=s1", &agent);
    let events = String::from_utf8_lossy(&events.body).into_owned();
    assert!(events.contains("TOOL_CALL_DENIED"), "{events}");
    // As it is with everything that was denied.
    let action = format!("/v1/actions/{}", denied.text("action_id"));
    assert_eq!(scene.get(&action, &agent).status, 404);
    let other = propose(&scene, &agent, "unlisted", "{}");
    assert_eq!(other.text("state"), "denied");
    let action = format!("/v1/actions/{}", other.text("action_id"));
    assert_eq!(scene.get(&action, &agent).status, 404);
}

#[test]
fn an_allowed_action_gets_a_permit_that_works_once() {
    let scene = Scene::new(Some(MANIFEST));
    let token = scene.token(Role::Agent);
    let allowed = propose(&scene, &token, "read_file", r#"{"path":"/w/a"}"#);
    assert_eq!(
        (allowed.status, allowed.text("state").as_str()),
        (201, "running")
    );
    assert_eq!(allowed.text("action.tool_name"), "read_file");
    let (id, permit) = (allowed.text("action_id"), allowed.text("permit"));
    let path = format!("/v1/actions/{id}/result");
    let tell = |permit: &str| {
        let body = format!(r#"{{"permit":"{permit}","content":{{"text":"hello"}}}}"#);
        scene.post(&path, &token, &body)
    };
    assert_eq!(
        scene
            .get(&format!("/v1/actions/{id}"), &token)
            .text("state"),
        "running"
    );
    assert_eq!(tell("prm_0").text("code"), "C0912");
    assert_eq!(tell(&permit).status, 201);
    assert_eq!(tell(&permit).text("code"), "C0911");
    let events = scene.get("/v1/events?session_id=s1", &token).json();
    let kinds: Vec<String> = events
        .get("events")
        .and_then(Json::as_array)
        .unwrap()
        .iter()
        .map(|event| {
            event
                .get("event_type")
                .and_then(Json::as_str)
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "TOOL_CALL_PROPOSED",
            "POLICY_DECISION",
            "TOOL_CALL_ALLOWED",
            "TOOL_CALL_EXECUTED",
            "TOOL_RESULT"
        ]
    );
}

#[test]
fn a_denied_action_gets_no_permit() {
    let scene = Scene::new(Some(MANIFEST));
    let token = scene.token(Role::Agent);
    let denied = propose(&scene, &token, "exec", "{}");
    assert_eq!(
        (denied.status, denied.text("state").as_str()),
        (201, "denied")
    );
    assert_eq!(denied.text("decision.reason"), "PERMISSION_UNDECLARED");
    assert!(denied.json().get("permit").is_none());
    assert!(denied.text("text_for_model").contains("do not retry"));
}

#[test]
fn actions_of_others_are_not_there() {
    let scene = Scene::new(Some(MANIFEST));
    let mine = scene.token_for(Role::Agent, "a", Some("acme"), None);
    let other = scene.token_for(Role::Agent, "b", Some("acme"), None);
    let allowed = propose(&scene, &mine, "read_file", r#"{"path":"/w/a"}"#);
    let (id, permit) = (allowed.text("action_id"), allowed.text("permit"));
    assert_eq!(
        scene.get(&format!("/v1/actions/{id}"), &other).text("code"),
        "C0911"
    );
    let body = format!(r#"{{"permit":"{permit}","content":1}}"#);
    let stolen = scene.post(&format!("/v1/actions/{id}/result"), &other, &body);
    assert_eq!(stolen.text("code"), "C0911");
    assert_eq!(propose(&scene, &other, "read_file", "{}").status, 403);
}

#[test]
fn a_held_action_runs_after_people_approved_exactly_it() {
    let held = HeldPayment::new();
    let (scene, action) = (&held.scene, &held.action);
    let permit = || {
        let path = format!("{action}/permit");
        scene.ask("POST", &path, Some(&held.agent), Some(""))
    };
    assert_eq!(scene.get(action, &held.agent).text("state"), "held");
    assert_eq!(permit().text("code"), "C0801");
    // Others of the tenant see it as it is shown everywhere; other tenants do not.
    let display = held.card(&held.approver).text("display");
    assert!(display.contains("amount"), "{display}");
    let listed = scene.get("/v1/approvals", &held.approver).json();
    let listed = listed.get("approvals").and_then(Json::as_array);
    assert_eq!(listed.unwrap().len(), 1);
    assert_eq!(held.card(&held.foreign).status, 404);
    let vote = signed(scene, &held.approval, &Decision::Approved);
    let votes = votes(&held.approval);
    assert_eq!(scene.post(&votes, &held.agent, &vote).status, 403);
    assert_eq!(scene.post(&votes, &held.foreign, &vote).status, 404);
    let forged = vote.replacen("dana", "dora", 1);
    let forged = scene.post(&votes, &held.approver, &forged);
    assert_eq!(forged.text("code"), "C0801");
    let counted = scene.post(&votes, &held.approver, &vote);
    assert_eq!(
        (counted.status, counted.text("state").as_str()),
        (201, "approved")
    );
    assert_eq!(scene.get(action, &held.agent).text("state"), "approved");
    let permitted = permit();
    assert_eq!(
        (permitted.status, permitted.text("state").as_str()),
        (201, "running")
    );
    assert_eq!(
        permitted.json().get("action").unwrap().get("args"),
        Some(&json(r#"{"amount":5}"#))
    );
    assert_eq!(permit().text("code"), "C0912");
    let permit = permitted.text("permit");
    let body = format!(r#"{{"permit":"{permit}","content":"paid"}}"#);
    let told = scene.post(&format!("{action}/result"), &held.agent, &body);
    assert_eq!(told.status, 201);
    // Its one use is taken.
    assert_eq!(pay(&held, &held.approval, 5).text("code"), "C0801");
}

/// Proposes what was approved, or something else, by the approval.
fn pay(held: &HeldPayment, approval: &str, amount: u32) -> Answer {
    let body = format!(
        r#"{{"session_id":"s1","tool_name":"pay","args":{{"amount":{amount}}},"approval_id":"{approval}"}}"#
    );
    held.scene.post("/v1/actions", &held.agent, &body)
}

#[test]
fn an_edited_request_takes_the_place_of_the_old_one() {
    let held = HeldPayment::new();
    let (scene, approver) = (&held.scene, &held.approver);
    let edit = format!("/v1/approvals/{}/edit", held.approval);
    let body = r#"{"args":{"amount":1},"reason":"too dear"}"#;
    assert_eq!(scene.post(&edit, &held.agent, body).status, 403);
    assert_eq!(scene.post(&edit, &held.foreign, body).status, 404);
    let list = scene.post(&edit, approver, r#"{"args":[]}"#);
    assert_eq!((list.status, list.text("pointer").as_str()), (400, "/args"));
    let edited = scene.post(&edit, approver, body);
    assert_eq!(
        (edited.status, edited.text("state").as_str()),
        (201, "pending")
    );
    assert!(edited.text("display").contains("amount: 1"));
    let new = edited.text("approval_id");
    assert_ne!(new, held.approval);
    assert_eq!(held.card(approver).text("state"), "superseded");
    assert_eq!(scene.post(&edit, approver, body).text("code"), "C0801");

    let vote = signed(scene, &new, &Decision::Approved);
    assert_eq!(scene.post(&votes(&new), approver, &vote).status, 201);
    assert_ne!(pay(&held, &new, 5).text("state"), "running");
    assert_eq!(pay(&held, &new, 1).text("state"), "running");
}

#[test]
fn the_end_of_a_session_takes_back_what_it_has_asked_for() {
    let held = HeldPayment::new();
    let end = r#"{"session_id":"s1","event_type":"TERMINATION","payload":{}}"#;
    let ended = held.scene.post("/v1/events", &held.agent, end);
    assert_eq!(ended.status, 201);
    assert_eq!(held.card(&held.approver).text("state"), "cancelled");
    let refused = held.vote(&Decision::Approved);
    assert_eq!(refused.text("code"), "C0801");
    assert!(refused.text("detail").contains("cancelled"));
}

#[test]
fn who_waits_hears_when_people_decide() {
    let held = HeldPayment::new();
    let waited = format!("{}?wait_ms=30000", held.action);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| held.scene.get(&waited, &held.agent));
        assert_eq!(held.vote(&Decision::Denied(None)).status, 201);
        assert_eq!(waiting.join().unwrap().text("state"), "denied");
    });
}

#[test]
fn a_request_with_a_key_counts_once() {
    let scene = Scene::new(Some(MANIFEST));
    let token = scene.token(Role::Agent);
    let other = scene.token_for(Role::Agent, "b", Some("acme"), None);
    let send = |token: &str, session: &str, key: &str| {
        let headers = format!("Authorization: Bearer {token}\r\nIdempotency-Key: {key}\r\n");
        let body = format!(
            r#"{{"session_id":"{session}","tool_name":"read_file","args":{{"path":"/w/a"}}}}"#
        );
        scene.say("POST", "/v1/actions", &headers, Some(&body))
    };
    let first = send(&token, "s1", "k1");
    let again = send(&token, "s1", "k1");
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.body, again.body);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(send(&token, "s2", "k1").text("code"), "C0913");
    assert_eq!(send(&other, "s3", "k1").header("idempotent-replayed"), None);
    assert_ne!(send(&token, "s1", "k2").body, first.body);
    assert_eq!(send(&token, "s1", &"k".repeat(300)).status, 400);
}

/// Whoever is gone before the answer can ask for it again, and nothing is done twice.
#[test]
fn who_hangs_up_and_asks_again_with_the_key_hears_the_first_answer() {
    let scene = Scene::new(Some(MANIFEST));
    let token = scene.token(Role::Agent);
    for round in 0..10 {
        let body = format!(
            r#"{{"session_id":"s1","tool_name":"read_file","args":{{"path":"/w/{round}"}}}}"#
        );
        let headers = format!("Authorization: Bearer {token}\r\nIdempotency-Key: k{round}\r\n");
        let request = format!(
            "POST /v1/actions HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            scene.address,
            body.len()
        );
        let mut stream = scene.connect();
        stream.write_all(request.as_bytes()).unwrap();
        // Some of them leave while the engine decides.
        std::thread::sleep(Duration::from_micros(300 * round));
        drop(stream);
        let again = || scene.say("POST", "/v1/actions", &headers, Some(&body));
        let mut answer = again();
        for _ in 0..200 {
            if answer.text("code") != "C0918" {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            answer = again();
        }
        assert_eq!(answer.status, 201, "round {round}");
    }
    let events = scene.get(
        "/v1/events?tenant_id=acme&session_id=s1",
        &scene.token(Role::Auditor),
    );
    let events = events.json();
    let events = events.get("events").and_then(Json::as_array).unwrap();
    let of = |wanted: &str| {
        let types = events
            .iter()
            .map(|event| event.get("event_type").and_then(Json::as_str));
        types.filter(|found| *found == Some(wanted)).count()
    };
    assert_eq!(
        (of("TOOL_CALL_PROPOSED"), of("TOOL_CALL_EXECUTED")),
        (10, 10)
    );
}

#[test]
fn one_agent_leaves_room_for_the_others() {
    let scene = Scene::new(Some(MANIFEST));
    with_dana(&scene);
    let (agent, other) = (
        scene.token(Role::Agent),
        scene.token_for(Role::Agent, "b", Some("acme"), None),
    );
    let held = (0..1_000).map(|round| {
        let body =
            format!(r#"{{"session_id":"s{round}","tool_name":"pay","args":{{"amount":{round}}}}}"#);
        scene.post("/v1/actions", &agent, &body).status
    });
    assert!(held.into_iter().all(|status| status == 201));
    let refused = scene.post(
        "/v1/actions",
        &agent,
        r#"{"session_id":"late","tool_name":"pay","args":{}}"#,
    );
    assert_eq!(refused.text("code"), "C0906");
    // Nobody was asked, and nothing was decided, about what there was no room for.
    let auditor = scene.token(Role::Auditor);
    let events = scene.get("/v1/events?tenant_id=acme&session_id=late", &auditor);
    assert_eq!(
        events.json().get("events").and_then(Json::as_array),
        Some(&[][..])
    );
    let allowed = scene.post(
        "/v1/actions",
        &other,
        r#"{"session_id":"b1","tool_name":"read_file","args":{}}"#,
    );
    assert_eq!(allowed.text("state"), "running");
}

/// What could not be recorded is not forgotten: whoever told can tell again.
#[test]
fn an_outcome_that_cannot_be_recorded_stays_to_be_told() {
    let scene = Scene::new(Some(MANIFEST));
    let agent = scene.token(Role::Agent);
    let allowed = propose(&scene, &agent, "read_file", r#"{"path":"/w/a"}"#);
    let (id, permit) = (allowed.text("action_id"), allowed.text("permit"));
    let tell = || {
        let body = format!(r#"{{"permit":"{permit}","content":"hello"}}"#);
        scene.post(&format!("/v1/actions/{id}/result"), &agent, &body)
    };
    // Another program writes, and takes its time.
    let database = rusqlite::Connection::open(scene.folder.path().join("log.db")).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = tell();
    assert_eq!(refused.text("detail"), "nothing was recorded");
    let standing = scene.get(&format!("/v1/actions/{id}"), &agent);
    assert_eq!(standing.text("state"), "running");
    database.execute_batch("ROLLBACK").unwrap();
    assert_eq!(tell().status, 201);
    assert_eq!(tell().text("code"), "C0911");
}

/// A session that is over takes nothing more, so nobody waits for what could be told about it.
#[test]
fn an_outcome_that_can_never_be_recorded_keeps_no_place() {
    let scene = Scene::new(Some(MANIFEST));
    let agent = scene.token(Role::Agent);
    let allowed = propose(&scene, &agent, "read_file", r#"{"path":"/w/a"}"#);
    let (id, permit) = (allowed.text("action_id"), allowed.text("permit"));
    scene.terminate("acme", "s1");
    let tell = || {
        let body = format!(r#"{{"permit":"{permit}","content":"hello"}}"#);
        scene.post(&format!("/v1/actions/{id}/result"), &agent, &body)
    };
    assert_eq!(tell().text("code"), "C0202");
    assert_eq!(tell().text("code"), "C0911");
}

#[test]
fn tokens_are_made_and_taken_back_over_the_api() {
    let scene = Scene::new(None);
    let operator = scene.token(Role::Operator);
    let body = r#"{"name":"crawler","role":"agent","tenant_id":"acme"}"#;
    let made = scene.post("/v1/tokens", &operator, body);
    assert_eq!(made.status, 201);
    let token = made.text("token");
    assert_eq!(scene.get("/v1/me", &token).text("name"), "crawler");
    assert!(!String::from_utf8_lossy(&scene.get("/v1/tokens", &operator).body).contains(&token));
    let path = format!("/v1/tokens/{}", made.text("id"));
    assert_eq!(
        scene.ask("DELETE", &path, Some(&operator), None).status,
        200
    );
    assert_eq!(scene.get("/v1/me", &token).status, 401);
    let homeless = r#"{"name":"crawler","role":"agent"}"#;
    assert_eq!(scene.post("/v1/tokens", &operator, homeless).status, 400);
}
