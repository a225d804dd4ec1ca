//! What counts as policies on disk.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at once")]

use std::fs;

use countersign_engine::{PolicyFiles, PolicyFilesError};

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
    fs::create_dir_all(at("empty/.hidden")).unwrap();
    fs::write(at("empty/.hidden/p.rego"), deny).unwrap();
    fs::write(at("empty/p.rego.bak"), deny).unwrap();
    assert!(load(&["empty"]).unwrap_err().contains("holds no policy"));
    fs::write(at("p_test.rego"), deny).unwrap();
    assert!(load(&["p_test.rego"]).unwrap_err().contains("no policy"));

    // As deep as `policy check` and `policy test` look.
    fs::create_dir_all(at("deep/er")).unwrap();
    fs::write(at("deep/er/p.rego"), deny).unwrap();
    assert_eq!(load(&["deep"]), Ok(1));
    assert!(load(&["deep", "empty"]).unwrap_err().contains("empty"));

    let rules = "package countersign.capability\nimport rego.v1\n\
        decision := {\"rule\": \"r\", \"decision\": \"allow\", \"reason\": \"OK\"}\n";
    fs::create_dir_all(at("rules")).unwrap();
    fs::write(at("rules/a.rego"), rules).unwrap();
    assert_eq!(load(&["rules"]), Ok(0));
    fs::write(at("rules/b.rego"), rules.replace("allow", "deny")).unwrap();
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
    fs::write(at("torn.yaml"), "schema: countersign/manifest/v1\nname: [").unwrap();
    fs::write(at("other.yaml"), "tools: [pay]\n").unwrap();
    fs::write(at("torn.rego"), "package p\nverdict := {").unwrap();
    fs::create_dir(at("folder.yaml")).unwrap();
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

#[test]
fn a_manifest_whose_files_were_changed_is_not_put_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let files = PolicyFiles {
        manifest: Some(at("manifest.yaml")),
        ..PolicyFiles::default()
    };
    let hash = countersign_canon::Hash::of(b"print(1)\n");
    let tree = countersign_canon::Hash::of(format!("run.py:{hash}\n").as_bytes());
    let write = |integrity: &str| {
        let manifest = format!(
            "schema: countersign/manifest/v1\nname: n\nversion: 1.0.0\npublisher: acme\n{integrity}\n"
        );
        fs::write(at("manifest.yaml"), manifest).unwrap();
    };
    let faults = || match files.load() {
        Err(PolicyFilesError::Altered { faults, .. }) => faults.join("; "),
        Err(other) => panic!("{other}"),
        Ok(_) => String::new(),
    };
    fs::write(at("run.py"), "print(1)\n").unwrap();
    for integrity in [
        format!("integrity: {{files: {{run.py: \"{hash}\"}}}}"),
        format!("integrity: {{tree_sha256: \"{tree}\"}}"),
    ] {
        write(&integrity);
        fs::write(at("run.py"), "print(1)\n").unwrap();
        assert_eq!(faults(), "");
        fs::write(at("run.py"), "print(2)\n").unwrap();
        assert_ne!(faults(), "", "changed, {integrity}");
        fs::remove_file(at("run.py")).unwrap();
        assert_ne!(faults(), "", "missing, {integrity}");
        // The same bytes behind a link are somebody else's to change.
        fs::write(at("elsewhere"), "print(1)\n").unwrap();
        std::os::unix::fs::symlink(at("elsewhere"), at("run.py")).unwrap();
        assert_ne!(faults(), "", "behind a link, {integrity}");
        fs::remove_file(at("run.py")).unwrap();
        fs::remove_file(at("elsewhere")).unwrap();
    }
    // Only a digest over all files says that none was added.
    fs::write(at("run.py"), "print(1)\n").unwrap();
    fs::write(at("added.py"), "").unwrap();
    assert!(faults().contains("added"), "{}", faults());
    write(&format!("integrity: {{files: {{run.py: \"{hash}\"}}}}"));
    assert_eq!(faults(), "");
}
