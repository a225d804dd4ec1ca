//! Any bytes as an export: verification ends, and nothing that fuzzing finds verifies by chance.
#![no_main]

use countersign_verify::{Expectation, Selection, verify_stream};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let (selection, expectation) = (Selection::default(), Expectation::default());
    let report = verify_stream(text, &selection, &expectation, &mut |_| {}).expect("memory reads");
    assert!(report.is_good() || report.failure.is_some());
});
