//! How every test that records something ends: the log verifies, and every session of it comes out again
//! as it was recorded.

use std::path::Path;

use countersign_replay::Replayer;
use countersign_store::{Folder, Reader};
use countersign_verify::database::verify_database;
use countersign_verify::{Expectation, Selection};

/// Looks at everything that was recorded in a data folder; at nothing if nothing was.
pub(crate) fn everything(folder: &Path) {
    let folder = Folder::new(folder);
    if std::thread::panicking() || !folder.database().exists() {
        return;
    }
    let reader = Reader::open(&folder).unwrap();
    let sessions = reader.sessions(None).unwrap();
    if sessions.is_empty() {
        return;
    }
    let (selection, expectation) = (Selection::default(), Expectation::default());
    let verified = verify_database(
        &folder.database(),
        &selection,
        &expectation,
        None,
        &mut |_| {},
    );
    assert!(
        verified.is_good(),
        "the log does not verify: {:?}",
        verified.failure
    );
    let mut replayer = Replayer::new(&reader);
    for session in sessions {
        if session.erased_unix_ms.is_some() {
            continue;
        }
        let report = replayer.session(&session.scope);
        let report = report.unwrap_or_else(|error| panic!("{:?}: {error}", session.scope));
        assert!(
            report.is_identical(),
            "{:?}: {:?}",
            session.scope,
            report.diffs
        );
    }
}
