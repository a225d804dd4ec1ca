//! Manifests that extend others: from files of one tree, and from pinned addresses.

use countersign_acs::{
    Limits, Loader, Manifest, ManifestError, Options, Point, Policies, Policy, Reserved, load,
};
use countersign_canon::Hash;

use crate::memory::Memory;

const V: &str = "agent_control_specification_version: 0.3.1-beta\n";
const POINT: &str = "intervention_points: {input: {policy_target: $, policy: {id: p}}}\n";
const POLICY: &str = "policies: {p: {type: test, decision: allow}}\n";

fn from(top: &str, memory: &Memory) -> Result<Manifest, ManifestError> {
    load(top, None, memory, &Options::default())
}

fn refused(top: &str, memory: &Memory) -> String {
    from(top, memory).unwrap_err().to_string()
}

fn sha(text: &str) -> String {
    Hash::of(text.as_bytes()).to_string()
}

#[test]
fn parents_come_before_children() {
    let memory = Memory::default()
        .file(
            "/m/top.yaml",
            &format!("{V}extends: [parents/a.yaml, b.json]\n{POINT}"),
        )
        .file("/m/parents/a.yaml", &format!("{V}extends: [../c.yaml]\n"))
        .file(
            "/m/b.json",
            r#"{"agent_control_specification_version":"0.3.1-beta","tools":{"t":{}}}"#,
        )
        .file("/m/c.yaml", &format!("{V}{POLICY}"));
    let manifest = from("/m/top.yaml", &memory).unwrap();
    assert_eq!(manifest.tools().len(), 1);
    assert!(manifest.source().get("extends").is_none());
    assert!(manifest.points().contains_key(&Point::Input));
}

#[test]
fn nothing_outside_the_tree_is_extended() {
    let base = format!("{V}{POLICY}");
    for entry in [
        "../secret.yaml",
        "/other/secret.yaml",
        "in/../../secret.yaml",
        "linked.yaml",
    ] {
        let memory = Memory::default()
            .file("/m/top.yaml", &format!("{V}extends: [{entry}]\n{POINT}"))
            .file("/secret.yaml", &base)
            .file("/other/secret.yaml", &base)
            .link("/m/linked.yaml", "/other/secret.yaml");
        let error = refused("/m/top.yaml", &memory);
        assert!(error.contains("it is outside of `/m`"), "{error}");
    }
}

#[test]
fn circles_missing_files_and_floods_are_refused() {
    let circle = Memory::default()
        .file("/m/a.yaml", &format!("{V}extends: [b.yaml]\n"))
        .file("/m/b.yaml", &format!("{V}extends: [a.yaml]\n"));
    assert!(refused("/m/a.yaml", &circle).contains("a circle"));
    assert!(refused("/m/none.yaml", &circle).contains("not found"));

    let deep = (0..40).fold(Memory::default(), |memory, index| {
        let text = format!("{V}extends: [{}.yaml]\n", index + 1);
        memory.file(&format!("/m/{index}.yaml"), &text)
    });
    let error = from("/m/0.yaml", &deep).unwrap_err();
    assert_eq!(error.reserved(), Reserved::ResourceLimitExceeded);

    // Two parents each, the same two: every document is resolved once.
    let wide = (0..14).fold(Memory::default(), |memory, index| {
        let next = index + 1;
        let text = format!("{V}extends: [{next}.yaml, {next}.yaml, {next}.yaml, {next}.yaml]\n");
        memory.file(&format!("/m/{index}.yaml"), &text)
    });
    let wide = wide.file("/m/14.yaml", &format!("{V}{POLICY}{POINT}"));
    assert!(from("/m/0.yaml", &wide).is_ok());

    let big = Memory::default()
        .file("/m/top.yaml", &format!("{V}extends: [b.yaml]\n{POINT}"))
        .file(
            "/m/b.yaml",
            &format!("{V}{POLICY}metadata: {{a: {}}}\n", "x".repeat(500)),
        );
    let options = Options {
        limits: Limits {
            max_merged_manifest_bytes: 600,
            ..Limits::default()
        },
        ..Options::default()
    };
    assert!(load("/m/top.yaml", None, &big, &Options::default()).is_ok());
    let error = load("/m/top.yaml", None, &big, &options).unwrap_err();
    assert_eq!(error.reserved(), Reserved::ResourceLimitExceeded, "{error}");
}

#[test]
fn paths_lead_from_the_manifest_that_names_them() {
    let memory = Memory::default()
        .file("/m/top.yaml", &format!("{V}extends: [sub/base.yaml]\n{POINT}"))
        .file(
            "/m/sub/base.yaml",
            &format!("{V}policies: {{p: {{type: rego, query: data.p.v, bundle: rules, data: [d.json, /abs.json]}}}}\n"),
        );
    let manifest = from("/m/top.yaml", &memory).unwrap();
    let Policy::Rego(rego) = &manifest.policies()["p"] else {
        panic!()
    };
    assert_eq!(rego.bundle.as_deref(), Some("/m/sub/rules"));
    assert_eq!(rego.data, ["/m/sub/d.json", "/abs.json"]);
}

fn extending(entry: &str) -> String {
    format!("{V}extends: [{entry}]\n{POINT}")
}

#[test]
fn addresses_are_pinned_to_their_bytes() {
    let base = format!("{V}{POLICY}");
    let url = "https://example.com/base.yaml";
    let with = |entry: &str| {
        Memory::default()
            .file("/m/top.yaml", &extending(entry))
            .at(url, &base)
    };
    let good = format!("{{url: '{url}', sha256: {}}}", sha(&base));
    assert!(from("/m/top.yaml", &with(&good)).is_ok());
    let bad = format!("{{url: '{url}', sha256: {}}}", sha("other"));
    assert!(refused("/m/top.yaml", &with(&bad)).contains("does not have the expected digest"));
    for unpinned in [format!("'{url}'"), format!("{{url: '{url}'}}")] {
        let memory = with(&unpinned);
        assert!(refused("/m/top.yaml", &memory).contains("needs the `sha256`"));
        assert!(memory.asked.borrow().is_empty(), "nothing is asked");
        let options = Options {
            believe_unpinned: true,
            ..Options::default()
        };
        assert!(load("/m/top.yaml", None, &memory, &options).is_ok());
    }
    for wrong in [
        format!("{{url: '{url}', sha256: {}, integrity: x}}", sha(&base)),
        format!("{{url: '{url}', sha256: abc}}"),
        format!("{{url: '{url}', integrity: md5-abc}}"),
        format!("{{url: '{url}', sha: abc}}"),
        "{sha256: abc}".to_owned(),
        "7".to_owned(),
    ] {
        assert!(matches!(
            from("/m/top.yaml", &with(&wrong)),
            Err(ManifestError::Document { .. })
        ));
    }
}

#[test]
fn every_hop_is_looked_at() {
    let base = format!("{V}{POLICY}");
    let entry = format!("{{url: 'https://a.example/', sha256: {}}}", sha(&base));
    let start = || Memory::default().file("/m/top.yaml", &extending(&entry));
    let good = start()
        .redirect("https://a.example/", "/two")
        .redirect("https://a.example/two", "https://b.example/x")
        .at("https://b.example/x", &base);
    assert!(from("/m/top.yaml", &good).is_ok());
    for near in [
        "http://b.example/",
        "https://127.0.0.1/x",
        "https://[::ffff:169.254.169.254]/latest",
        "https://localhost/x",
        "file:///etc/passwd",
    ] {
        let memory = start().redirect("https://a.example/", near).at(near, &base);
        let error = refused("/m/top.yaml", &memory);
        assert!(error.contains("it sends us to"), "{error}");
        assert_eq!(memory.asked.borrow().len(), 1, "{near}");
    }
    let circle = start().redirect("https://a.example/", "https://a.example/");
    assert!(refused("/m/top.yaml", &circle).contains("on and on"));
    assert_eq!(circle.asked.borrow().len(), 6);
}

#[test]
fn what_comes_from_an_address_names_no_file_and_no_secret() {
    let refused = |text: &str, more: &str| {
        let entry = format!("{{url: 'https://a.example/', sha256: {}}}", sha(text));
        let memory = Memory::default()
            .file("/m/top.yaml", &format!("{V}extends: [{entry}]\n{more}"))
            .at("https://a.example/", text);
        refused("/m/top.yaml", &memory)
    };
    for (section, place) in [
        (
            "policies: {p: {type: rego, query: data.p.v, bundle: x}}",
            "policies.p.bundle",
        ),
        (
            "policies: {p: {type: custom, adapter: a, data: x}}",
            "policies.p.data",
        ),
        (
            "policies: {p: {type: cedar, policy_path: x}}",
            "policies.p.policy_path",
        ),
        (
            "annotators: {a: {type: llm, api_key_env: KEY}}",
            "annotators.a.api_key_env",
        ),
        (
            "annotators: {a: {type: llm, aws_secret_env: KEY}}",
            "annotators.a.aws_secret_env",
        ),
        (
            "annotators: {a: {type: llm, system_prompt_file: x}}",
            "annotators.a.system_prompt_file",
        ),
        (
            "intervention_points: {output: {annotations: {a: {from: $, api_key_env: K}}}}",
            "intervention_points.output.annotations.a.api_key_env",
        ),
    ] {
        let error = refused(&format!("{V}{section}\n"), POINT);
        assert!(
            error.contains(&format!("`{place}` is not allowed")),
            "{error}"
        );
    }
    // A declaration from there, a secret laid over it here.
    let remote = format!("{V}{POLICY}annotators: {{a: {{type: llm, url: 'https://b.example'}}}}\n");
    let over = "intervention_points: {input: {policy_target: $, policy: {id: p}, annotations: {a: {from: $, api_key_env: K}}}}\n";
    let error = refused(&remote, over);
    assert!(
        error.contains("annotations.a.api_key_env` is not allowed"),
        "{error}"
    );
}

#[test]
fn a_manifest_at_an_address_extends_addresses_only() {
    let base = format!("{V}{POLICY}");
    let top = format!(
        "{V}extends: [{{url: ../base.yaml, sha256: {}}}]\n{POINT}",
        sha(&base)
    );
    let memory = Memory::default()
        .at("https://a.example/m/top.yaml", &top)
        .at("https://a.example/base.yaml", &base)
        .file("/base.yaml", &base);
    let digest = Some(Hash::of(top.as_bytes()));
    let loaded = |digest| {
        load(
            "https://a.example/m/top.yaml",
            digest,
            &memory,
            &Options::default(),
        )
    };
    assert!(loaded(digest).is_ok());
    assert!(loaded(None).is_err());
    assert!(loaded(Some(Hash::of(b"x"))).is_err());
    for near in ["https://127.0.0.1/m.yaml", "http://a.example/m.yaml"] {
        assert!(load(near, digest, &memory, &Options::default()).is_err());
    }
}

#[test]
fn a_bundle_at_an_address_needs_a_pinned_way_to_it() {
    let rules = "package p\nimport rego.v1\nv := {\"decision\": \"warn\"}\n";
    let bundle = format!(
        "policies: {{p: {{type: rego, query: data.p.v, bundle_url: {{url: 'https://a.example/p.rego', sha256: {}}}}}}}\n",
        sha(rules)
    );
    let remote = format!("{V}{bundle}");
    let memory = |entry: String| {
        Memory::default()
            .file("/m/top.yaml", &extending(&entry))
            .at("https://a.example/", &remote)
            .at("https://a.example/p.rego", rules)
    };
    let pinned = memory(format!(
        "{{url: 'https://a.example/', sha256: {}}}",
        sha(&remote)
    ));
    let manifest = from("/m/top.yaml", &pinned).unwrap();
    assert!(Policies::activate(&manifest, &pinned).is_ok());
    let loose = memory("'https://a.example/'".to_owned());
    let options = Options {
        believe_unpinned: true,
        ..Options::default()
    };
    let error = load("/m/top.yaml", None, &loose, &options).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the way to this manifest is not pinned"),
        "{error}"
    );
    // Other bytes than the pinned ones are not compiled.
    let other = Memory::default().at("https://a.example/p.rego", &rules.replace("warn", "allow"));
    assert!(Policies::activate(&manifest, &other).is_err());
    let _: &dyn Loader = &other;
}
