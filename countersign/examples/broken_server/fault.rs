//! The faults, each one behaviour of a server that is wrong.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use countersign_canon::{Json, Object};

use crate::http::{Answer, Request};
use crate::{mcp, stored};

/// A server with one fault, and what it remembers.
pub(crate) struct Broken {
    fault: String,
    behind: String,
    scratch: PathBuf,
    /// The socket of the server behind, when it was first asked.
    socket: String,
    /// The operator's token, as soon as the operator has shown it.
    operator: Option<String>,
    count: u64,
    /// Calls by session.
    calls: HashMap<String, u64>,
    ended: HashSet<String>,
    /// Answers with a permit, by approval and by action.
    permits: HashMap<String, Answer>,
    /// Held actions: session and arguments by approval.
    held: HashMap<String, (String, Json)>,
    denied: bool,
    last_body: String,
    was_hostile: bool,
}

impl Broken {
    pub(crate) fn new(fault: &str, behind: &str, scratch: PathBuf) -> Self {
        Self {
            fault: fault.to_owned(),
            socket: stored::socket(behind),
            behind: behind.to_owned(),
            scratch,
            operator: None,
            count: 0,
            calls: HashMap::new(),
            ended: HashSet::new(),
            permits: HashMap::new(),
            held: HashMap::new(),
            denied: false,
            last_body: String::new(),
            was_hostile: false,
        }
    }

    /// What is done to a request; an answer if the server behind does not see it.
    pub(crate) fn before(&mut self, request: &mut Request) -> Option<Answer> {
        if request.is("POST", "/v1/policies/activate") && self.operator.is_none() {
            self.operator = request.header("authorization").map(str::to_owned);
        }
        if request.path.starts_with("/mcp") {
            return mcp::before(&self.fault, request, &self.scratch);
        }
        let fault = self.fault.clone();
        let text = request.text();
        let is_action = request.is("POST", "/v1/actions");
        let is_event = request.is("POST", "/v1/events");
        let session = request.member("session_id");
        match fault.as_str() {
            "any-place" if is_event => {
                request.remove("seq");
                request.remove("prev_hash");
            }
            "any-type" if is_event && text.contains("PRETENDED") => {
                request.set("event_type", Json::from("MEMORY_READ"));
            }
            "anyone-decides" if is_event && is_engines(&request.member("event_type")) => {
                request.set("event_type", Json::from("MEMORY_READ"));
            }
            "no-end" if is_event || is_action => {
                if self.ended.contains(&session) {
                    request.set("session_id", Json::from(format!("{session}~")));
                }
                if text.contains("TERMINATION") {
                    self.ended.insert(session);
                }
            }
            "forgets-at-restart" => self.forget_at_restart(request, &session),
            "acknowledges-and-drops" if is_event => {
                self.count += 1;
                if self.count.is_multiple_of(2) {
                    let head = Json::object([
                        ("seq", Json::from(self.count)),
                        ("prev_hash", Json::from("0".repeat(64))),
                    ]);
                    let recorded = Json::object([
                        ("hash", Json::from("0".repeat(64))),
                        ("seq", Json::from(self.count)),
                        ("head", head),
                    ]);
                    return Some(Answer::new(201, &recorded));
                }
            }
            "decides-nothing" if is_event && text.contains("TOOL_CALL_PROPOSED") => {
                request.set("event_type", Json::from("MEMORY_READ"));
            }
            "one-page" if request.is("GET", "/v1/events") => {
                let (path, query) = request.path.split_once('?').unwrap_or_default();
                let kept: Vec<&str> = query
                    .split('&')
                    .filter(|part| !part.starts_with("limit=") && !part.starts_with("cursor="))
                    .collect();
                request.path = format!("{path}?{}", kept.join("&"));
            }
            "no-memory" => request.drop_header("idempotency-key"),
            "host-by-prefix" => replace(request, "api.example.com.evil.example", "api.example.com"),
            "path-by-prefix" => replace(request, "/data/../etc/passwd", "/data/x"),
            "loose-names" => {
                replace(request, "mcp.httpsfoo", "mcp.https");
                replace(request, "READ_FILE", "read_file");
            }
            "state-by-default"
                if request.is("POST", "/v1/policy/decide")
                    && request.json().get("snapshot").is_none_or(Json::is_null) =>
            {
                request.set("snapshot", Json::Object(Object::new()));
            }
            "brings-own-manifest" if request.is("POST", "/v1/policy/decide") => {
                self.empower(request)
            }
            "forgets-calls" if is_action => {
                self.count += 1;
                let name = format!("{session}~{}", self.count);
                request.set("session_id", Json::from(name));
            }
            "any-key-cleans" if is_action && text.contains("sanitizer_key") => {
                request.set("sanitizer_key", Json::from("k1"));
            }
            "one-session" if is_action => request.set("session_id", Json::from("all")),
            "takes-anything" if text.contains("bad.rego") => request.body = b"{}".to_vec(),
            "drift-passes" | "any-session" if is_action => {
                let approved = self.held.get(&request.member("approval_id"));
                if let Some((session, args)) = approved.cloned() {
                    match fault.as_str() {
                        "drift-passes" => request.set("args", args),
                        _ => request.set("session_id", Json::from(session)),
                    }
                }
            }
            "agent-approves" if request.path.ends_with("/votes") => self.empower(request),
            "cards-for-all" if request.path.starts_with("/v1/approvals") => self.empower(request),
            "everybody-is-operator" => self.empower(request),
            "no-authentication" => {
                let wrong = |token: &str| token.ends_with("_00");
                if request.header("authorization").is_none_or(wrong) {
                    self.empower(request);
                }
            }
            "any-page" => {
                request.drop_header("origin");
                let behind = self.behind.clone();
                request.set_header("host", &behind);
            }
            "any-permit" if request.path.ends_with("/result") => self.lend_permit(request),
            "believes-agents" if request.is("POST", "/v1/interventions") => {
                let mut snapshot = request
                    .json()
                    .get("snapshot")
                    .cloned()
                    .unwrap_or(Json::Null);
                if let Some(members) = snapshot.as_object_mut() {
                    members.remove("ifc");
                    members.remove("envelope");
                }
                request.set("snapshot", snapshot);
            }
            "writes-an-access-log" => stored::note(&text, &self.scratch),
            "logs-headers" => {
                let token = request.header("authorization").unwrap_or_default();
                stored::note(token, &self.scratch);
            }
            "last-key-wins" => repair(
                request,
                &[r#""path":"/a","path""#, r#""tool_name":"other""#],
            ),
            "rounds-numbers" => repair(request, &["9007199254740993", "NaN", "1e400"]),
            "replaces-surrogates" => repair(request, &["\\ud800"]),
            "any-depth" => repair(request, &["[[[["]),
            "any-size" => repair(request, &["xxxxxxxx"]),
            "first-value-only" => repair(request, &[r#"} {"x":1}"#]),
            "ignores-members" => repair(request, &["\"force\"", "Approval_Id"]),
            "breaks" if self.was_hostile => {
                let down = Json::object([("status", Json::from("down"))]);
                return Some(Answer::new(503, &down));
            }
            _ => {}
        }
        if is_action || is_event {
            self.last_body = request.text();
        }
        None
    }

    /// What is done to an answer.
    pub(crate) fn after(&mut self, request: &Request, answer: &mut Answer) {
        if request.path.starts_with("/mcp") {
            return mcp::after(&self.fault, request, answer, &self.scratch);
        }
        self.remember(request, answer);
        let fault = self.fault.clone();
        let path = request
            .path
            .split('?')
            .next()
            .unwrap_or_default()
            .to_owned();
        let is_list = request.is("GET", "/v1/events");
        let is_permit = path.ends_with("/permit");
        let is_verify = path.ends_with("/verify");
        if let Some(reason) = fault.strip_prefix("allows:") {
            return allow(answer, |said| said == reason);
        }
        let is_point = request.is("POST", "/v1/interventions");
        if let Some(reason) = fault.strip_prefix("passes:") {
            if is_point {
                pass(answer, |said| said == reason);
            }
            return;
        }
        match fault.as_str() {
            "keeps-words" if is_point => answer.edit(|members| {
                members.remove("snapshot");
            }),
            "passes-again" if is_point && request.json().get("approval_id").is_some() => {
                *answer = Answer::new(201, &Json::object([("state", Json::from("passed"))]));
            }
            "results-at-once" if path.ends_with("/result") => {
                set(answer, "delivery", Json::from("as_it_came"));
            }
            "points-unrecorded" if is_list => only(answer, |event| event != "POLICY_DECISION"),
            "forgets-models" if is_list => only(answer, |event| event != "MODEL_CALL_STARTED"),
            "metrics-with-content" if path == "/metrics" => {
                answer.body.extend_from_slice(self.last_body.as_bytes());
            }
            "spans-with-content" => stored::span(&self.last_body, &self.scratch),
            "listed-time-changed" if is_list => each_event(answer, |event| {
                let time = event.get("ts_unix_ms").and_then(Json::as_u64);
                event.insert("ts_unix_ms".to_owned(), Json::from(time.unwrap_or(0) + 1));
            }),
            "verify-counts-nothing" if is_verify => {
                set(answer, "events", Json::from(0_u64));
            }
            "verify-always-good" if is_verify && answer.status == 200 => {
                set(answer, "valid", Json::from(true));
            }
            "verify-strangers" if is_verify && answer.status == 404 => {
                *answer = Answer::new(200, &Json::object([("valid", Json::from(true))]));
            }
            "decides-nothing" if request.text().contains("format_disk") => {
                let verdict = Json::object([
                    ("outcome", Json::from("deny")),
                    ("reason", Json::from("PERMISSION_UNDECLARED")),
                ]);
                set(answer, "decision", verdict);
            }
            "no-limits" => set(answer, "constraints", Json::Object(Object::new())),
            "budget-first" if request.text().contains("tool_calls_consumed") => {
                set(answer, "reason", Json::from("BUDGET_EXCEEDED"));
            }
            "permit-for-all" | "always-allow" => allow(answer, |_| true),
            "always-deny" | "denies-all" => deny(answer, "NO"),
            "suspects-all" if request.text().contains("publish") => deny(answer, "NO"),
            "never-tainted" => in_state(answer, "is_tainted", |_| Json::from(false)),
            "counts-twice" => in_state(answer, "tool_calls_consumed", |was| {
                Json::from(was.as_u64().unwrap_or(0) * 2)
            }),
            "sees-loops" if request.is("POST", "/v1/actions") => {
                let calls = self.calls.entry(request.member("session_id")).or_default();
                *calls += 1;
                if *calls > 2 {
                    deny(answer, "LOOP_DETECTED");
                }
            }
            "silent-warnings" => set(answer, "warning", Json::Null),
            "no-transform" if request.is("POST", "/v1/actions") => {
                let args = request.json().get("args").cloned().unwrap_or(Json::Null);
                let tool = Json::from(request.member("tool_name"));
                set(
                    answer,
                    "action",
                    Json::object([("args", args), ("tool_name", tool)]),
                );
            }
            "broken-is-allow" => allow(answer, |reason| reason.starts_with("runtime_error")),
            "weakest-wins" => allow(answer, |reason| reason.starts_with("MINE_")),
            "asks-nobody" => allow(answer, |_| answer_is_held(request)),
            "shadow-counts" if request.text().contains("tool_allow") => deny(answer, "SHADOW"),
            "shadow-unrecorded" if is_list => each_event(answer, |event| {
                if let Some(payload) = event.get_mut("payload").and_then(Json::as_object_mut) {
                    payload.remove("reason_codes");
                }
            }),
            "permit-before" | "all-get-it" if is_permit && answer.status >= 400 => {
                *answer = running();
            }
            "denied-runs" if is_permit && self.denied => *answer = running(),
            "works-twice" if answer.status == 409 && !is_permit => {
                if let Some(first) = self.permits.get(&request.member("approval_id")) {
                    *answer = first.clone();
                }
            }
            "stranger-counts" if path.ends_with("/votes") => {
                *answer = Answer::new(201, &Json::object([("state", Json::from("approved"))]));
            }
            "shows-other" => {
                let text = String::from_utf8_lossy(&answer.body).replace("4200", "42");
                answer.body = text.into_bytes();
            }
            "other-bytes" => {
                let text = String::from_utf8_lossy(&answer.body);
                answer.body = text
                    .replace("\"cents\":4200,", "\"cents\":420000,")
                    .into_bytes();
            }
            "unrecorded-votes" if is_list => only(answer, |event| event != "APPROVAL_DECIDED"),
            "begins-later" if is_list => only(answer, |event| event != "TOOL_CALL_EXECUTED"),
            "unlogged-denials" if is_list => only(answer, |event| event != "TOOL_CALL_DENIED"),
            "drops-the-tail" if is_list => in_events(answer, |events| {
                events.pop();
            }),
            "rots" if path.ends_with("/result") => stored::rot(&self.scratch),
            "loses-policies" if path == "/v1/actions" => stored::lose_policies(&self.scratch),
            "counts-events-wrong" if path.starts_with("/v1/sessions/") => {
                let more = answer.json().get("events").and_then(Json::as_u64);
                set(answer, "events", Json::from(more.unwrap_or(0) + 1));
            }
            "lists-content" if is_list => {
                let body = Json::from(self.last_body.as_str());
                each_event(answer, |event| {
                    event.insert("request".to_owned(), body.clone());
                });
            }
            "logs-headers" => {
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                stored::note(&text, &self.scratch);
            }
            "echoes" if answer.status == 400 => {
                set(answer, "received", Json::from(request.text()));
            }
            _ => {}
        }
    }

    fn remember(&mut self, request: &Request, answer: &Answer) {
        if request.path.ends_with("/votes") && request.text().contains("denied") {
            self.denied = true;
        }
        self.was_hostile |= answer.status == 413;
        if answer.status != 201 {
            return;
        }
        let json = answer.json();
        let text = |name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
        if text("permit").is_some() {
            for name in [text("action_id"), text("approval_id")]
                .into_iter()
                .flatten()
            {
                self.permits.insert(name, answer.clone());
            }
            for (approval, _) in self.held.clone() {
                self.permits.entry(approval).or_insert(answer.clone());
            }
        }
        if let (Some(approval), true) = (text("approval_id"), request.is("POST", "/v1/actions")) {
            let args = request.json().get("args").cloned().unwrap_or(Json::Null);
            let session = request.member("session_id");
            self.held.entry(approval).or_insert((session, args));
        }
    }

    fn forget_at_restart(&self, request: &mut Request, session: &str) {
        if stored::socket(&self.behind) == self.socket {
            return;
        }
        if !session.is_empty() {
            request.set("session_id", Json::from(format!("{session}~")));
        }
        request.path = request.path.replace("conformance-", "conformance-~");
    }

    /// The request is made as the operator.
    fn empower(&self, request: &mut Request) {
        if let Some(token) = &self.operator {
            request.set_header("authorization", token);
        }
    }

    /// Whatever permit is shown, the right one is used.
    fn lend_permit(&self, request: &mut Request) {
        let action = request.path.split('/').nth(3).unwrap_or_default();
        let Some(answer) = self.permits.get(action) else {
            return;
        };
        let permit = answer.json().get("permit").cloned();
        request.set("permit", permit.unwrap_or(Json::Null));
    }
}

fn is_engines(event_type: &str) -> bool {
    matches!(
        event_type,
        "POLICY_DECISION" | "TOOL_CALL_ALLOWED" | "APPROVAL_DECIDED"
    )
}

fn replace(request: &mut Request, from: &str, to: &str) {
    request.body = request.text().replace(from, to).into_bytes();
}

/// Makes something that can be read of a body that has one of these in it.
fn repair(request: &mut Request, marks: &[&str]) {
    let text = request.text();
    let session = text.split("\"session_id\":\"").nth(1);
    let session = session.and_then(|rest| rest.split('"').next());
    let (Some(session), true) = (session, marks.iter().any(|mark| text.contains(mark))) else {
        return;
    };
    request.body =
        format!(r#"{{"session_id":"{session}","tool_name":"read_file","args":{{}}}}"#).into_bytes();
}

fn answer_is_held(request: &Request) -> bool {
    request.is("POST", "/v1/actions") && request.text().contains("tool_escalate")
}

/// What was stopped at a point for such a reason passes.
fn pass(answer: &mut Answer, is_meant: impl Fn(&str) -> bool) {
    let json = answer.json();
    let reason = json.get("decision").and_then(|said| said.get("reason"));
    if reason.and_then(Json::as_str).is_some_and(is_meant) {
        set(answer, "state", Json::from("passed"));
    }
}

/// What was not allowed for such a reason is allowed.
fn allow(answer: &mut Answer, is_meant: impl Fn(&str) -> bool) {
    let json = answer.json();
    let verdict = json.get("decision").unwrap_or(&json);
    let reason = verdict.get("reason").and_then(Json::as_str);
    let outcome = verdict.get("outcome").and_then(Json::as_str);
    if outcome.is_none_or(|outcome| outcome == "allow") || !reason.is_some_and(is_meant) {
        return;
    }
    let allowed = Json::object([
        ("outcome", Json::from("allow")),
        ("reason", Json::from("OK")),
        ("constraints", Json::Object(Object::new())),
    ]);
    match json.get("decision") {
        None => answer.set_json(&allowed),
        Some(_) => answer.edit(|members| {
            members.insert("decision".to_owned(), allowed);
            members.insert("state".to_owned(), Json::from("running"));
            members.insert("permit".to_owned(), Json::from("prm_0"));
        }),
    }
}

fn deny(answer: &mut Answer, reason: &str) {
    let json = answer.json();
    let denied = Json::object([
        ("outcome", Json::from("deny")),
        ("reason", Json::from(reason)),
        ("constraints", Json::Object(Object::new())),
    ]);
    if json.get("decision").is_some() {
        answer.edit(|members| {
            members.insert("decision".to_owned(), denied);
            members.insert("state".to_owned(), Json::from("denied"));
            members.remove("permit");
        });
    } else if json.get("outcome").is_some() {
        answer.set_json(&denied);
    }
}

fn running() -> Answer {
    let running = Json::object([
        ("state", Json::from("running")),
        ("permit", Json::from("prm_0")),
    ]);
    Answer::new(201, &running)
}

fn set(answer: &mut Answer, member: &str, value: Json) {
    answer.edit(|members| {
        members.insert(member.to_owned(), value);
    });
}

fn in_state(answer: &mut Answer, member: &str, change: impl FnOnce(&Json) -> Json) {
    answer.edit(|members| {
        let state = members.get_mut("state").and_then(Json::as_object_mut);
        if let Some(state) = state
            && let Some(was) = state.get(member).cloned()
        {
            state.insert(member.to_owned(), change(&was));
        }
    });
}

fn in_events(answer: &mut Answer, change: impl FnOnce(&mut Vec<Json>)) {
    answer.edit(|members| {
        if let Some(Json::Array(events)) = members.get_mut("events") {
            change(events);
        }
    });
}

fn each_event(answer: &mut Answer, change: impl Fn(&mut Object)) {
    in_events(answer, |events| {
        for event in events.iter_mut().filter_map(Json::as_object_mut) {
            change(event);
        }
    });
}

fn only(answer: &mut Answer, is_kept: impl Fn(&str) -> bool) {
    in_events(answer, |events| {
        events.retain(|event| {
            let event_type = event.get("event_type").and_then(Json::as_str);
            event_type.is_none_or(&is_kept)
        });
    });
}
