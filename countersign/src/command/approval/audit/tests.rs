//! The audit that the program wrote, damaged in every way.

use countersign_approval::Human;
use countersign_engine::{Desk, SystemClock};
use countersign_store::{Options, Store};

use super::*;

struct Scene {
    _temporary: tempfile::TempDir,
    folder: Folder,
}

impl Scene {
    /// A data folder with an audit of six entries.
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::new(temporary.path());
        let scene = Self {
            _temporary: temporary,
            folder,
        };
        scene.append(1..=6);
        scene
    }

    /// Adds an approver for each seed: an entry each.
    fn append(&self, seeds: std::ops::RangeInclusive<u8>) {
        let store = Store::open(&self.folder, Options::default()).unwrap();
        let desk = Desk::new(store, SystemClock).unwrap();
        for seed in seeds {
            let person = Human::new(format!("p{seed}")).unwrap();
            let key = SigningKey::from_bytes(&[seed; 32]).verifying_key();
            let added = desk.change_approvers(None, |list| list.add(person, &key));
            added.unwrap();
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.audit().join(name)
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("approvals.jsonl")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn write(&self, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.path("approvals.jsonl"), text).unwrap();
    }

    fn check(&self) -> Findings {
        self.check_with(None)
    }

    fn check_with(&self, head: Option<Hash>) -> Findings {
        let audit = Audit {
            head,
            public_key: None,
            data: DataFolder::at(self.folder.path()),
        };
        audit.check(&self.folder).unwrap()
    }

    /// The lines after this change are found to be wrong, and where.
    fn damaged(change: impl FnOnce(&mut Vec<String>), expect: &str) {
        let scene = Self::new();
        let mut lines = scene.lines();
        change(&mut lines);
        scene.write(&lines);
        let problems = scene.check().problems;
        assert!(
            problems.first().is_some_and(|it| it.starts_with(expect)),
            "{expect}: {problems:?}"
        );
    }
}

#[test]
fn an_untouched_audit_holds() {
    let findings = Scene::new().check();
    assert_eq!(findings.problems, Vec::<String>::new());
    assert_eq!(findings.report.head.count, 6);
    assert!(findings.text(Path::new("x")).starts_with("VERIFIED ✓"));
}

#[test]
fn g02_any_flipped_byte_is_found() {
    let scene = Scene::new();
    let good = fs::read(scene.path("approvals.jsonl")).unwrap();
    for at in (0..good.len()).step_by(29) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(scene.path("approvals.jsonl"), &bad).unwrap();
        assert!(!scene.check().is_good(), "byte {at}");
    }
}

#[test]
fn g03_to_g07_every_change_of_the_lines_is_found() {
    Scene::damaged(|lines| drop(lines.remove(2)), "entry 3: follows");
    Scene::damaged(|lines| drop(lines.pop()), "entry 6: missing");
    Scene::damaged(Vec::clear, "entry 1: missing");
    Scene::damaged(|lines| lines.swap(2, 3), "entry 3: follows");
    Scene::damaged(
        |lines| lines.insert(2, lines[1].clone()),
        "entry 3: the same",
    );
}

#[test]
fn g05_without_the_file_the_signed_head_tells() {
    let scene = Scene::new();
    fs::remove_file(scene.path("approvals.jsonl")).unwrap();
    assert_eq!(
        scene.check().problems[0],
        "entry 1: missing: the log once had 6 entries"
    );
    fs::remove_dir_all(scene.folder.audit()).unwrap();
    assert_eq!(scene.check().problems, ["there is no audit here"]);
}

#[test]
fn g08_a_rewritten_end_with_right_hashes_is_found() {
    let scene = Scene::new();
    let mut lines = scene.lines();
    let (entry, prev) = countersign_approval::audit::Entry::read(lines[5].as_bytes()).unwrap();
    let mut other = entry;
    other.actor = Some("human:mallory".to_owned());
    lines[5] = String::from_utf8(other.to_line(prev)).unwrap();
    scene.write(&lines);
    assert!(scene.check().problems[0].starts_with("entry 6: rewritten"));

    // Without the signed head nobody can tell, and it says so.
    fs::remove_file(scene.path("head.json")).unwrap();
    fs::remove_file(scene.path("anchor.json")).unwrap();
    let findings = scene.check();
    assert!(findings.is_good());
    assert!(
        findings
            .not_checked
            .contains(&Absent::SignedHead.to_string())
    );
}

#[test]
fn g09_an_old_audit_put_back_is_found_by_what_was_noted() {
    let scene = Scene::new();
    let names = ["approvals.jsonl", "head.json", "anchor.json"];
    let old = names.map(|name| fs::read(scene.path(name)).unwrap());
    scene.append(7..=8);
    let noted = scene.check().report.head.hash;
    assert!(scene.check_with(Some(noted)).is_good());
    for (name, text) in names.iter().zip(&old) {
        fs::write(scene.path(name), text).unwrap();
    }
    let findings = scene.check();
    assert!(findings.is_good());
    assert!(
        findings
            .not_checked
            .iter()
            .any(|it| it.contains("older audit"))
    );
    let findings = scene.check_with(Some(noted));
    assert_eq!(
        findings.problems,
        ["the entry of --head is not in the audit"]
    );
}

#[test]
fn g11_a_torn_last_line_is_reported_and_not_damage() {
    let scene = Scene::new();
    let mut text = fs::read(scene.path("approvals.jsonl")).unwrap();
    text.extend_from_slice(b"{\"act");
    fs::write(scene.path("approvals.jsonl"), &text).unwrap();
    let findings = scene.check();
    assert!(findings.is_good());
    assert!(
        findings
            .text(Path::new("x"))
            .contains("torn: entry 7 has 5 bytes")
    );
    // The next writer cuts it off and goes on.
    scene.append(7..=7);
    let findings = scene.check();
    assert!(findings.is_good() && findings.report.torn.is_none());
    assert_eq!(findings.report.head.count, 7);
}

#[test]
fn a_head_that_somebody_else_signed_is_found() {
    let (scene, other) = (Scene::new(), Scene::new());
    fs::copy(other.folder.audit_key(), scene.folder.audit_key()).unwrap();
    assert!(scene.check().problems[0].contains("signature of the head"));
}
