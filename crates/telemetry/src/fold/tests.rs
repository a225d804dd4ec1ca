use countersign_canon::{Hash, Limits};

use super::*;

/// Feeds events of one session, each with the time that its place gives, and shows what comes out.
struct Scene {
    fold: Fold,
    seq: u64,
}

impl Scene {
    fn new() -> Self {
        Self {
            fold: Fold::new(Redactor::default()),
            seq: 0,
        }
    }

    fn take(&mut self, kind: &str, payload: &str) -> Told {
        self.take_with(kind, payload, None)
    }

    fn take_with(&mut self, kind: &str, payload: &str, content: Option<&str>) -> Told {
        let hash = Hash::of(&self.seq.to_be_bytes());
        let payload = json(payload).to_jcs().unwrap();
        let line = format!(
            r#"{{"event_type":"{kind}","hash":"{hash}","payload":{},"prev_hash":null,"seq":{},"session_id":"s1","tenant_id":"acme","ts_unix_ms":{}}}"#,
            String::from_utf8(payload).unwrap(),
            self.seq,
            1000 * (self.seq + 1),
        );
        self.seq += 1;
        let content = content.map(json);
        let line = Line::read(line.as_bytes()).unwrap();
        self.fold.take(&line, content.as_ref())
    }
}

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

const PROPOSED: &str = r#"{"call_id":"c1","tool_name":"read_file","server":"files","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}"#;

#[test]
fn an_action_is_one_span_from_its_proposal_to_its_end() {
    let mut scene = Scene::new();
    let proposed = scene.take("TOOL_CALL_PROPOSED", PROPOSED);
    let decision = scene.take("POLICY_DECISION", r#"{"call_id":"c1","outcome":"allow"}"#);
    scene.take("TOOL_CALL_ALLOWED", r#"{"call_id":"c1"}"#);
    scene.take("TOOL_CALL_EXECUTED", r#"{"call_id":"c1"}"#);
    let ended = scene.take("TOOL_RESULT", r#"{"call_id":"c1","is_error":false}"#);
    let [event, action] = ended.spans.as_slice() else {
        panic!("{:?}", ended.spans);
    };
    assert_eq!(action.name(), "execute_tool read_file");
    assert_eq!(action.times(), (1000, 5000));
    assert_eq!(action.ending(), Ending::Good);
    assert_eq!(ended.upstream, Some(Duration::from_secs(1)));
    let text = |name: &str| action.attribute(name).and_then(Json::as_str).unwrap_or("-");
    assert_eq!(text("gen_ai.operation.name"), "execute_tool");
    assert_eq!(text("gen_ai.tool.name"), "read_file");
    assert_eq!(text("gen_ai.tool.call.id"), "c1");
    assert_eq!(text("mcp.method.name"), "tools/call");
    assert_eq!(text("countersign.decision.outcome"), "allow");
    assert_eq!(text("gen_ai.conversation.id"), "s1");
    // All of it is in the caller's trace: the action below the caller, its events below the action.
    assert_eq!(action.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(action.parent_id().unwrap(), "00f067aa0ba902b7");
    for event in [&proposed.spans[0], &decision.spans[0], event] {
        assert_eq!(event.trace_id(), action.trace_id());
        assert_eq!(event.parent_id().unwrap(), action.span_id());
    }
    assert_eq!(event.name(), "TOOL_RESULT");
}

#[test]
fn whatever_ends_an_action_ends_it_once() {
    let check = |events: &[(&str, &str)], ending: Ending, error: &str| {
        let mut scene = Scene::new();
        scene.take("TOOL_CALL_PROPOSED", r#"{"call_id":"c1","tool_name":"t"}"#);
        let told = events
            .iter()
            .flat_map(|(kind, payload)| scene.take(kind, payload).spans);
        let mut actions = told.filter(|span| span.name().starts_with("execute_tool"));
        let action = actions.next().unwrap();
        assert_eq!(actions.next(), None);
        assert_eq!(action.ending(), ending);
        let found = action.attribute("error.type").and_then(Json::as_str);
        assert_eq!(found.unwrap_or("-"), error);
    };
    let denied = r#"{"call_id":"c1","reason_code":"TOOL_DENY"}"#;
    let failed = r#"{"call_id":"c1","is_error":true}"#;
    check(&[("TOOL_CALL_DENIED", denied)], Ending::Failed, "TOOL_DENY");
    check(
        &[("TOOL_RESULT", failed), ("TOOL_RESULT", failed)],
        Ending::Failed,
        "tool_error",
    );
    check(
        &[("ERROR_RAISED", r#"{"call_id":"c1","code":"timeout"}"#)],
        Ending::Failed,
        "timeout",
    );
    check(&[("TERMINATION", "{}")], Ending::Unset, "-");
}

#[test]
fn what_waits_for_people_is_measured_until_they_have_decided() {
    let mut scene = Scene::new();
    scene.take("TOOL_CALL_PROPOSED", r#"{"call_id":"c1","tool_name":"t"}"#);
    let asked = scene.take(
        "APPROVAL_REQUESTED",
        r#"{"call_id":"c1","approval_id":"a"}"#,
    );
    scene.take(
        "APPROVAL_DECIDED",
        r#"{"call_id":"c1","approval_id":"a","approved":true}"#,
    );
    let allowed = scene.take("TOOL_CALL_ALLOWED", r#"{"call_id":"c1"}"#);
    let ran = scene.take("TOOL_CALL_EXECUTED", r#"{"call_id":"c1"}"#);
    assert_eq!(asked.held, None);
    assert_eq!(allowed.held, Some(Duration::from_secs(2)));
    assert_eq!(ran.held, None);
}

#[test]
fn a_model_call_is_a_span_of_the_conventions_for_models() {
    let mut scene = Scene::new();
    let started = r#"{"call_id":"m1","model_id":"model-a","provider":"acme","prompt_tokens":12}"#;
    scene.take("MODEL_CALL_STARTED", started);
    let finished = r#"{"call_id":"m1","model_id":"model-a","completion_tokens":7}"#;
    let told = scene.take("MODEL_CALL_FINISHED", finished);
    let span = &told.spans[1];
    assert_eq!(span.name(), "chat model-a");
    let number = |name: &str| span.attribute(name).and_then(Json::as_u64);
    assert_eq!(number("gen_ai.usage.input_tokens"), Some(12));
    assert_eq!(number("gen_ai.usage.output_tokens"), Some(7));
}

#[test]
fn content_is_told_only_when_it_is_given_and_then_in_general() {
    let mut scene = Scene::new();
    let proposed = r#"{"call_id":"c1","tool_name":"t"}"#;
    let args = r#"{"args":{"path":"/home/jane/notes/plan.txt","password":"hunter2"}}"#;
    scene.take_with("TOOL_CALL_PROPOSED", proposed, Some(args));
    let told = scene.take("TOOL_RESULT", r#"{"call_id":"c1"}"#);
    let shown = told.spans[1]
        .attribute("gen_ai.tool.call.arguments")
        .unwrap();
    let shown = String::from_utf8(shown.to_sorted_ascii()).unwrap();
    assert_eq!(shown, r#"{"password":"[REDACTED]","path":"~/**/plan.txt"}"#);
}

#[test]
fn what_is_left_open_does_not_stay_for_ever() {
    let mut scene = Scene::new();
    let mut unfinished = 0;
    for call in 0..MAX_OPEN + 10 {
        let proposed = format!(r#"{{"call_id":"c{call}","tool_name":"t"}}"#);
        unfinished += scene.take("TOOL_CALL_PROPOSED", &proposed).spans.len() - 1;
    }
    assert_eq!((unfinished, scene.fold.count), (10, MAX_OPEN));
    assert!(scene.fold.order.len() <= 2 * MAX_OPEN);
}

#[test]
fn sessions_without_a_trace_of_their_caller_have_their_own() {
    let mut scene = Scene::new();
    let one = scene.take("MEMORY_READ", "{}");
    let two = scene.take("MEMORY_READ", "{}");
    assert_eq!(one.spans[0].trace_id(), two.spans[0].trace_id());
    assert_ne!(one.spans[0].span_id(), two.spans[0].span_id());
    assert_eq!(one.spans[0].parent_id(), None);
    let other = Place::of_session("acm", "es1");
    assert_ne!(other.trace, Place::of_session("acme", "s1").trace);
}

#[test]
fn what_is_fetched_came_by_its_own_method() {
    let by = |tool: &str, definition: &str| {
        let mut scene = Scene::new();
        let proposed = format!(
            r#"{{"call_id":"c1","tool_name":"{tool}","server":"files","definition_digest":"{definition}"}}"#
        );
        scene.take("TOOL_CALL_PROPOSED", &proposed);
        let ended = scene.take("TOOL_CALL_DENIED", r#"{"call_id":"c1"}"#);
        let action = ended.spans.last().unwrap();
        let method = action.attribute("mcp.method.name").and_then(Json::as_str);
        method.unwrap().to_owned()
    };
    let fetching = countersign_event::fetching("prompts/get").unwrap();
    assert_eq!(by("prompts/get", &fetching.to_string()), "prompts/get");
    // A tool of that name, where calls are only observed.
    let tool = countersign_canon::Digest::of(b"{}").to_string();
    assert_eq!(by("prompts/get", &tool), "tools/call");
    assert_eq!(by("read_file", &tool), "tools/call");
}
