//! One whole evaluation beside the core that others wrote for the same specification, in one run.
//!
//! Ours includes the policy, in Rego; theirs gets its answer from a constant, because it starts a
//! program for every question to a policy. `cargo bench -p countersign-acs`
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark stops at the first error, and prints"
)]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_control_specification_core as core;
use countersign_acs::{
    Fetched, Limits, LoadError, Loader, Manifest, Mode, Point, Policies, Runtime,
};
use countersign_canon::Json;

fn main() {
    println!(
        "| snapshot | ours, with a policy in Rego | theirs, without a policy | times theirs |"
    );
    println!("|---|---|---|---|");
    for (name, size, calls) in [("1 KB", 1_000, 2_000), ("95 KB", 95_000, 100)] {
        let snapshot = snapshot(size);
        let ours = ours();
        let theirs = theirs();
        let json = Json::admit(snapshot.as_bytes(), &countersign_canon::Limits::plan()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&snapshot).unwrap();
        same(&ours, &json, &theirs, &value);
        let mut rounds: Vec<(Duration, Duration)> = (0..ROUNDS)
            .map(|_| {
                let ours = each(calls, || {
                    let found = ours.evaluate(Point::PreToolCall, black_box(&json), Mode::Enforce);
                    drop(black_box(found));
                });
                let theirs = each(calls, || {
                    drop(black_box(
                        theirs.evaluate_intervention_point(request(&value)),
                    ));
                });
                (ours, theirs)
            })
            .collect();
        let ratio =
            |(ours, theirs): &(Duration, Duration)| ours.as_secs_f64() / theirs.as_secs_f64();
        rounds.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let middle = rounds[ROUNDS / 2];
        println!(
            "| {name} | {:.1} µs | {:.1} µs | {:.2} |",
            middle.0.as_secs_f64() * 1e6,
            middle.1.as_secs_f64() * 1e6,
            ratio(&middle)
        );
    }
}

fn each(calls: u32, mut work: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..calls {
        work();
    }
    start.elapsed() / calls
}

/// Both must judge the same thing.
fn same(ours: &Runtime, json: &Json, theirs: &core::Runtime, value: &serde_json::Value) {
    let ours = ours.evaluate(Point::PreToolCall, json, Mode::Enforce);
    let theirs = theirs.evaluate_intervention_point(request(value));
    assert_eq!(
        ours.verdict().decision().as_str(),
        theirs.verdict.decision.as_str()
    );
    let identity = ours.identities().unwrap().enforced.to_string();
    assert_eq!(Some(identity), theirs.enforced_identity);
}

fn snapshot(size: usize) -> String {
    let line =
        r#"{"id":1042,"name":"line","note":"ein kurzer Text über Dinge","price":12.5,"ok":true}"#;
    let lines = vec![line; size / line.len()].join(",");
    format!(
        r#"{{"envelope":{{"agent":{{"id":"teller"}},"budgets":{{"tool_call_count":3}}}},"tool_call":{{"name":"pay","args":{{"amount":120,"currency":"CHF","lines":[{lines}]}}}}}}"#
    )
}

fn request(snapshot: &serde_json::Value) -> core::InterventionPointRequest {
    core::InterventionPointRequest {
        intervention_point: core::InterventionPoint::PreToolCall,
        snapshot: snapshot.clone(),
        mode: core::EnforcementMode::Enforce,
    }
}

fn ours() -> Runtime {
    let manifest = Manifest::read(MANIFEST.as_bytes()).unwrap();
    let policies = Policies::activate(&manifest, &OneFile).unwrap();
    Runtime::new(manifest, policies)
}

fn theirs() -> core::Runtime {
    let manifest = core::Manifest::from_yaml_str(MANIFEST).unwrap();
    core::Runtime::new(manifest, Arc::new(Nobody), Arc::new(Allows)).unwrap()
}

struct Allows;

impl core::PolicyDispatcher for Allows {
    fn evaluate(
        &self,
        _: &core::PreparedPolicyInvocation,
    ) -> Result<serde_json::Value, core::RuntimeError> {
        Ok(serde_json::json!({"decision": "allow"}))
    }
}

struct Nobody;

impl core::AnnotatorDispatcher for Nobody {
    fn dispatch(
        &self,
        name: &str,
        _: &core::AnnotatorInvocation,
        _: &serde_json::Value,
    ) -> Result<serde_json::Value, core::RuntimeError> {
        Err(core::RuntimeError::AnnotationFailed(name.to_owned()))
    }
}

struct OneFile;

impl Loader for OneFile {
    fn real(&self, path: &Path) -> Result<PathBuf, LoadError> {
        Ok(path.to_owned())
    }

    fn read(&self, _: &Path, _: usize) -> Result<Vec<u8>, LoadError> {
        Ok(RULES.into())
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>, LoadError> {
        Ok(vec![path.join("bank.rego")])
    }

    fn fetch(&self, url: &url::Url, _: &Limits) -> Result<Fetched, LoadError> {
        Err(LoadError::Unsupported(url.to_string()))
    }
}

const MANIFEST: &str = "
agent_control_specification_version: 0.3.1-beta
policies: {p: {type: rego, query: data.bank.verdict, bundle: /bank}}
intervention_points:
  pre_tool_call:
    policy_target: $.tool_call.args
    policy_target_kind: tool_args
    tool_name_from: $.tool_call.name
    policy: {id: p}
tools: {pay: {clearance: internal, most: 500}}
";

const RULES: &str = r#"package bank
import rego.v1

default verdict := {"decision": "deny", "reason": "no_rule"}

verdict := {"decision": "allow"} if {
	count(problems) == 0
}

verdict := {"decision": "deny", "reason": concat(",", sort(problems))} if {
	count(problems) > 0
}

problems contains "amount" if not input.policy_target.value.amount <= input.tool.most

problems contains "currency" if not input.policy_target.value.currency in {"CHF", "EUR"}

problems contains "budget" if not input.snapshot.envelope.budgets.tool_call_count < 20
"#;

const ROUNDS: usize = 15;
