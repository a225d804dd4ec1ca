//! The audit that the program wrote, damaged in every way.

use countersign_approval::Human;
use countersign_engine::{Clock, ClockError, Desk, SystemClock};
use countersign_store::{Options, Store};
use std::ops::RangeInclusive;

use super::*;

/// A clock that is so many milliseconds behind.
struct Behind(u64);

impl Clock for Behind {
    fn now_unix_ms(&self) -> Result<u64, ClockError> {
        Ok(SystemClock.now_unix_ms()? - self.0)
    }

    fn monotonic_ms(&self) -> u64 {
        SystemClock.monotonic_ms()
    }
}

struct Scene {
    _temporary: tempfile::TempDir,
    folder: Folder,
}

impl Scene {
    /// A data folder with an audit of six entries.
    fn new() -> Self {
        Self::of_age(0)
    }

    /// The same, written some time ago.
    fn of_age(ms: u64) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::new(temporary.path());
        let scene = Self {
            _temporary: temporary,
            folder,
        };
        scene.append_before(1..=6, ms);
        scene
    }

    /// Adds an approver for each seed: an entry each.
    fn append(&self, seeds: RangeInclusive<u8>) {
        self.append_before(seeds, 0);
    }

    fn append_before(&self, seeds: RangeInclusive<u8>, ms: u64) {
        let store = Store::open(&self.folder, Options::default()).unwrap();
        let desk = Desk::new(store, Behind(ms)).unwrap();
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
    assert_eq!(
        scene.check().problems,
        [
            "there is no audit here",
            "entry 1: missing: the database has 6 entries"
        ]
    );
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

    // Without the signed head nothing holds: it is written with every entry.
    fs::remove_file(scene.path("head.json")).unwrap();
    fs::remove_file(scene.path("anchor.json")).unwrap();
    let findings = scene.check();
    assert_eq!(
        findings.problems,
        [
            "entry 6: the signed head is gone, which is written with every entry: the end may be cut",
            "entry 6: not the one that the database has"
        ]
    );
    let absent = Absent::SignedHead.to_string();
    assert!(findings.not_checked.contains(&absent));
}

#[test]
fn a_cut_end_without_any_head_is_found_with_and_without_the_database() {
    let scene = Scene::new();
    for name in ["head.json", "anchor.json"] {
        fs::remove_file(scene.path(name)).unwrap();
    }
    scene.write(&scene.lines()[..2]);
    let findings = scene.check();
    let gone = "entry 2: the signed head is gone";
    assert!(findings.problems[0].starts_with(gone));
    assert_eq!(
        findings.problems[1],
        "entry 3: missing: the database has 6 entries"
    );
    assert!(findings.text(Path::new("x")).starts_with("FAILED ✗"));
    fs::remove_file(scene.folder.database()).unwrap();
    let findings = scene.check();
    assert!(findings.problems[0].starts_with(gone));
    assert_eq!(findings.problems.len(), 1);
}

#[test]
fn what_does_not_hold_is_not_among_what_was_checked() {
    let holds = |change: fn(&mut Vec<String>)| {
        let scene = Scene::new();
        let mut lines = scene.lines();
        change(&mut lines);
        scene.write(&lines);
        scene.check().checked
    };
    let has = |checked: &[String], part: &str| checked.iter().any(|it| it.contains(part));
    let good = holds(|_| {});
    for claim in [
        "the form",
        "the link",
        "the signed head",
        "the anchor",
        "the database",
    ] {
        assert!(has(&good, claim), "{claim}: {good:?}");
    }
    let cut = holds(|lines| drop(lines.pop()));
    assert!(has(&cut, "the form") && has(&cut, "the link"));
    assert!(!has(&cut, "the signed head") && !has(&cut, "the anchor"));
    assert!(!has(&cut, "the database"));
    let swapped = holds(|lines| lines.swap(1, 2));
    assert!(has(&swapped, "the form") && !has(&swapped, "the link"));
    assert!(!has(&swapped, "the database"));
    let garbled = holds(|lines| lines[1] = "{}".to_owned());
    assert!(!has(&garbled, "the form") && !has(&garbled, "the link"));
}

#[test]
fn whoever_completes_a_file_that_was_cut_says_so() {
    for with_head in [true, false] {
        // Where nobody signed for what is gone, it is older than any write takes.
        let scene = Scene::of_age(if with_head { 0 } else { 3_600_000 });
        scene.write(&scene.lines()[..4]);
        if !with_head {
            fs::remove_dir_all(scene.folder.audit()).unwrap();
        }
        scene.append(7..=7);
        let findings = scene.check();
        assert_eq!(findings.problems, Vec::<String>::new());
        let lines = scene.lines();
        assert_eq!(lines.len(), 8);
        assert!(lines[7].contains("audit:recovered"), "{}", lines[7]);
        let first = if with_head { 5 } else { 1 };
        let lost = format!("the file had lost what it had from entry {first} on");
        assert!(lines[7].contains(&lost), "{}", lines[7]);
        // Nothing is missing now, so nothing more is said.
        scene.append(8..=8);
        assert_eq!(scene.lines().len(), 9);
    }
}

#[test]
fn without_its_key_the_head_shows_nothing() {
    let scene = Scene::new();
    fs::remove_file(scene.folder.audit_key()).unwrap();
    assert_eq!(
        scene.check().problems,
        ["head.json: the key of the audit is gone; give --public-key"]
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
    assert_eq!(
        scene.check().problems,
        ["entry 7: missing: the database has 8 entries"]
    );
    // With an old database too, only what was noted tells.
    fs::remove_file(scene.folder.database()).unwrap();
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

/// Whoever may write the database changes it behind the back of its triggers.
fn tamper(scene: &Scene, sql: &str) {
    let db = rusqlite::Connection::open(scene.folder.database()).unwrap();
    db.execute_batch("DROP TRIGGER audit_keep_content; DROP TRIGGER audit_keep_rows;")
        .unwrap();
    db.execute_batch(sql).unwrap();
}

#[test]
fn every_entry_is_compared_with_that_of_the_database() {
    for (sql, expect) in [
        (
            "UPDATE audit SET line = line || ' ' WHERE number = 3",
            "entry 3: not the one that the database has",
        ),
        (
            "DELETE FROM audit WHERE number IN (2, 4)",
            "entry 2: not the one that the database has",
        ),
        (
            "DELETE FROM audit WHERE number = 6",
            "entry 6: not the one that the database has",
        ),
        (
            "DELETE FROM audit",
            "entry 1: not the one that the database has",
        ),
    ] {
        let scene = Scene::new();
        tamper(&scene, sql);
        let findings = scene.check();
        assert_eq!(findings.problems, [expect], "{sql}");
        assert!(!findings.checked.iter().any(|it| it.contains("database")));
    }
}

#[test]
fn a_log_that_never_asked_anybody_has_no_entry_yet() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = Folder::new(temporary.path());
    drop(Store::open(&folder, Options::default()).unwrap());
    let scene = Scene {
        _temporary: temporary,
        folder,
    };
    let findings = scene.check();
    assert_eq!(findings.problems, Vec::<String>::new());
    let text = findings.text(Path::new("x"));
    assert!(text.starts_with("VERIFIED ✓  x: no entry yet"), "{text}");
    assert!(text.contains("✓ that the database has no entry either"));
    // An entry that somebody noted is missed all the same.
    assert!(!scene.check_with(Some(Hash::of(b"noted"))).is_good());
}

#[test]
fn a_folder_without_a_log_is_told_apart() {
    let temporary = tempfile::tempdir().unwrap();
    let audit = Audit {
        head: None,
        public_key: None,
        data: DataFolder::at(temporary.path()),
    };
    let refused = audit.check(&Folder::new(temporary.path())).err().unwrap();
    assert_eq!(refused.code(), Code::NoLog);
}
