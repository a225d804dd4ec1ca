//! How every test that records something ends: the log verifies, and every session of it comes out again
//! as it was recorded.
#![allow(dead_code, reason = "several tests share it")]

use std::path::{Path, PathBuf};

use countersign_replay::Replayer;
use countersign_store::{Folder, Reader};
use countersign_verify::database::verify_database;
use countersign_verify::{Expectation, Selection};

/// Tests with logs that do not come out again, and why.
pub(crate) const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "compatible::verifying_recomputes_what_is_stored",
        "a stored event is changed",
    ),
    (
        "attacks::a_row_that_says_approved_is_worth_nothing_without_signatures",
        "rows are changed behind the log's back",
    ),
    (
        "start::a_session_whose_contents_were_swapped_decides_nothing",
        "stored content is swapped",
    ),
    (
        "an_edit_at_the_desk_is_judged_by_the_policies_of_the_request",
        "the policies that decided are taken away",
    ),
    (
        "evaluators_that_disagree_refuse_the_action_and_leave_an_event",
        "an evaluator is made to err, and the right one decides again",
    ),
    (
        "damage::a_chain_under_another_name_is_damage",
        "rows are changed behind the log's back",
    ),
    (
        "damage::a_file_that_is_not_ours_is_told_and_stays_as_it_is",
        "the file is no log",
    ),
    (
        "damage::a_row_that_was_replaced_is_found",
        "rows are changed behind the log's back",
    ),
    (
        "damage::a_session_without_its_key_is_damage",
        "the key of a session is taken away",
    ),
    (
        "damage::damage_in_one_session_does_not_stop_the_others",
        "rows are changed behind the log's back",
    ),
    (
        "damage::nothing_is_added_to_a_damaged_history",
        "rows are changed behind the log's back",
    ),
    (
        "erasure::a_rotation_leaves_nothing_that_the_old_key_opens",
        "the old key file is put back",
    ),
    (
        "sealing::a_session_key_in_another_place_is_found",
        "keys of sessions are swapped",
    ),
    (
        "sealing::the_wrong_master_key_is_named",
        "another key file is put in the place of the right one",
    ),
    (
        "tree::missing_events_are_not_passed_over",
        "rows are removed behind the log's back",
    ),
    (
        "tree::what_is_damaged_is_not_integrated",
        "rows are changed behind the log's back",
    ),
    ("keys.md", "keys are taken away, and stay away"),
    (
        "a_planted_trigger_is_refused_before_anything_is_acknowledged",
        "a foreign trigger is planted",
    ),
    (
        "policies_that_are_gone_are_named",
        "somebody has a say whom nobody can bring back",
    ),
];

/// Files of tests that make folders of their own, and why nothing is to be looked at in them.
pub(crate) const UNWATCHED: &[(&str, &str)] = &[
    (
        "tests/replayed.rs",
        "it makes the folders that are looked at",
    ),
    (
        "crates/callout/tests/calls.rs",
        "manifests and bundles, no log",
    ),
    ("countersign/tests/corpus.rs", "records of others, no log"),
    ("crates/engine/tests/policy_files.rs", "policies, no log"),
    ("crates/store/tests/suite/shim.rs", "a compiled library"),
    (
        "crates/telemetry/tests/collector.rs",
        "exported spans, no log",
    ),
    ("crates/vault/tests/suite/golden.rs", "keys, no log"),
    ("crates/vault/tests/suite/keyring.rs", "keys, no log"),
    (
        "crates/verify/tests/suite/stored.rs",
        "logs that are forged by hand, with content that nobody can open",
    ),
    (
        "countersign/tests/states.rs",
        "files whose states are compared; its log is looked at",
    ),
];

/// A folder for one test. When it goes, everything is looked at that was recorded anywhere in it.
pub(crate) struct Kept {
    folder: tempfile::TempDir,
    test: String,
}

/// A folder for the test that runs in this thread.
pub(crate) fn folder() -> Kept {
    let thread = std::thread::current();
    named(thread.name().unwrap_or_default())
}

/// A folder for something that a test does several times.
pub(crate) fn named(test: &str) -> Kept {
    Kept {
        folder: tempfile::tempdir().unwrap(),
        test: test.to_owned(),
    }
}

impl Kept {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let logs = logs(self.folder.path());
        let found = logs.iter().try_for_each(|folder| look(folder));
        if let Err(problem) = found {
            let listed = EXCEPTIONS.iter().any(|(test, _)| *test == self.test);
            assert!(listed, "{problem}");
        }
    }
}

/// Looks at everything that was recorded in a data folder; at nothing if nothing was.
pub(crate) fn everything(folder: &Path) {
    if !std::thread::panicking() {
        look(folder).unwrap();
    }
}

fn look(folder: &Path) -> Result<(), String> {
    let folder = Folder::new(folder);
    if !folder.database().exists() {
        return Ok(());
    }
    let reader = Reader::open(&folder).map_err(|error| error.to_string())?;
    let sessions = reader.sessions(None).map_err(|error| error.to_string())?;
    if sessions.is_empty() {
        return Ok(());
    }
    let (selection, expectation) = (Selection::default(), Expectation::default());
    let database = folder.database();
    let verified = verify_database(&database, &selection, &expectation, None, &mut |_| {});
    if !verified.is_good() {
        return Err(format!("the log does not verify: {:?}", verified.failure));
    }
    let mut replayer = Replayer::new(&reader);
    for session in sessions {
        if session.erased_unix_ms.is_some() {
            continue;
        }
        let scope = &session.scope;
        let report = replayer.session(scope);
        let report = report.map_err(|error| format!("{scope:?}: {error}"))?;
        if !report.is_identical() {
            return Err(format!("{scope:?}: {:?}", report.diffs));
        }
    }
    Ok(())
}

/// Every folder below this one that holds a log.
fn logs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
        if Folder::new(&folder).database().exists() {
            found.push(folder);
        }
    }
    found
}
