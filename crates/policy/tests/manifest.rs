//! Manifests of both schemas, in JSON and YAML, whole and partial.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]

use countersign_canon::{Digest, Json, Limits};
use countersign_policy::manifest::{
    Approval, Budgets, Loops, Manifest, OnTaint, Schema, SideEffect,
};
use countersign_policy::matcher::{Host, NormalPath};

fn json(text: &str) -> Json {
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

const AEGIS: &str = r#"{
    "schema": "aegis.dev/manifest/v0.1",
    "name": "deployer", "version": "1.0.0", "publisher": "acme",
    "permissions": {
        "tools": ["read_file", "exec", "mcp.https", "deploy"],
        "fs": {"read_roots": ["/data", "/data"], "write_roots": ["/data/out"]},
        "net": {"domains": ["api.x.com", "*.Y.org"]},
        "secrets": ["TOKEN"],
        "exec": {"allowed_bins": ["/usr/bin/git"], "arg_patterns": ["status|log"]},
        "approval_required": ["deploy", "mcp.https"],
        "budgets": {
            "max_steps": 48, "max_tool_calls": 20, "max_model_calls": 10,
            "max_output_bytes": 2048, "timeout_ms": 1000, "max_wall_time_ms": 600000
        }
    },
    "sandbox": {"required": true, "image": "ghcr.io/acme/x@sha256:00", "mounts": ["/data"]},
    "integrity": {
        "files": {"skill.py": "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
        "tree_sha256": "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d",
        "signature": "cosign-bundle-reference"
    }
}"#;

const OURS: &str = r#"
schema: countersign/manifest/v1
name: coder
version: "2.1"
publisher: acme
permissions:
  tools:
    read_file:
    fetch:
      server: web
      side_effect: network-egress
      arguments: {host: /url}
      clearance: internal
      labels: [untrusted, web]
    write:
      side_effect: mutate-local
      sink: true
      on_taint: deny
      arguments: {path: [/path, /files/0]}
    run: {arguments: {binary: /bin}, approval: required, irreversible: true, state: "git-tree /srv"}
    notes:
      trusted_output: true
      approval: not-required
      definition: sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb
    mcp.https: {}
    exec: {sink: false}
  net: {domains: ['*.x.com']}
  fs: {read_roots: []}
loops:
  identical_calls: 5
  sequence_max: 0
  polling_tools: [wait]
sandbox: {required: true}
"#;

#[test]
fn every_field_of_the_aegis_schema() {
    let manifest = Manifest::read(AEGIS.as_bytes()).unwrap();
    assert_eq!(manifest.schema(), Schema::Aegis);
    assert_eq!(manifest.name(), "deployer");
    assert_eq!(manifest.version(), "1.0.0");
    assert_eq!(manifest.publisher(), "acme");
    let permissions = manifest.permissions();
    let tools: Vec<_> = permissions.tools.keys().collect();
    assert_eq!(tools, ["deploy", "exec", "mcp.https", "read_file"]);
    let path = |text| NormalPath::from_argument(text).unwrap();
    assert_eq!(
        permissions.fs.read_roots,
        Some(vec![path("/data"), path("/data")])
    );
    assert_eq!(permissions.fs.write_roots, Some(vec![path("/data/out")]));
    assert!(
        permissions
            .net
            .domains
            .covers(&Host::from_argument("a.y.org").unwrap())
    );
    assert!(permissions.secrets.contains("TOKEN"));
    assert!(permissions.exec.allowed_bins.contains("/usr/bin/git"));
    assert!(permissions.exec.arg_patterns.match_whole("status"));
    assert_eq!(
        permissions.budgets,
        Budgets {
            max_steps: 48,
            max_tool_calls: 20,
            max_model_calls: Some(10),
            max_output_bytes: 2048,
            timeout_ms: 1000,
            max_wall_time_ms: 600_000,
        }
    );
    assert!(manifest.sandbox().required);
    assert_eq!(manifest.sandbox().mounts, ["/data"]);
    assert_eq!(manifest.integrity().files.len(), 1);
    assert_eq!(
        manifest.integrity().signature.as_deref(),
        Some("cosign-bundle-reference")
    );
    assert_eq!(manifest.loops(), &Loops::default());
}

#[test]
fn approvals_and_taint_in_the_aegis_schema() {
    let manifest = Manifest::read(AEGIS.as_bytes()).unwrap();
    assert_eq!(manifest.approval("deploy"), Approval::Required);
    assert_eq!(manifest.approval("mcp.https.get"), Approval::Required);
    assert_eq!(manifest.approval("read_file"), Approval::Unstated);
    assert_eq!(manifest.approval("dep"), Approval::Unstated);
    let tool = manifest.tool("mcp.https.post").unwrap();
    assert_eq!(tool.on_taint, OnTaint::Deny);
    assert_eq!(tool.side_effect, SideEffect::Unknown);
    assert!(tool.is_sink("mcp.https.post"));
    assert!(!tool.is_sink("mcp.https.get"));
}

#[test]
fn every_field_of_our_schema() {
    let manifest = Manifest::read(OURS.as_bytes()).unwrap();
    assert_eq!(manifest.schema(), Schema::Countersign);
    assert_eq!(manifest.version(), "2.1");
    let tool = |name| manifest.tool(name).unwrap();
    assert_eq!(tool("fetch").server.as_deref(), Some("web"));
    assert_eq!(tool("fetch").side_effect, SideEffect::NetworkEgress);
    assert_eq!(tool("fetch").clearance.as_deref(), Some("internal"));
    assert!(tool("fetch").labels.contains("untrusted"));
    let args = json(r#"{"url":"https://x.com","path":"/a","files":["/b"]}"#);
    let host = tool("fetch").arguments.host[0].resolve(&args).unwrap();
    assert_eq!(host.as_str(), Some("https://x.com"));
    let paths = tool("write").arguments.path.iter();
    let paths: Vec<_> = paths
        .map(|path| path.resolve(&args).unwrap().as_str().unwrap())
        .collect();
    assert_eq!(paths, ["/a", "/b"]);
    assert_eq!(
        (tool("write").sink, tool("write").on_taint),
        (Some(true), OnTaint::Deny)
    );
    assert_eq!(
        (tool("read_file").sink, tool("read_file").on_taint),
        (None, OnTaint::Hold)
    );
    assert_eq!(manifest.approval("run"), Approval::Required);
    assert_eq!(manifest.approval("notes"), Approval::NotRequired);
    assert_eq!(manifest.approval("fetch"), Approval::Unstated);
    assert!(tool("run").irreversible && tool("notes").trusted_output);
    assert_eq!(tool("run").state, ["git-tree", "/srv"]);
    assert_eq!(tool("notes").definition, Some(Digest::of(b"a")));
    assert!(tool("mcp.https.post").is_sink("mcp.https.post"));
    assert!(!tool("exec.run").is_sink("exec.run"));
    assert_eq!(manifest.permissions().fs.read_roots, Some(vec![]));
    assert_eq!(manifest.permissions().fs.write_roots, None);
    assert_eq!(
        (
            manifest.loops().identical_calls,
            manifest.loops().sequence_max
        ),
        (5, 0)
    );
    assert!(manifest.loops().polling_tools.contains("wait"));
}

#[test]
fn side_effects_are_ordered() {
    let mut effects = [
        SideEffect::Unknown,
        SideEffect::Read,
        SideEffect::NetworkEgress,
        SideEffect::MutateLocal,
        SideEffect::MutateExternal,
    ];
    effects.sort();
    assert_eq!(effects[0], SideEffect::Read);
    assert_eq!(effects[4], SideEffect::Unknown);
    assert!(SideEffect::MutateLocal < SideEffect::MutateExternal);
    assert!(SideEffect::MutateExternal < SideEffect::NetworkEgress);
}

#[test]
fn defaults() {
    let text = r#"{"schema":"countersign/manifest/v1","name":"n","version":"v","publisher":"p",
        "permissions":{"tools":["read_file"]}}"#;
    let manifest = Manifest::read(text.as_bytes()).unwrap();
    let budgets = manifest.permissions().budgets;
    assert_eq!((budgets.max_steps, budgets.max_tool_calls), (24, 12));
    assert_eq!(
        (budgets.max_wall_time_ms, budgets.max_output_bytes),
        (120_000, 1_048_576)
    );
    assert_eq!(
        (budgets.timeout_ms, budgets.max_model_calls),
        (30_000, None)
    );
    let shown = manifest.to_json();
    let expect = json(
        r#"{
        "schema": "countersign/manifest/v1", "name": "n", "version": "v", "publisher": "p",
        "permissions": {
            "tools": {"read_file": {
                "side_effect": "unknown", "sink": false, "on_taint": "hold",
                "trusted_output": false, "irreversible": false, "labels": [],
                "arguments": {"host": [], "path": [], "binary": []}
            }},
            "fs": {}, "net": {"domains": []}, "secrets": [],
            "exec": {"allowed_bins": [], "arg_patterns": []},
            "budgets": {"max_steps": 24, "max_tool_calls": 12, "max_output_bytes": 1048576,
                "timeout_ms": 30000, "max_wall_time_ms": 120000}
        },
        "loops": {"identical_calls": 2, "no_progress_steps": 3, "sequence_min": 3,
            "sequence_max": 7, "polling_tools": []},
        "sandbox": {"required": false, "mounts": []},
        "integrity": {"files": {}}
    }"#,
    );
    assert_eq!(shown, expect);
}

#[test]
fn zero_is_a_limit() {
    let text = r#"{"permissions":{"budgets":{"max_steps":0,"max_model_calls":0}}}"#;
    let budgets = Manifest::partial(&json(text))
        .unwrap()
        .permissions()
        .budgets;
    assert_eq!((budgets.max_steps, budgets.max_model_calls), (0, Some(0)));
}

#[test]
fn what_is_shown_means_the_same_when_read_again() {
    for text in [AEGIS, OURS] {
        let manifest = Manifest::read(text.as_bytes()).unwrap();
        let again = Manifest::from_json(&manifest.to_json()).unwrap();
        assert_eq!(again.to_json(), manifest.to_json());
        for called in [
            "mcp.https.post",
            "mcp.https.get",
            "exec.run",
            "write",
            "read_file",
        ] {
            let is_sink =
                |manifest: &Manifest| manifest.tool(called).map(|tool| tool.is_sink(called));
            assert_eq!(is_sink(&again), is_sink(&manifest), "{called}");
            assert_eq!(
                again.approval(called),
                manifest.approval(called),
                "{called}"
            );
        }
    }
}

#[test]
fn yaml_and_json_are_the_same_manifest() {
    let from_yaml = Manifest::read(OURS.as_bytes()).unwrap();
    let from_json = Manifest::read(&from_yaml.source().to_jcs().unwrap()).unwrap();
    assert_eq!(from_json, from_yaml);
    assert_eq!(from_json.digest(), from_yaml.digest());
    let from_json = Manifest::read(format!(" \n\t{AEGIS}").as_bytes()).unwrap();
    let yaml = "schema: aegis.dev/manifest/v0.1\n".to_owned() + &to_yaml(&json(AEGIS), 0);
    let from_yaml = Manifest::read(yaml.as_bytes()).unwrap();
    assert_eq!(from_yaml, from_json);
}

/// JSON as block style YAML, without the member `schema`.
#[test]
fn yaml_may_start_like_json() {
    let flow = "{schema: countersign/manifest/v1, 'name': reader, \"version\": '1', publisher: acme,\n\
                permissions: {tools: {read_file: {side_effect: read,},},},} # as one line";
    let block = "schema: countersign/manifest/v1\nname: reader\nversion: '1'\npublisher: acme\n\
                 permissions: {tools: {read_file: {side_effect: read}}}";
    let from_flow = Manifest::read(flow.as_bytes()).unwrap();
    assert_eq!(from_flow, Manifest::read(block.as_bytes()).unwrap());
    // The other reader is for other signs, not for other rules.
    let refused = |text: &str| Manifest::read(text.as_bytes()).unwrap_err().to_string();
    for (text, expect) in [
        (r#"{"name": "a", "name": "b"}"#, "duplicate key `name`"),
        ("{name: a, name: b}", "unexpected"),
        (r#"{"name": 01}"#, "malformed number"),
        (r#"{"name": NaN}"#, "not a number"),
        (r#"{"name": 1e999}"#, "number out of range"),
        (r#"{"name": "\ud800"}"#, "lone surrogate"),
        (r#"{"name": "\x41"}"#, "invalid escape"),
        (r#"{"name": "a"} {"name": "b"}"#, "trailing data"),
        (r#"{"name": "a""#, "unexpected end"),
        ("{name: a}\n---\n{name: b}", "unexpected"),
        ("{name: &a b}", "unexpected"),
    ] {
        let found = refused(text);
        assert!(found.contains(expect), "{text}: {found}");
    }
    for deep in [
        format!("{}1{}", r#"{"a":"#.repeat(500), "}".repeat(500)),
        format!("{}1{}", "{a: ".repeat(500), "}".repeat(500)),
    ] {
        assert!(Manifest::read(deep.as_bytes()).is_err());
    }
}

fn to_yaml(json: &Json, depth: usize) -> String {
    let Json::Object(members) = json else {
        let text = String::from_utf8(json.to_jcs().unwrap()).unwrap();
        return text;
    };
    let mut lines = String::new();
    for (name, value) in members.iter().filter(|(name, _)| *name != "schema") {
        let line = match value {
            Json::Object(_) => format!("\n{}", to_yaml(value, depth + 1)),
            _ => format!(" {}\n", to_yaml(value, depth)),
        };
        lines += &format!("{}{name}:{line}", "  ".repeat(depth));
    }
    lines
}

#[test]
fn the_digest_is_over_the_canonical_source() {
    let source = json(AEGIS);
    let manifest = Manifest::from_json(&source).unwrap();
    assert_eq!(manifest.digest(), Digest::of(&source.to_jcs().unwrap()));
    assert_eq!(manifest.source(), &source);
}

#[test]
fn partial_manifests() {
    let partial = |text: &str| Manifest::partial(&json(text));
    for text in ["null", "{}", r#"{"permissions":{}}"#] {
        let manifest = partial(text).unwrap();
        assert_eq!(manifest.schema(), Schema::Aegis);
        assert!(manifest.permissions().tools.is_empty());
        assert!(manifest.tool("a").is_none() && manifest.tool("").is_none());
    }
    let effectful = partial(r#"{"permissions":{"tools":["exec"],"exec":{"allowed_bins":["x"]}}}"#);
    assert!(effectful.is_ok());
    let ours = partial(r#"{"schema":"countersign/manifest/v1","permissions":{"tools":{"a":{}}}}"#);
    assert_eq!(ours.unwrap().schema(), Schema::Countersign);
    for text in [
        "5",
        "[]",
        r#""x""#,
        r#"{"schema":"zzz"}"#,
        r#"{"schema":null}"#,
        r#"{"permissions":null}"#,
        r#"{"permissions":{"tools":[null]}}"#,
        r#"{"permissions":{"tools":{"a":{}}}}"#,
        r#"{"permissions":{"tools":[""]}}"#,
        r#"{"permissions":{"net":{"domains":[5]}}}"#,
        r#"{"permissions":{"budgets":{"max_output_bytes":"x"}}}"#,
        r#"{"permissions":{"budgets":{"timeout_ms":null}}}"#,
        r#"{"permissions":{"budgets":{"max_steps":-1}}}"#,
        r#"{"permissions":{"budgets":{"max_steps":1.5}}}"#,
        r#"{"permissions":{"exec":{"arg_patterns":["("]}}}"#,
        r#"{"permissions":{"unknown":1}}"#,
        r#"{"sandbox":{"required":"yes"}}"#,
    ] {
        assert!(partial(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_not_valid_grants_nothing_in_a_partial_manifest() {
    let text = r#"{"permissions":{
        "net":{"domains":["*com","*","https://x.com","x.com"]},
        "fs":{"read_roots":["work","/a/../b","/ok"]}
    }}"#;
    let manifest = Manifest::partial(&json(text)).unwrap();
    let permissions = manifest.permissions();
    let covers = |host| {
        permissions
            .net
            .domains
            .covers(&Host::from_argument(host).unwrap())
    };
    assert!(covers("x.com"));
    assert!(!covers("anything") && !covers("anything.com") && !covers("a.x.com"));
    let ok = NormalPath::from_argument("/ok").unwrap();
    assert_eq!(permissions.fs.read_roots, Some(vec![ok]));
}
