//! Pages: who sees which, who comes in, and that no other page can press their buttons.

use countersign_api::{Permission, ROUTES, Role, Settings, Verb};
use countersign_approval::{Human, SigningKey};
use countersign_canon::Json;
use countersign_policy::Policies;
use countersign_policy::capability::Capability;

use crate::scene::{Answer, Scene, json};

const MANIFEST: &str =
    r#"{"permissions":{"tools":["read_file","pay"],"approval_required":["pay"]}}"#;
const HTML: &str = "Accept: text/html,application/xhtml+xml\r\n";

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.clone()).unwrap()
}

fn look(scene: &Scene, path: &str, token: &str) -> Answer {
    let headers = format!("{HTML}Authorization: Bearer {token}\r\n");
    scene.say("GET", path, &headers, None)
}

fn form(scene: &Scene, path: &str, headers: &str, body: &str) -> Answer {
    scene.say("POST", path, &format!("{HTML}{headers}"), Some(body))
}

/// The cookie of a browser that comes in with a token, as a header, and what its forms send along.
fn enter(scene: &Scene, token: &str) -> (String, String) {
    let entered = form(scene, "/login", "", &format!("token={token}&next=%2Finbox"));
    assert_eq!(entered.status, 303, "{}", text(&entered));
    assert_eq!(entered.header("location"), Some("/inbox"));
    let cookie = entered.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    let me = scene.say("GET", "/v1/me", &cookie, None);
    (cookie, me.text("csrf_token"))
}

/// Somebody asks for a payment; the approval's id.
fn held(scene: &Scene) -> String {
    let key = SigningKey::from_bytes(&[7; 32]).verifying_key();
    let dana = Human::new("dana").unwrap();
    let added = scene
        .engine
        .change_approvers(Some(&dana), |list| list.add(dana.clone(), &key).map(drop));
    assert!(added.is_ok());
    let agent = scene.token(Role::Agent);
    let body = r#"{"session_id":"s1","tool_name":"pay","args":{"amount":5,"to":"<script>"}}"#;
    let asked = scene.post("/v1/actions", &agent, body);
    assert_eq!(asked.text("state"), "held");
    asked.text("approval_id")
}

#[test]
fn every_page_is_for_the_roles_that_the_table_says() {
    let scene = Scene::new(Some(MANIFEST));
    let approval = held(&scene);
    let mut seen = 0;
    for role in Role::ALL {
        let token = scene.token(role);
        for route in ROUTES.iter().filter(|route| route.is_page()) {
            if route.method != Verb::Get || route.permission.is_open() {
                continue;
            }
            let path = route.path.replace("{approval}", &approval);
            let path = path.replace("{session}", "s1");
            let answer = look(&scene, &path, &token);
            let name = format!("{role} {path}: {}", answer.status);
            assert!(answer.status < 500, "{name}");
            let refused = answer.status == 403 && text(&answer).contains("C0902");
            assert_eq!(refused, !role.may(route.permission), "{name}");
            if answer.status != 303 && answer.header("content-type") != Some("application/x-tar") {
                let policy = answer.header("content-security-policy").unwrap();
                assert_eq!(policy, countersign_console::CSP, "{name}");
                assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
                assert_eq!(answer.header("cache-control"), Some("no-store"), "{name}");
                assert_eq!(answer.header("referrer-policy"), Some("same-origin"));
            }
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn whoever_is_not_known_sees_the_door_and_nothing_else() {
    let scene = Scene::new(Some(MANIFEST));
    let approval = held(&scene);
    for path in [
        "/",
        "/inbox",
        &format!("/inbox/{approval}"),
        "/health",
        "/nothing",
    ] {
        let answer = scene.say("GET", path, HTML, None);
        assert_eq!(answer.status, 401, "{path}");
        let page = text(&answer);
        assert!(
            page.contains("name=\"token\"") && !page.contains("pay"),
            "{path}"
        );
    }
    // A program that asks for the same gets an answer for programs.
    let answer = scene.ask("GET", "/inbox", None, None);
    assert_eq!(
        (answer.status, answer.text("code").as_str()),
        (401, "C0901")
    );
    let css = scene.say("GET", "/assets/console.css", "", None);
    let tag = css.header("etag").unwrap().to_owned();
    let again = format!("If-None-Match: {tag}\r\n");
    let again = scene.say("GET", "/assets/console.css", &again, None);
    assert_eq!((css.status, again.status), (200, 304));
    assert_eq!(scene.say("GET", "/assets/none.css", "", None).status, 404);
}

#[test]
fn a_browser_that_came_with_a_token_goes_with_it() {
    let scene = Scene::new(Some(MANIFEST));
    let token = scene.token(Role::Approver);
    for wrong in ["", "x", "cst_0123456789abcdef_00", "a.b.c"] {
        let answer = form(&scene, "/login", "", &format!("token={wrong}"));
        assert_eq!(answer.status, 401, "{wrong}");
    }
    let (cookie, _) = enter(&scene, &token);
    let inbox = |cookie: &str| scene.say("GET", "/inbox", &format!("{HTML}{cookie}"), None);
    assert_eq!(inbox(&cookie).status, 200);
    let (other, csrf) = enter(&scene, &token);
    let left = form(&scene, "/logout", &other, &format!("csrf={csrf}"));
    assert_eq!(left.status, 303);
    assert!(left.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(inbox(&other).status, 401);
    assert_eq!(inbox(&cookie).status, 200);
    let id = token.split('_').nth(1).unwrap();
    assert!(scene.engine.store().revoke_token(id, 2).unwrap());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while inbox(&cookie).status != 401 {
        assert!(std::time::Instant::now() < until, "the visit never ended");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn where_a_browser_goes_after_the_door_is_a_page_of_ours() {
    let scene = Scene::new(None);
    let token = scene.token(Role::Operator);
    for (next, place) in [
        ("%2Finbox", "/inbox"),
        ("https%3A%2F%2Fevil.example%2F", "/"),
        ("%2F%2Fevil.example", "/"),
        ("%2F%5Cevil.example", "/"),
        ("%2Finbox%0D%0ASet-Cookie%3A+x", "/"),
        ("", "/"),
    ] {
        let entered = form(&scene, "/login", "", &format!("token={token}&next={next}"));
        assert_eq!(entered.header("location"), Some(place), "{next}");
    }
}

#[test]
fn no_other_page_presses_a_button() {
    let scene = Scene::new(Some(MANIFEST));
    let approval = held(&scene);
    let token = scene.token(Role::Approver);
    let (cookie, csrf) = enter(&scene, &token);
    let path = format!("/inbox/{approval}/edit");
    let body = |csrf: &str| format!("csrf={csrf}&args=%7B%22amount%22%3A4%7D&reason=");
    let host = scene.address;
    let refused = |headers: &str, csrf: &str| {
        let answer = form(&scene, &path, &format!("{cookie}{headers}"), &body(csrf));
        let page = text(&answer);
        (answer.status == 403).then_some(page)
    };
    let without = refused("", "").unwrap();
    assert!(without.contains("C0909"), "{without}");
    assert!(refused("", "0123456789abcdef0123456789abcdef").is_some());
    for headers in [
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: http://127.0.0.1:1\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ] {
        assert!(refused(headers, &csrf).is_some(), "{headers}");
        // Nor does it let a browser in as somebody else.
        let entered = form(&scene, "/login", headers, &format!("token={token}"));
        assert_eq!(entered.status, 403, "{headers}");
    }
    let headers = format!("{cookie}Origin: http://{host}\r\nSec-Fetch-Site: same-origin\r\n");
    let edited = form(&scene, &path, &headers, &body(&csrf));
    assert_eq!(edited.status, 303, "{}", text(&edited));
    let place = edited.header("location").unwrap();
    assert_ne!(place, format!("/inbox/{approval}"));
    let page = text(&look(&scene, place, &token));
    assert!(page.contains("Edited from"), "{page}");
}

#[test]
fn what_agents_say_is_text_and_what_others_own_is_not_there() {
    let scene = Scene::new(Some(MANIFEST));
    let approval = held(&scene);
    let approver = scene.token(Role::Approver);
    let page = text(&look(&scene, &format!("/inbox/{approval}"), &approver));
    assert!(page.contains("&lt;script&gt;") && !page.contains("«<script>"));
    let foreign = scene.token_for(Role::Approver, "foreign", Some("other"), None);
    assert_eq!(
        look(&scene, &format!("/inbox/{approval}"), &foreign).status,
        404
    );
    assert!(!text(&look(&scene, "/inbox", &foreign)).contains(&approval));
    assert!(!text(&look(&scene, "/log", &foreign)).contains(&approval));
    let path = "/sessions/s1?tenant_id=acme";
    assert_eq!(look(&scene, path, &foreign).status, 403);
    let stranger = scene.token_for(Role::Agent, "b", Some("acme"), None);
    assert_eq!(look(&scene, path, &stranger).status, 404);
    assert!(!text(&look(&scene, "/sessions", &stranger)).contains("s1"));
    assert!(text(&look(&scene, "/sessions", &scene.token(Role::Auditor))).contains("s1"));
}

#[test]
fn under_tls_the_cookie_is_for_this_host_only() {
    let settings = Settings {
        is_secure: true,
        ..Settings::default()
    };
    let scene = Scene::with(None, settings);
    let entered = scene.ask("GET", &scene.api.login_path().unwrap(), None, None);
    let cookie = entered.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-countersign-"), "{cookie}");
    assert!(cookie.contains("; Path=/;") && cookie.ends_with("; Secure"));
    let (name, rest) = cookie.split_once('=').unwrap();
    let value = rest.split(';').next().unwrap();
    let named = |name: &str| {
        let header = format!("Cookie: {name}={value}\r\n");
        scene.say("GET", "/v1/me", &header, None).status
    };
    let plain = name.strip_prefix("__Host-").unwrap();
    assert_eq!((named(name), named(plain)), (200, 401));
}

#[test]
fn two_daemons_on_one_host_keep_their_browsers_apart() {
    let scenes = [Scene::new(None), Scene::new(None)];
    let cookies = scenes
        .iter()
        .map(|scene| enter(scene, &scene.token(Role::Operator)).0);
    let cookies: Vec<String> = cookies.collect();
    let pairs: Vec<&str> = cookies
        .iter()
        .map(|line| line.trim_end().strip_prefix("Cookie: ").unwrap())
        .collect();
    // A browser sends both to each of them: it does not look at ports.
    let both = format!("Cookie: {}\r\n", pairs.join("; "));
    for scene in &scenes {
        assert_eq!(scene.say("GET", "/v1/me", &both, None).status, 200);
        let left = form(
            scene,
            "/logout",
            &both,
            &format!(
                "csrf={}",
                scene.say("GET", "/v1/me", &both, None).text("csrf_token")
            ),
        );
        assert_eq!(left.status, 303);
        assert_eq!(scene.say("GET", "/v1/me", &both, None).status, 401);
    }
}

#[test]
fn who_is_shown_what_is_held_is_in_the_audit_once() {
    let scene = Scene::new(Some(MANIFEST));
    let approval = held(&scene);
    let viewed = || -> Vec<String> {
        let count = scene.engine.store().reader().audit_head().unwrap().count;
        let lines = scene.engine.store().reader().audit_lines(count).unwrap();
        let entries = lines
            .iter()
            .map(|line| json(std::str::from_utf8(line).unwrap()));
        let word = |entry: &Json, name: &str| {
            entry
                .get(name)
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        entries
            .filter(|entry| word(entry, "outcome") == "viewed")
            .inspect(|entry| assert_eq!(word(entry, "envelope_id"), approval))
            .map(|entry| format!("{} {}", word(&entry, "actor"), word(&entry, "detail")))
            .collect()
    };
    // Who only looks after things is not asked.
    assert_eq!(
        look(&scene, "/inbox", &scene.token(Role::Auditor)).status,
        200
    );
    assert_eq!(viewed(), [""; 0]);
    let dana = scene.token_for(Role::Approver, "dana", Some("acme"), None);
    for path in [
        "/inbox",
        &format!("/inbox/{approval}"),
        "/inbox",
        "/sessions",
    ] {
        assert_eq!(look(&scene, path, &dana).status, 200);
    }
    let id = format!("tok_{}", dana.split('_').nth(1).unwrap());
    let of_dana = format!("human:dana console, as {id}");
    assert_eq!(viewed(), [of_dana.as_str()]);
    // Two windows at once are one view.
    let lee = scene.token_for(Role::Approver, "lee", Some("acme"), None);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| assert_eq!(look(&scene, "/inbox", &lee).status, 200));
        }
    });
    assert_eq!(viewed().len(), 2);
    // A daemon that has started anew finds it in the audit.
    let id = format!("console, as {id}");
    let standing = scene
        .engine
        .approval(approval.parse().unwrap())
        .unwrap()
        .unwrap();
    let dana = Human::new("dana").unwrap();
    assert!(!scene.engine.note_first_view(&standing, &dana, &id).unwrap());
    assert!(
        scene
            .engine
            .note_first_view(&standing, &dana, "elsewhere")
            .unwrap()
    );
    // Whose tenant is another one is shown nothing, so there is nothing to note.
    let foreign = scene.token_for(Role::Approver, "kim", Some("other"), None);
    assert_eq!(
        look(&scene, &format!("/inbox/{approval}"), &foreign).status,
        404
    );
    assert_eq!(viewed().len(), 3);
}

#[test]
fn how_far_a_door_reaches_follows_from_how_it_is_opened() {
    let page = |scene: &Scene| text(&look(scene, "/health", &scene.token(Role::Operator)));
    let scene = Scene::new(Some(MANIFEST));
    held(&scene);
    let health = page(&scene);
    assert!(health.contains("has to keep to the answer"), "{health}");
    assert!(health.contains("MCP servers") && health.contains("not seen"));
    // The same door, when the policies only observe.
    let policies = Policies::new(Capability::new(None).unwrap()).observing();
    scene.engine.replace_policies(policies);
    let health = page(&scene);
    assert!(health.contains("observe: nothing is refused"), "{health}");
    assert!(!health.contains("has to keep to the answer"));

    let settings = Settings {
        no_auth: true,
        ..Settings::default()
    };
    let scene = Scene::with(Some(MANIFEST), settings);
    assert!(page(&scene).contains("--no-auth: whoever reaches it is the operator"));
}

#[test]
fn what_is_wrong_on_a_page_is_said_on_it() {
    let scene = Scene::new(Some(MANIFEST));
    let token = scene.token(Role::Operator);
    for (path, said) in [
        ("/sessions?q=colour%3Ared", "there is no key"),
        ("/log?q=colour%3Ared", "there is no key"),
        ("/sessions/none?tenant_id=acme", "no such session"),
        ("/inbox/apr_none", "no such approval"),
        ("/sessions/s1?view=pie", "compact"),
        ("/nothing", "there is nothing here"),
        ("/sessions?colour=red", "unknown parameter"),
    ] {
        let page = text(&look(&scene, path, &token));
        assert!(page.contains(said), "{path}: {page}");
        assert!(page.starts_with("<!doctype html>"), "{path}");
    }
    assert!(Role::Auditor.may(Permission::ReadApprovals));
    let empty = text(&look(&scene, "/inbox", &token));
    assert!(empty.contains("Nothing waits") && empty.contains("countersign action run"));
}

/// Policies that came over the API bring their tests with them; the page runs them.
#[test]
fn the_policy_page_runs_the_tests_of_what_was_activated() {
    let scene = Scene::new(None);
    let operator = scene.token(Role::Operator);
    let (cookie, _) = enter(&scene, &operator);
    let page = || {
        let page = scene.say("GET", "/policy", &format!("{HTML}{cookie}"), None);
        assert_eq!(page.status, 200);
        String::from_utf8(page.body).unwrap()
    };
    assert!(page().contains("There are no policies beside the manifest"));
    let set = r#"{"policies":[{"name":"p.rego","text":"package p\n\nimport rego.v1\n\ndefault verdict := {\"decision\": \"allow\"}\n\nverdict := {\"decision\": \"deny\", \"reason\": \"NEVER\"} if input.action.tool == \"burn\"\n"}],
        "tests":[{"name":"p_test.rego","text":"package p_test\n\nimport rego.v1\n\ntest_burn if data.p.verdict.decision == \"deny\" with input as {\"action\": {\"tool\": \"burn\"}}\n"}]}"#;
    let activated = scene.post("/v1/policies/activate", &operator, set);
    let told = String::from_utf8_lossy(&activated.body).into_owned();
    assert_eq!(activated.status, 201, "{told}");
    let page = page();
    for part in [
        "1 passed, 0 failed",
        "test_burn",
        "p.rego",
        "by the API, version 1",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}
