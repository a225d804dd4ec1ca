//! What counts as policies on disk.
#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use countersign_engine::PolicyFiles;

#[test]
fn a_place_without_policies_is_no_reason_to_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let deny =
        "package p\nimport rego.v1\nverdict := {\"decision\": \"deny\", \"reason\": \"P\"}\n";
    let load = |enforced: &[&str]| {
        let files = PolicyFiles {
            enforced: enforced.iter().map(|name| at(name)).collect(),
            ..PolicyFiles::default()
        };
        files
            .load()
            .map(|policies| policies.others().len())
            .map_err(|error| error.to_string())
    };
    std::fs::create_dir_all(at("empty/.hidden")).unwrap();
    std::fs::write(at("empty/.hidden/p.rego"), deny).unwrap();
    std::fs::write(at("empty/p.rego.bak"), deny).unwrap();
    assert!(load(&["empty"]).unwrap_err().contains("holds no policy"));
    std::fs::write(at("p_test.rego"), deny).unwrap();
    assert!(load(&["p_test.rego"]).unwrap_err().contains("no policy"));

    // As deep as `policy check` and `policy test` look.
    std::fs::create_dir_all(at("deep/er")).unwrap();
    std::fs::write(at("deep/er/p.rego"), deny).unwrap();
    assert_eq!(load(&["deep"]), Ok(1));
    assert!(load(&["deep", "empty"]).unwrap_err().contains("empty"));

    let rules = "package countersign.capability\nimport rego.v1\n\
        decision := {\"rule\": \"r\", \"decision\": \"allow\", \"reason\": \"OK\"}\n";
    std::fs::create_dir_all(at("rules")).unwrap();
    std::fs::write(at("rules/a.rego"), rules).unwrap();
    assert_eq!(load(&["rules"]), Ok(0));
    std::fs::write(at("rules/b.rego"), rules.replace("allow", "deny")).unwrap();
    let error = load(&["rules"]).unwrap_err();
    assert!(
        error.contains("a.rego") && error.contains("b.rego"),
        "{error}"
    );
}

#[test]
fn i05_policies_that_cannot_be_read_start_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("torn.yaml"), "schema: countersign/manifest/v1\nname: [").unwrap();
    std::fs::write(at("other.yaml"), "tools: [pay]\n").unwrap();
    std::fs::write(at("torn.rego"), "package p\nverdict := {").unwrap();
    std::fs::create_dir(at("folder.yaml")).unwrap();
    let load = |manifest: Option<&str>, enforced: Option<&str>| {
        let files = PolicyFiles {
            manifest: manifest.map(&at),
            enforced: enforced.map(&at).into_iter().collect(),
            ..PolicyFiles::default()
        };
        files.load().is_ok()
    };
    assert!(load(None, None));
    for manifest in ["torn.yaml", "other.yaml", "folder.yaml", "gone.yaml"] {
        assert!(!load(Some(manifest), None), "{manifest}");
    }
    for policy in ["torn.rego", "gone.rego"] {
        assert!(!load(None, Some(policy)), "{policy}");
    }
}
