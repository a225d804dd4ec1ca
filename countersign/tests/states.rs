//! Digests of state against programs of others that work out the same: git, Python's SQLite, a walk.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at once"
)]
#![cfg(unix)]

#[path = "../../tests/replayed.rs"]
mod replayed;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use countersign_canon::{Json, Limits};

fn run(program: &str, arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn state(arguments: &[&str], folder: &Path) -> Json {
    let mut all = vec!["evidence", "state"];
    all.extend(arguments);
    let text = run(env!("CARGO_BIN_EXE_countersign"), &all, folder);
    Json::admit(text.as_bytes(), &Limits::event()).unwrap()
}

fn digest(state: &Json) -> &str {
    state.get("digest").and_then(Json::as_str).unwrap()
}

fn covered<'a>(state: &'a Json, member: &str) -> Option<&'a Json> {
    state.get("state_digest_coverage")?.get(member)
}

/// Files, an executable, a link, a name that git sorts in its own way, and one that is not ASCII.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (path, text) in [
        ("src/a.rs", "fn a() {}\n"),
        ("src.txt", "sorted before src/\n"),
        ("src-x/b", ""),
        ("src/deep/er/c.rs", "c"),
        ("tmp/junk", "junk"),
        ("übung", "ü"),
    ] {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text).unwrap();
    }
    fs::write(root.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("src/a.rs", root.join("link")).unwrap();
    folder
}

fn git_tree(folder: &Path) -> String {
    run("git", &["init", "--quiet", "."], folder);
    run("git", &["add", "--all", "--force", "."], folder);
    let id = run("git", &["write-tree"], folder);
    fs::remove_dir_all(folder.join(".git")).unwrap();
    id
}

#[test]
fn a_tree_is_what_git_says() {
    let folder = folder();
    let root = folder.path();
    let found = state(&["git-tree", "."], root);
    let id = git_tree(root);
    assert_eq!(digest(&found), format!("git-sha1:{id}"));
    assert_eq!(
        covered(&found, "tree_sha").and_then(Json::as_str),
        Some(id.as_str())
    );
    // A part of it is the tree that git makes of that part alone.
    let arguments = [
        "git-tree",
        ".",
        "--path",
        "src/**",
        "--exclude",
        "src/deep/**",
    ];
    let part = state(&arguments, root);
    fs::remove_dir_all(root.join("src/deep")).unwrap();
    for other in ["src.txt", "run.sh", "link", "übung"] {
        fs::remove_file(root.join(other)).unwrap();
    }
    for other in ["src-x", "tmp"] {
        fs::remove_dir_all(root.join(other)).unwrap();
    }
    assert_eq!(digest(&part), format!("git-sha1:{}", git_tree(root)));
}

const WALK: &str = r#"
import hashlib, os, sys
lines = []
for folder, folders, files in os.walk("."):
    for name in files + [f for f in folders if os.path.islink(os.path.join(folder, f))]:
        path = os.path.join(folder, name)
        if os.path.islink(path):
            kind, content = "link", os.fsencode(os.readlink(path))
        else:
            kind, content = "file", open(path, "rb").read()
        below = os.fsencode(path)[2:]
        if not below.startswith(b"tmp/"):
            digest = hashlib.sha256(content).hexdigest().encode()
            lines.append((below, kind.encode() + b"\0" + digest + b"\0" + below + b"\n"))
print("sha256:" + hashlib.sha256(b"".join(line for _, line in sorted(lines))).hexdigest(), len(lines))
"#;

#[test]
fn files_are_what_a_walk_finds() {
    let folder = folder();
    let sandbox = [
        "sandbox-fs",
        ".",
        "--base-image",
        "sha256:0",
        "--exclude",
        "tmp/**",
    ];
    let found = state(&sandbox, folder.path());
    let count = covered(&found, "file_count")
        .and_then(Json::as_u64)
        .unwrap();
    let walked = run("python3", &["-c", WALK], folder.path());
    assert_eq!(format!("{} {count}", digest(&found)), walked);
    // Links may be followed, or not be there.
    let followed = [&sandbox[..], &["--symlinks", "follow"]].concat();
    assert_ne!(digest(&state(&followed, folder.path())), digest(&found));
    let refused = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["evidence", "state"])
        .args(sandbox)
        .args(["--symlinks", "reject"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(3));
}

const ROWS: &str = r#"
import hashlib, json, sqlite3, sys
db = sqlite3.connect("shop.db")
if sys.argv[1] == "make":
    db.execute("CREATE TABLE orders (id INTEGER, name TEXT, price REAL, raw BLOB, state TEXT)")
    rows = [(9007199254740993, "ü\n\"x\"", 1.5, b"\x00\xff", "open"), (2, None, 1e21, None, "open"),
            (3, "c", 0.1, b"", "closed"), (2, None, 1e21, None, "open")]
    db.executemany("INSERT INTO orders VALUES (?,?,?,?,?)", rows)
    db.commit()
else:
    found = db.execute("SELECT * FROM orders WHERE state = 'open'")
    names = [column[0] for column in found.description]
    plain = lambda value: {"blob": value.hex()} if isinstance(value, bytes) else value
    rows = [{name: plain(value) for name, value in zip(names, row)} for row in found]
    lines = sorted(json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n" for row in rows)
    print("sha256:" + hashlib.sha256(b"".join(lines)).hexdigest(), len(lines))
"#;

#[test]
fn rows_are_what_another_reader_of_sqlite_finds() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    run("python3", &["-c", ROWS, "make"], root);
    let rows = [
        "db-rowset",
        "shop.db",
        "--database",
        "shop",
        "--table",
        "orders",
        "--where",
    ];
    let found = state(&[&rows[..], &["state  =\n'open'"]].concat(), root);
    let count = covered(&found, "row_count").and_then(Json::as_u64).unwrap();
    let expect = run("python3", &["-c", ROWS, "read"], root);
    assert_eq!(format!("{} {count}", digest(&found)), expect);
    // Another way to write the predicate is the same query.
    let other = state(&[&rows[..], &["state = 'open'"]].concat(), root);
    assert_eq!(covered(&found, "query_hash"), covered(&other, "query_hash"));
    let inside = state(&[&rows[..], &["state = 'open  '"]].concat(), root);
    assert_ne!(
        covered(&found, "query_hash"),
        covered(&inside, "query_hash")
    );
}

const VALUES: &str = r#"
import hashlib, json
kept = {"plan/a": [1, 2.5], "plan/b": None}
text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
print("sha256:" + hashlib.sha256(text.encode()).hexdigest())
"#;

#[test]
fn values_are_what_their_json_says() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let text = r#"{"plan/b": null, "scratch": true, "plan/a": [1, 2.50]}"#;
    fs::write(root.join("notes.json"), text).unwrap();
    let expect = run("python3", &["-c", VALUES], root);
    let bag = ["memory-bag", "notes.json", "--namespace", "agent/notes"];
    let selected = state(&[&bag[..], &["--key", "plan/*"]].concat(), root);
    assert_eq!(digest(&selected), expect);
    let keys = [
        "--lifetime",
        "mixed",
        "--durable-key",
        "plan/a",
        "--durable-key",
        "plan/b",
    ];
    let mixed = state(&[&bag[..], &keys].concat(), root);
    assert_eq!(digest(&mixed), expect);
    let text = String::from_utf8(mixed.to_jcs().unwrap()).unwrap();
    let compare = ["evidence", "compare", &text, &text];
    let answer = run(env!("CARGO_BIN_EXE_countersign"), &compare, root);
    assert_eq!(
        answer,
        "comparable under an assumption, equal\n  best-effort, no version\n  durable subset only"
    );
}

const PAGE: &str = r#"<!doctype html><html><head><title>x</title></head><body>
<main id="m" class="b a"><h1>Order &amp; more</h1><!-- hidden --><p data-x="&quot;1&quot;">  two
 words </p><br><ul><li>one</li>
<li>two</li></ul></main></body></html>"#;

const DOM: &str = r#"
import hashlib, html.parser, html, re
class Reader(html.parser.HTMLParser):
    out, depth = "", 0
    def handle_starttag(self, tag, attributes):
        if self.depth or tag == "main":
            self.depth += tag not in ("br",)
            attributes = "".join(f' {n}="{html.escape(v)}"' for n, v in sorted(attributes))
            self.out += f"<{tag}{attributes}>" + ("</br>" if tag == "br" else "")
    def handle_endtag(self, tag):
        if self.depth:
            self.depth -= 1
            self.out += f"</{tag}>"
    def handle_data(self, data):
        if self.depth and data.strip():
            self.out += html.escape(re.sub(r"[ \t\n\f\r]+", " ", data), quote=True).replace("&#x27;", "'")
reader = Reader(convert_charrefs=True)
reader.feed(open("page.html").read())
print("sha256:" + hashlib.sha256(reader.out.encode()).hexdigest())
"#;

#[test]
fn a_page_is_what_another_reader_of_html_finds() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::write(root.join("page.html"), PAGE).unwrap();
    let page = [
        "browser-dom",
        "page.html",
        "--origin",
        "https://shop.example",
        "--phase",
        "stable-quiescent",
        "--select",
        "main",
        "--route",
    ];
    let found = state(&[&page[..], &["/orders/{id}"]].concat(), root);
    assert_eq!(digest(&found), run("python3", &["-c", DOM], root));
    // Here `id` stands before `class`.
    let as_is = state(
        &[&page[..], &["/orders/{id}", "--attributes", "as-is"]].concat(),
        root,
    );
    assert_ne!(digest(&as_is), digest(&found));
    // What was normalised away is not part of the state.
    let shuffled = PAGE.replace(r#"id="m" class="b a""#, r#"class="b a"   id="m""#);
    fs::write(root.join("page.html"), shuffled).unwrap();
    let again = state(&[&page[..], &["/orders/{id}"]].concat(), root);
    assert_eq!(digest(&again), digest(&found));
    // A route that names one thing is refused.
    let refused = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["evidence", "state"])
        .args(page)
        .arg("/orders/12345")
        .current_dir(root)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(3));
}

/// A call that really runs between two looks at what it changes: the records of the session, and the pack
/// of it, tell the digests that git gives.
#[test]
fn records_tell_the_state_before_and_after_a_call_that_ran() {
    let folder = folder();
    let root = folder.path();
    let tree = |folder: &Path| format!("git-sha1:{}", git_tree(folder));
    let before = tree(root);
    let outside = replayed::folder();
    let place = |name: &str| outside.path().join(name).to_str().unwrap().to_owned();
    fs::write(place("manifest.yaml"), MANIFEST).unwrap();
    let binary = env!("CARGO_BIN_EXE_countersign");
    let data = place("data");
    let manifest = place("manifest.yaml");
    let act = |step: &str, command: &str| {
        let arguments = [
            "action",
            "run",
            "--manifest",
            &manifest,
            "--data",
            &data,
            "--session",
            "s1",
            "--tool",
            "build",
            "--args",
            step,
            "--person",
            "dana",
            "--state",
            "git-tree .",
            "--",
            "sh",
            "-c",
            command,
        ];
        run(binary, &arguments, root)
    };
    act(r#"{"step":1}"#, "true");
    act(r#"{"step":2}"#, "echo new > src/new.rs");
    let after = tree(root);
    assert_ne!(before, after);
    let records = run(
        binary,
        &["evidence", "aep", "--session", "s1", "--data", &data],
        root,
    );
    let records: Vec<Json> = records
        .lines()
        .map(|line| Json::admit(line.as_bytes(), &Limits::event()).unwrap())
        .collect();
    let told = |record: &Json, member: &str| {
        let action = &record.get("actions").and_then(Json::as_array).unwrap()[0];
        action.get(member).and_then(Json::as_str).map(str::to_owned)
    };
    let expect = [(&before, &before), (&before, &after)];
    assert_eq!(records.len(), expect.len());
    for (record, (pre, post)) in records.iter().zip(expect) {
        assert_eq!(
            told(record, "state_digest_kind").as_deref(),
            Some("git-tree")
        );
        assert_eq!(told(record, "pre_state_digest").as_ref(), Some(pre));
        assert_eq!(told(record, "post_state_digest").as_ref(), Some(post));
    }
    let pack = place("s1.pack");
    let export = [
        "evidence",
        "export",
        "--session",
        "s1",
        "--data",
        &data,
        "--disclose",
        "TOOL_RESULT/*",
        "--out",
        &pack,
    ];
    run(binary, &export, root);
    let said = run(binary, &["verify", &pack], root);
    assert!(said.contains(&format!("stayed {before}")), "{said}");
    assert!(
        said.contains(&format!("was {before} before and {after} after")),
        "{said}"
    );
    // What cannot be observed before does not run.
    let refused = Command::new(binary)
        .args([
            "action",
            "run",
            "--manifest",
            &manifest,
            "--data",
            &data,
            "--session",
            "s2",
        ])
        .args([
            "--tool",
            "build",
            "--person",
            "dana",
            "--state",
            "git-tree nowhere",
        ])
        .args(["--", "sh", "-c", "echo ran > ran.txt"])
        .current_dir(root)
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(!root.join("ran.txt").exists());
}

/// A result that policies look at, change or withhold is one of a call that ran all the same.
#[test]
fn records_tell_the_state_of_calls_whose_results_were_reviewed() {
    let folder = folder();
    let root = folder.path();
    let outside = replayed::folder();
    let place = |name: &str| outside.path().join(name).to_str().unwrap().to_owned();
    fs::write(place("manifest.yaml"), MANIFEST).unwrap();
    fs::write(place("agent.yaml"), AGENT).unwrap();
    fs::create_dir(place("rules")).unwrap();
    fs::write(place("rules/agent.rego"), RULES).unwrap();
    let binary = env!("CARGO_BIN_EXE_countersign");
    let [data, manifest, agent] = ["data", "manifest.yaml", "agent.yaml"].map(place);
    let mut seen = vec![format!("git-sha1:{}", git_tree(root))];
    // What is printed is a part of the result.
    for (step, code, printed) in [(1, 0, "said 1\n"), (2, 0, "[gone]"), (3, 2, "")] {
        let ran = Command::new(binary)
            .args(["action", "run", "--manifest", &manifest, "--acs", &agent])
            .args(["--data", &data, "--session", "s1", "--tool", "build"])
            .args([
                "--args",
                &format!("{{\"step\":{step}}}"),
                "--person",
                "dana",
            ])
            .args(["--state", "git-tree .", "--", "sh", "-c"])
            .arg(format!(
                "echo {step} > src/{step}.rs; echo said {step}; echo wrong {step} >&2"
            ))
            .current_dir(root)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(code), "{ran:?}");
        assert_eq!(String::from_utf8_lossy(&ran.stdout), printed, "{ran:?}");
        let complains = String::from_utf8_lossy(&ran.stderr).contains("wrong");
        assert_eq!(complains, step == 1, "{ran:?}");
        seen.push(format!("git-sha1:{}", git_tree(root)));
    }
    let records = ["evidence", "aep", "--session", "s1", "--data", &data];
    let records = run(binary, &records, root);
    assert_eq!(records.lines().count(), 3);
    for (record, states) in records.lines().zip(seen.windows(2)) {
        let record = Json::admit(record.as_bytes(), &Limits::event()).unwrap();
        let action = &record.get("actions").and_then(Json::as_array).unwrap()[0];
        let told = |member| action.get(member).and_then(Json::as_str);
        assert_eq!(told("pre_state_digest"), Some(states[0].as_str()));
        assert_eq!(told("post_state_digest"), Some(states[1].as_str()));
        assert_eq!(told("side_effect_class"), Some("mutate-local"));
        assert_eq!(told("outcome"), Some("success"));
        let decision = action.get("capability_decision").unwrap();
        let decision = decision.get("decision").and_then(Json::as_str);
        assert_eq!(decision, Some("allow"));
    }
    let pack = place("s1.pack");
    let export = ["evidence", "export", "--session", "s1", "--data", &data];
    run(binary, &[&export[..], &["--out", &pack]].concat(), root);
    let said = run(binary, &["verify", &pack], root);
    assert!(said.contains("policy said allow"), "{said}");
    assert!(said.contains("about its result: deny"), "{said}");
}

const MANIFEST: &str = "schema: countersign/manifest/v1\nname: build\nversion: 1.0.0\npublisher: test\npermissions:\n  tools:\n    build: {side_effect: mutate-local}\n";

const AGENT: &str = "
agent_control_specification_version: 0.3.1-beta
policies:
  agent: {type: rego, bundle: rules}
intervention_points:
  pre_tool_call:
    policy_target: $.tool_call.args
    tool_name_from: $.tool_call.name
    policy: {id: agent, query: data.agent.call}
  post_tool_call:
    policy_target: $.tool_result.value
    tool_name_from: $.tool_call.name
    policy: {id: agent, query: data.agent.result}
tools: {build: {}}
";

const RULES: &str = r#"package agent
import rego.v1
step := input.snapshot.tool_call.args.step
call := {"decision": "allow"}
default result := {"decision": "allow"}
result := {"decision": "transform", "transform": {"path": "$policy_target", "value": "[gone]"}} if step == 2
result := {"decision": "deny", "reason": "too_much"} if step == 3
"#;

#[test]
fn a_vendors_kind_is_comparable_for_who_accepts_the_vendor() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::write(root.join("export"), "points\n").unwrap();
    let words =
        "other export --kind com.example.points --schema-version 1.2.0 --description points";
    let words: Vec<&str> = words.split(' ').collect();
    let one = state(&words, root);
    let sum = run("sha256sum", &["export"], root);
    let sum = sum.split(' ').next().unwrap();
    assert_eq!(digest(&one), format!("sha256:{sum}"));
    assert_eq!(one.get("state_digest_kind"), Some(&Json::from("other")));
    fs::write(root.join("one.json"), one.to_jcs().unwrap()).unwrap();
    let compare = |more: &[&str]| {
        let mut words = vec!["evidence", "compare", "@one.json", "@one.json"];
        words.extend(more);
        run(env!("CARGO_BIN_EXE_countersign"), &words, root)
    };
    assert!(compare(&[]).starts_with("not comparable\n"));
    let known = compare(&["--vendor", "com.example.points@1.2.0"]);
    assert!(
        known.starts_with("comparable under an assumption, equal\n"),
        "{known}"
    );
    let other = compare(&["--vendor", "com.example.points@1.3.0"]);
    assert!(other.starts_with("not comparable\n"));
}
